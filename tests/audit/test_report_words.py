"""What a report says of a finding beside its sentence."""

import pytest

from taskgov.audit.report_words import further
from taskgov.findings import Finding, Severity


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("2026-11-20T09:05:31+01:00", "2026-11-20 08:05 UTC"),
        ("Training", "Training"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
    ],
)
def test_evidence_that_is_a_moment_is_shown_in_utc_and_any_other_text_as_it_is(value: str, shown: str) -> None:
    finding = Finding("lease-ended", Severity.INFO, "team-a", "a lease", "none", evidence={"reason": value})
    assert further(finding) == {"Reason": shown}
