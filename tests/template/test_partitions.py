"""What cfn-lint finds in the Regions of other partitions, and what the template leaves out there."""

import pytest

from taskgov_cli.preflight.partitions import CHINA, FEATURES, GOVCLOUD, PLAIN_LOGS, THROUGH_API, UNTRACED
from taskgov_cli.preflight.template import FUNCTION, Place, read_template
from tests.template.conftest import ROOT, load

TEMPLATE = ROOT / "template.yaml"
REGIONS = {"us-gov-west-1": GOVCLOUD, "us-gov-east-1": GOVCLOUD, "cn-north-1": CHINA, "cn-northwest-1": CHINA}


@pytest.mark.lint
def test_only_the_function_url_is_missing_there_and_the_parameter_replaces_it() -> None:
    import cfnlint.api
    from cfnlint.config import ManualArgs

    found = cfnlint.api.lint(TEMPLATE.read_text(), config=ManualArgs(regions=list(REGIONS)))
    assert {(match.rule.id, "AWS::Lambda::Url" in match.message) for match in found} <= {("E3006", True)}
    assert found
    for region, partition in REGIONS.items():
        place = Place(partition, region, "111122223333")
        assert "AWS::Lambda::Url" not in read_template(TEMPLATE, {"OrdersThrough": "api-gateway"}, place).types()


@pytest.mark.parametrize("partition", ["aws", GOVCLOUD, CHINA])
def test_functions_log_and_trace_as_the_partition_can(partition: str) -> None:
    template = read_template(TEMPLATE, {}, Place(partition, "a-region", "111122223333"))
    settings = template.resolved(template.raw["Globals"]["Function"])
    feature = {each.name: each.govcloud if partition == GOVCLOUD else each.china for each in FEATURES}
    plain = partition != "aws" and feature["JSON log format"] == PLAIN_LOGS
    untraced = partition != "aws" and feature["X-Ray for functions"] == UNTRACED
    level = {} if plain else {"ApplicationLogLevel": "INFO"}
    assert settings["LoggingConfig"] == {"LogFormat": "Text" if plain else "JSON", **level}
    assert settings["Tracing"] == ("PassThrough" if untraced else "Active")
    assert partition == "aws" or feature["function URL"] == THROUGH_API


def test_every_function_is_named_in_the_table() -> None:
    folders = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
    named = " ".join(each.used_by for each in FEATURES)
    assert len(load().resources_of("AWS::Lambda::Function")) == len(folders)
    assert "every function" in named
    assert {name for name in folders if f"`{name}`" not in named} == {"plan_quotas"}
    assert FUNCTION in read_template(TEMPLATE, {}, Place("aws", "us-east-1", "111122223333")).types()
