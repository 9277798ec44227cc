"""What is deployed is named to the last package, in the bill of materials."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.tools import ROOT, SBOM_PYTHON

pytestmark = pytest.mark.slow  # its tools have an environment of their own

VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()))
"""


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("sbom") / "sbom.cdx.json"
    command = ["make", "--silent", "sbom", f"SBOM={written}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - our own command
    return written


def pins() -> dict[str, set[str]]:
    """Return the SHA-256 of every wheel that a layer takes, by name and version."""
    found: dict[str, set[str]] = {}
    for path in ROOT.glob("layers/*/requirements.txt"):
        for pin, hashes in re.findall(r"^(\S+==\S+)((?: \\\n\s+--hash=sha256:\w+)+)", path.read_text(), re.MULTILINE):
            found.setdefault(pin, set()).update(re.findall(r"sha256:(\w+)", hashes))
    return found


def test_the_bill_of_materials_lists_what_the_layers_bring_with_its_hashes(bill: Path) -> None:
    components: list[dict[str, Any]] = json.loads(bill.read_text())["components"]
    listed = {
        f"{one['name']}=={one['version']}": {
            digest["content"] for reference in one["externalReferences"] for digest in reference.get("hashes", ())
        }
        for one in components
    }
    assert listed == pins()
    assert {one["purl"] for one in components} == {"pkg:pypi/" + one.replace("==", "@") for one in pins()}


def test_the_bill_of_materials_is_valid_cyclonedx_and_says_whose_it_is(bill: Path) -> None:
    command = [str(SBOM_PYTHON), "-c", VALIDATE]
    judged = subprocess.run(command, input=bill.read_text(), capture_output=True, text=True, check=True)  # noqa: S603
    assert judged.stdout == "None\n"
    about = json.loads(bill.read_text())["metadata"]["component"]
    assert (about["name"], about["type"]) == ("taskgov", "application")


def test_the_bill_of_materials_has_the_licence_of_each_package(bill: Path) -> None:
    components: list[dict[str, Any]] = json.loads(bill.read_text())["components"]
    assert [one["name"] for one in components if not one.get("licenses")] == []
    (boto3,) = (one for one in components if one["name"] == "boto3")
    assert boto3["licenses"][0]["license"]["id"] == "Apache-2.0"
