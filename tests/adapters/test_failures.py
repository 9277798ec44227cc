"""What could not be done for one cluster is seen: in the log without content, and as that cluster's metric."""

from taskgov.adapters.failures import ReportedFailures
from taskgov.errors import ThrottledError
from taskgov.services.metric_catalogue import ALL_CLUSTERS
from tests.support.memory import RecordingMeter


class RecordingLogger:
    def __init__(self) -> None:
        self.logged: list[tuple[object, dict[str, str]]] = []

    def error(self, msg: object, *, extra: dict[str, str]) -> None:
        self.logged.append((msg, extra))


def raised(error: Exception) -> Exception:
    try:
        raise error  # noqa: TRY301 - for its traceback
    except Exception as found:  # noqa: BLE001 - it is what is wanted
        return found


def reported(error: Exception) -> tuple[dict[str, str], list[float]]:
    logger, meter = RecordingLogger(), RecordingMeter()
    ReportedFailures(logger, meter).report("ml-cluster", "measure the usage", raised(error))
    [(said, fields)] = logger.logged
    assert said == "cluster unreadable"
    assert {name for name, _ in meter.recorded} == {"ml-cluster", ALL_CLUSTERS}
    return fields, [each.value for _, each in meter.recorded if each.name == "ClusterUnreadable"]


def test_an_error_that_nobody_foresaw_is_logged_with_its_class_and_place_and_without_content() -> None:
    fields, counted = reported(KeyError("a stranger's text"))
    assert counted == [1, 1]
    assert (fields["error"], "reason" in fields) == ("KeyError", False)
    assert fields["where"].startswith("test_failures.py:")


def test_an_error_of_the_domain_says_its_reason() -> None:
    fields, counted = reported(ThrottledError("slow\x1b[31m down"))
    assert (counted, fields["reason"]) == ([1, 1], r"slow\x1b[31m down")
