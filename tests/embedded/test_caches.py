"""What is kept while a stack is open is what would have been found out again, and is gone when it closes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.hooks import EventAliaser, HierarchicalEmitter
from botocore.useragent import UserAgentComponent, UserAgentComponentSizeConfig
from moto.cloudwatch.models import CloudWatchBackend
from moto.core import responses
from moto.kms import models as kms
from moto.s3.responses import S3Response

from taskgov_embedded.aws_api import caches
from taskgov_embedded.aws_api.patches import Patches


@pytest.fixture
def installed() -> Iterator[None]:
    patches = Patches()
    with patches.within():
        caches.install(patches)
        yield


def _aliaser(aliases: dict[str, str] | None = None) -> Any:
    return EventAliaser(HierarchicalEmitter(), aliases)


def test_names_of_events_are_aliased_as_botocore_does() -> None:
    names = ("before-call.monitoring.PutMetricData", "request-created.states", "provide-client-params.s3.GetObject")
    own = [_aliaser()._alias_event_name(name) for name in names]
    patches = Patches()
    with patches.within():
        caches.install(patches)
        first, second = _aliaser(), _aliaser()
        assert [first._alias_event_name(name) for name in names] == own
        assert [second._alias_event_name(name) for name in names] == own
        other = _aliaser({"states": "elsewhere"})
        assert other._alias_event_name("request-created.states") == "request-created.elsewhere"


@pytest.mark.usefixtures("installed")
def test_parts_of_a_user_agent_are_cleaned_and_cut_each_by_its_own_size() -> None:
    short = UserAgentComponentSizeConfig(max_size_in_bytes=6, delimiter=",")
    assert UserAgentComponent("md", "a b", "c/d").to_string() == "md/a-b#c-d"
    assert UserAgentComponent("m", "a,b,c").to_string() == "m/a,b,c"
    assert UserAgentComponent("m", "a,b,c", size_config=short).to_string() == "m/a,b"


@pytest.mark.usefixtures("installed")
def test_each_class_of_answers_has_its_own_names() -> None:
    assert "head_bucket" in responses.method_names_from_class(S3Response)
    assert "head_bucket" not in responses.method_names_from_class(responses.BaseResponse)


@pytest.mark.usefixtures("installed")
def test_only_a_symmetric_key_is_without_a_pair() -> None:
    assert kms.generate_private_key("SYMMETRIC_DEFAULT") is None
    assert kms.generate_private_key("ECC_NIST_P256").public_key()


@pytest.mark.usefixtures("installed")
def test_a_metric_is_listed_once_whatever_its_dimensions_and_however_often_it_was_measured() -> None:
    cloudwatch = CloudWatchBackend("us-east-1", "111122223333")
    team_a = [{"Name": "Cluster", "Value": "ml"}, {"Name": "Team", "Value": "a"}]
    team_b = [{"Name": "Cluster", "Value": "ml"}, {"Name": "Team", "Value": "b"}]
    for namespace, dimensions in (
        ("Ours", team_a),
        ("Ours", team_b),
        ("Ours", team_a[::-1]),
        ("Ours", []),
        ("Other", []),
    ):
        data = [{"MetricName": "Borrowed", "Value": 1.0, "Dimensions": dimensions}] * 2
        cloudwatch.put_metric_data(namespace, data)

    def listed(**wanted: Any) -> list[tuple[str, list[str]]]:
        every = {"namespace": None, "metric_name": None, "dimensions": []} | wanted
        _, found = cloudwatch.list_metrics(next_token=None, **every)
        return [(metric.namespace, [dimension.value for dimension in metric.dimensions]) for metric in found]

    ours = [("Ours", ["ml", "a"]), ("Ours", ["ml", "b"]), ("Ours", [])]
    assert listed() == [*ours, ("Other", [])]
    assert listed(namespace="Ours") == ours
    assert listed(dimensions=team_b[1:]) == ours[1:2]
    assert listed(metric_name="Lent") == []


COUNTED = """
import sys
sys.path[:0] = sys.argv[1:]
from botocore.loaders import JSONFileLoader
own, read = JSONFileLoader.load_file, []
JSONFileLoader.load_file = lambda loader, path: (read.append(path), own(loader, path))[1]
import taskgov_embedded.stack
found = [path for path in read if path.endswith("endpoints") and own(JSONFileLoader(), path)]
print(len(found))
"""


@pytest.mark.long
def test_the_endpoints_of_all_regions_are_read_once_while_it_is_imported() -> None:
    root = Path(__file__).parents[2]
    paths = [str(root / "layers" / "taskgov" / "python"), str(root / "workstation")]
    counted = subprocess.run([sys.executable, "-c", COUNTED, *paths], capture_output=True, text=True, check=True)  # noqa: S603
    assert counted.stdout == "1\n"
