"""A task that any output names can be pasted into `taskgov explain`, also from a namespace that is no team's."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov_cli.main import app

EXAMPLES = Path(__file__).parents[2] / "examples"
POLICY = str(EXAMPLES / "policy.yaml")
SPEECH = {"a team's": "speech", "nobody's": "ml-research"}
"""In whose namespace the task that waits is, and how it is called for that."""


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def sample(folder: Path, namespace: str) -> str:
    text = (EXAMPLES / "snapshot.json").read_text()
    if namespace == "nobody's":
        text = text.replace('"hyperpod-ns-speech"', '"ml-research"')
    (folder / "snapshot.json").write_text(text)
    return str(folder / "snapshot.json")


@pytest.mark.parametrize("namespace", SPEECH)
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_names_of_a_plan_are_those_of_jobs_and_explain(tmp_path: Path, form: str, namespace: str) -> None:
    file, waits = sample(tmp_path, namespace), f"{SPEECH[namespace]}/voices"
    said = run("plan", "-s", file, "-p", POLICY, "--format", form)
    assert "pytorchjob-" not in said
    assert f"InCohortReclamation, by {waits}" in said
    assert "wave 2 preempts research/pretraining" in said
    for name in ("research/pretraining", waits):
        assert run("explain", name, "-s", file).startswith(f"{name}: ")
    assert {f"{each['team']}/{each['job']}" for each in json.loads(run("jobs", "-s", file, "--json"))["tasks"]} > {
        "research/pretraining",
        waits,
    }


def test_the_data_of_a_plan_has_the_name_beside_that_of_the_workload(tmp_path: Path) -> None:
    data = json.loads(run("plan", "-s", sample(tmp_path, "nobody's"), "-p", POLICY, "--json"))
    starts = [each for each in data["prediction"]["effects"] if each["effect"] == "starts"]
    assert [(each["namespace"], each["task"], each["team"]) for each in starts] == [
        ("ml-research", "ml-research/voices", "speech")
    ]


def test_the_report_and_what_if_use_them_too(tmp_path: Path) -> None:
    file = sample(tmp_path, "nobody's")
    run("audit", "-s", file, "-p", POLICY, "-o", str(tmp_path / "page.html"), code=1)
    page = (tmp_path / "page.html").read_text()
    assert "ml-research/voices" in page
    assert re.findall(r"pytorchjob-\w+-\w{5}", page) == []
    assert "hyperpod-ns-research/" not in page
    assert "research/pretraining" in run("what-if", "-s", file, "-p", POLICY)


def test_two_jobs_of_one_name_are_told_apart_by_kueues_names(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    data = json.loads(Path(sample(tmp_path, "a team's")).read_text())
    (voices,) = (item for item in data["kueue"]["workloads"] if "voices" in item["metadata"]["name"])
    again = json.loads(json.dumps(voices))
    again["metadata"] |= {"name": "job-voices-1f417", "uid": "another"}
    data["kueue"]["workloads"].append(again)
    file.write_text(json.dumps(data))
    result = CliRunner().invoke(app, ["explain", "speech/voices", "-s", str(file)])
    said = " ".join(re.sub("[│╭╰─╮╯]", "", result.output).split())
    assert "hyperpod-ns-speech/job-voices-1f417" in said
    assert "hyperpod-ns-speech/pytorchjob-voices-" in said
    assert run("explain", "hyperpod-ns-speech/job-voices-1f417", "-s", str(file)).startswith("speech/voices: ")
