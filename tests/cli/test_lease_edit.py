"""`taskgov lease add` and `end`: the document changes by one lease, and by nothing else."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
import typer
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from taskgov_cli import lease_edit, leases
from taskgov_cli.main import app
from taskgov_cli.moments import until
from tests.allocation.world import ARN, G5

MONDAY = datetime(2026, 11, 23, 10, 30, 12, tzinfo=UTC)
HEAD = f"""# Quotas of the cluster
apiVersion: taskgov/v1
cluster: {{name: ml-cluster, arn: "{ARN}"}}   # one line
teams:
  - name: team-a   # vision
    quota: {{ComputeQuotaResources: [{{InstanceType: {G5}, Count: 2}}]}}
  - name: team-b
    quota: {{ComputeQuotaResources: [{{InstanceType: {G5}, Count: 4}}]}}
"""
ONE = f"to: team-a, from: team-b, instanceType: {G5}, count: 1, start: 2026-11-20T09:00Z, end: 2026-12-20T09:00Z"
LEASES = {
    "none": "",
    "an empty list": "leases: []   # none yet\n# the end\n",
    "a list of blocks": f"leases:\n  # for the paper\n  - {ONE.replace(', ', chr(10) + '    ')}\n    reason: x # y\n"
    "\n# what follows\nhandEdits: keep\n",
    "without indentation": f"leases:\n- {{{ONE}, reason: paper}}   # yes\nhandEdits: keep\n",
    "over lines": f"leases:\n  - {{{ONE},\n     reason: paper}}\n",
    "a list in brackets": f"leases: [{{{ONE}, reason: paper}}]   # yes\n",
    "without a last line end": f"leases:\n  - {{{ONE}, reason: paper}}",
}


@pytest.fixture(params=[pytest.param(text, id=name) for name, text in LEASES.items()])
def policy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD + request.param)
    return file


def lease(*arguments: str, now: datetime = MONDAY) -> Result:
    with time_machine.travel(now, tick=False):
        return CliRunner().invoke(app, ["lease", *arguments])


def comments(text: str) -> list[str]:
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


ADD = ("add", "2xml.g5.8xlarge", "--to", "team-a", "--from", "team-b", "--until", "friday", "-p")


def test_a_lease_is_added_and_nothing_else_changes(policy: Path) -> None:
    before, text = yaml.safe_load(policy.read_text()), policy.read_text()
    result = lease(*ADD, str(policy), "--reason", "a demo, on stage")
    assert result.exit_code == 0, result.output
    after = yaml.safe_load(policy.read_text())
    new = after["leases"].pop()
    assert (new["end"], new["start"], new["count"]) == ("2026-11-28T00:00Z", "2026-11-23T10:30Z", 2)
    assert new["reason"] == "a demo, on stage"
    assert after == before | {"leases": before.get("leases") or []}
    assert comments(policy.read_text()) == comments(text)
    assert policy.read_text().startswith(HEAD)


def test_a_lease_that_runs_ends_now_and_one_that_is_to_come_is_taken_out(policy: Path) -> None:
    text = policy.read_text()
    if "team-a, from" not in text and "to: team-a" not in text:
        result = lease("end", "--to", "team-a", "--from", "team-b", "-p", str(policy))
        assert (result.exit_code, "there is none" in result.output, policy.read_text()) == (2, True, text)
        return
    before = yaml.safe_load(text)
    result = lease("end", "--to", "team-a", "--from", "team-b", "-p", str(policy), now=MONDAY - timedelta(days=9))
    assert result.exit_code == 0, result.output
    assert not yaml.safe_load(policy.read_text()).get("leases")
    assert yaml.safe_load(policy.read_text()) | {"leases": before["leases"]} == before
    policy.write_text(text)
    assert lease("end", "--to", "team-a", "--from", "team-b", "-p", str(policy)).exit_code == 0
    before["leases"][0]["end"] = "2026-11-23T10:30Z"
    assert yaml.safe_load(policy.read_text()) == before
    assert comments(policy.read_text()) == comments(text)


REFUSED = {
    "a team that is not there": (("--to", "team-x"), "team-x"),
    "a donor that is the borrower": (("--to", "team-b"), "leases"),
    "an end before the start": (("--until", "2026-11-20"), "leases"),
    "no moment": (("--until", "soonish"), "is not a time"),
}


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_a_lease_that_breaks_rules_leaves_the_document_as_it_was(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD)
    result = lease(*ADD, str(file), *words)
    assert (result.exit_code, said in result.output, file.read_text()) == (2, True, HEAD), result.output
    assert [found.name for found in tmp_path.iterdir()] == ["policy.yaml"]


@pytest.mark.parametrize(
    ("typed", "starts"),
    [
        ("thursday", "2026-11-26T00:00Z"),
        ("tomorrow", "2026-11-24T00:00Z"),
        ("2026-11-25", "2026-11-25T00:00Z"),
        ("thursday 18:00", "2026-11-26T18:00Z"),
        ("today", "2026-11-23T10:30Z"),
        ("2h", "2026-11-23T12:30Z"),
    ],
)
def test_a_lease_that_starts_on_a_day_starts_with_it(tmp_path: Path, typed: str, starts: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD)
    assert lease(*ADD, str(file), "--start", typed).exit_code == 0
    (added,) = yaml.safe_load(file.read_text())["leases"]
    assert (added["start"], f"{added['end']}"[:10]) == (starts, "2026-11-28")


def test_all_that_is_wrong_with_a_lease_is_said_at_once(policy: Path) -> None:
    text = policy.read_text()
    typed = ["nonsense", "--to", "team-a", "--from", "team-b", "--start", "sometime", "--until", "soonish"]
    result = lease("add", *typed, "-p", str(policy))
    assert (result.exit_code, policy.read_text()) == (2, text)
    for said in ("NxTYPE: 'nonsense' is not of the form", "--start: 'sometime' is not", "--until: 'soonish' is not"):
        assert said in result.output
    assert ".instanceType" not in result.output  # nothing is said of the values that stand in for these


@pytest.mark.parametrize("typed", [("nonsense", "friday"), ("2xml.g5.8xlarge", "soonish")])
def test_a_team_that_is_not_in_the_document_is_named_beside_other_mistakes(
    policy: Path, typed: tuple[str, str]
) -> None:
    what, until_when = typed
    result = lease("add", what, "--to", "team-aa", "--from", "team-b", "--until", until_when, "-p", str(policy))
    words = " ".join(result.output.replace("│", " ").split())
    assert (result.exit_code, '.to = "team-aa": must be a team' in words, "is not" in words) == (2, True, True), words


def test_the_document_may_be_set_once(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKGOV_POLICY", str(policy))
    before = len(yaml.safe_load(policy.read_text()).get("leases") or [])
    assert lease(*ADD[:-1]).exit_code == 0
    assert len(yaml.safe_load(policy.read_text())["leases"]) == before + 1


def test_a_lease_whose_end_is_elsewhere_in_the_text_is_left_to_a_person(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    first = ONE.replace("to: team-a, from: team-b", "to: team-b, from: team-a")
    text = HEAD + f"leases:\n  - &l {{{first}, reason: one}}\n  - {{<<: *l, to: team-a, from: team-b}}\n"
    file.write_text(text)
    result = lease("end", "--to", "team-a", "--from", "team-b", "-p", str(file))
    assert (result.exit_code, isinstance(result.exception, SystemExit), file.read_text()) == (2, True, text), (
        result.output
    )


def test_a_change_of_anything_but_one_lease_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD)
    two = HEAD + f"leases:\n  - {{{ONE}, reason: one}}\n  - {{{ONE}, reason: two}}\n"
    for text in (two, HEAD + "handEdits: adopt\n"):
        with pytest.raises(typer.BadParameter, match="is unchanged"):
            leases._write(file, text, ())
    assert file.read_text() == HEAD


def test_of_two_leases_one_has_to_be_named(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD + f"leases:\n  - {{{ONE}, reason: one}}\n  - {{{ONE}, reason: two}}\n")
    result = lease("end", "--to", "team-a", "--from", "team-b", "-p", str(file))
    assert (result.exit_code, "there are 2: they are alike" in " ".join(result.output.split())) == (2, True)


def test_what_tells_two_leases_apart_is_named_and_ends_the_one_that_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    later = ONE.replace("2026-12-20T09:00Z", "2027-01-20T09:00Z")
    file.write_text(HEAD + f"leases:\n  - {{{ONE}, reason: one}}\n  - {{{later}, reason: two}}\n")
    ended = ("end", "--to", "team-a", "--from", "team-b", "-p", str(file))
    refused = " ".join(lease(*ended).output.replace("│", " ").split())
    choices = [f"--type {G5} --until {end}" for end in ("2026-12-20T09:00Z", "2027-01-20T09:00Z")]
    assert f"there are 2: choose one, with {' or '.join(choices)}" in refused
    assert lease(*ended, *choices[1].split(), "--format", "csv").exit_code == 0
    first, second = yaml.safe_load(file.read_text())["leases"]
    assert (first["end"], second["end"]) == ("2026-12-20T09:00Z", "2026-11-23T10:30Z")
    missing = lease(*ended, "--until", "soonish")
    assert (missing.exit_code, "--until: 'soonish' is not a time" in missing.output) == (2, True)


def test_a_document_in_json_stays_json(tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(yaml.safe_dump(yaml.safe_load(HEAD), default_flow_style=True, width=1000))
    assert lease(*ADD, str(file)).exit_code == 0
    assert len(yaml.safe_load(file.read_text())["leases"]) == 1


MOMENTS = {
    "friday": "2026-11-28T00:00",
    "Friday 18:00": "2026-11-27T18:00",
    "monday": "2026-11-24T00:00",
    "today": "2026-11-24T00:00",
    "tomorrow": "2026-11-25T00:00",
    "2026-11-27": "2026-11-28T00:00",
    "2026-11-27T18:00Z": "2026-11-27T18:00",
    "2026-11-27T18:00+02:00": "2026-11-27T16:00",
    "3d": "2026-11-26T10:30",
    "2h30m": "2026-11-23T13:00",
    "18:00": "2026-11-23T18:00",
}


@pytest.mark.parametrize(("text", "want"), MOMENTS.items(), ids=MOMENTS)
def test_moments_are_read_as_people_mean_them(text: str, want: str) -> None:
    assert until(text, MONDAY).isoformat() == f"{want}:00+00:00"


@given(st.text(max_size=30))
def test_any_other_text_is_refused_with_the_forms(text: str) -> None:
    with suppress(ValueError):
        assert until(text, MONDAY).tzinfo is UTC
        return
    with pytest.raises(ValueError, match="for example: friday"):
        until(text, MONDAY)


@given(reasons=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1), max_size=4))
def test_any_reason_comes_back_as_it_was_written(reasons: list[str]) -> None:
    for start in ("teams: []\n", "leases: []\n", "leases: [{reason: a}]\n", "leases:\n- reason: a\n"):
        text, kept = start, yaml.safe_load(start).get("leases") or []
        for number, reason in enumerate(reasons):
            text = lease_edit.with_lease(text, {"to": f"team-{number}", "reason": reason})
        want = [*kept, *({"to": f"team-{number}", "reason": reason} for number, reason in enumerate(reasons))]
        assert (yaml.safe_load(text).get("leases") or []) == want
        for _ in reasons:
            text = lease_edit.without_lease(text, len(want) - 1)
            want.pop()
            assert (yaml.safe_load(text).get("leases") or []) == want


def test_a_lease_that_the_document_can_never_give_is_added_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD)
    result = lease("add", "9xml.g5.8xlarge", *ADD[2:], str(file))
    assert result.exit_code == 0, result.output
    assert len(yaml.safe_load(file.read_text())["leases"]) == 1
    assert "team-b has 4 ml.g5.8xlarge in the document, and cannot lend 9 to team-a." in " ".join(result.stderr.split())
    (tmp_path / "fits.yaml").write_text(HEAD)
    assert lease(*ADD, str(tmp_path / "fits.yaml")).stderr == ""
