"""Severities by the document's rules, and mutes with their end."""

import re
import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.audit.severity import ended_mutes, matches, mute_of, rated
from taskgov.findings import Finding, Severity
from taskgov.policy.document import Mute, SeverityRule
from tests.allocation.world import NOW

IDLE = Finding("idle-quota", Severity.INFO, "team-a", "b", "r", {"idle": 3, "instanceType": "ml.g5.8xlarge"})
INCIDENT = Finding("floors-exceed-capacity", Severity.INCIDENT, "ml.g5.8xlarge", "b", "r", {"usable": 1})


def rule(finding: str, severity: str, **number: Any) -> SeverityRule:
    return SeverityRule.model_validate({"finding": finding, "severity": severity, **number})


def mute(finding: str, about: str = "*", hours: float = 1) -> Mute:
    until = NOW + timedelta(hours=hours)
    return Mute.model_validate({"finding": finding, "about": about, "reason": "known", "until": until})


RATED = {
    "no rule fits": ([rule("hoarding", "error")], Severity.INFO),
    "by its code": ([rule("idle-quota", "warning")], Severity.WARNING),
    "by a wildcard": ([rule("idle-*", "warning")], Severity.WARNING),
    "from a number on": ([rule("idle-quota", "error", evidence="idle", atLeast=3)], Severity.ERROR),
    "below the number": ([rule("idle-quota", "error", evidence="idle", atLeast=3.5)], Severity.INFO),
    "a text is no number": ([rule("idle-quota", "error", evidence="instanceType", atLeast=0)], Severity.INFO),
    "no such evidence": ([rule("idle-quota", "error", evidence="percent", atLeast=0)], Severity.INFO),
    "the last rule that fits holds": (
        [rule("*", "error"), rule("idle-quota", "warning"), rule("hoarding", "info")],
        Severity.WARNING,
    ),
}


@pytest.mark.parametrize(("rules", "want"), RATED.values(), ids=RATED.keys())
def test_a_finding_is_as_grave_as_the_document_says(rules: list[SeverityRule], want: Severity) -> None:
    assert rated(IDLE, rules).severity is want


MUTED = {
    "its code": (mute("idle-quota"), True),
    "its code and subject": (mute("idle-quota", "team-a"), True),
    "wildcards": (mute("*-quota", "team-*"), True),
    "the same code about somebody else": (mute("idle-quota", "team-b"), False),
    "a part of the code without a wildcard": (mute("idle"), False),
    "until just after now": (mute("idle-quota", hours=0.001), True),
    "until now": (mute("idle-quota", hours=0), False),
}


@pytest.mark.parametrize(("held", "want"), MUTED.values(), ids=MUTED.keys())
def test_a_finding_is_muted_by(held: Mute, want: bool) -> None:
    assert (mute_of(IDLE, [held], NOW) is held) is want


def test_of_several_mutes_the_first_that_holds_is_named() -> None:
    ended, first, second = mute("idle-quota", hours=-1), mute("idle-*"), mute("idle-quota")
    assert mute_of(IDLE, [ended, first, second], NOW) is first


def test_no_wildcard_hides_an_incident_or_makes_it_milder() -> None:
    assert mute_of(INCIDENT, [mute("floors-*"), mute("*", "ml.*")], NOW) is None
    assert mute_of(INCIDENT, [mute("floors-exceed-capacity")], NOW) is not None
    assert rated(INCIDENT, [rule("*", "info")]).severity is Severity.INCIDENT
    assert rated(INCIDENT, [rule("floors-exceed-capacity", "error")]).severity is Severity.ERROR


def test_a_mute_that_ended_is_a_finding_with_what_is_reported_again() -> None:
    [again] = ended_mutes([IDLE, INCIDENT], [mute("idle-*", "team-*", hours=-1), mute("idle-quota")], NOW)
    assert (again.code, again.severity, again.subject) == ("mute-ended", Severity.WARNING, "idle-* team-*")
    assert again.because == (
        "The mute of idle-* about team-* (known) ended 2026-11-20 11:00 UTC: 1 of its findings are sent again."
    )
    assert again.evidence["toldAgain"] == 1
    [idle] = ended_mutes([IDLE], [mute("hoarding", hours=-1)], NOW)
    assert "none of its findings is found any more" in idle.because


def test_a_pattern_of_many_stars_costs_little() -> None:
    before = time.process_time()

    assert not matches("*a" * 127 + "b", "a" * 100_000)

    assert time.process_time() - before < 1


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_a_star_stands_for_anything_and_nothing_else_does(pattern: str, text: str) -> None:
    want = re.fullmatch(".*".join(map(re.escape, re.split(r"\*+", pattern))), text) is not None

    assert matches(pattern, text) is want
