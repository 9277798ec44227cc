"""Licences in the bill of materials."""

import pytest

from tests.supply_chain.licences import with_licences

MIT = [{"license": {"id": "MIT"}}]


def test_licences_are_those_of_the_very_version() -> None:
    bill = {"version": 1, "components": [{"purl": "pkg:pypi/six@1.17.0", "name": "six", "hashes": []}]}
    installed = {"components": [{"purl": "pkg:pypi/six@1.17.0", "licenses": MIT}, {"purl": "pkg:pypi/x@1"}]}
    (component,) = with_licences(bill, installed)["components"]
    assert component == {"hashes": [], "licenses": MIT, "name": "six", "purl": "pkg:pypi/six@1.17.0"}


@pytest.mark.parametrize("known", [{"purl": "pkg:pypi/six@1.16.0", "licenses": MIT}, {"purl": "pkg:pypi/six@1.17.0"}])
def test_a_package_without_a_known_licence_is_named(known: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no licence is known of pkg:pypi/six@1\.17\.0"):
        with_licences({"components": [{"purl": "pkg:pypi/six@1.17.0"}]}, {"components": [known]})
