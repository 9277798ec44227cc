"""Editors get the schema of policy documents: from `taskgov schema`, and from a file that `init` writes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner, Result

from taskgov_cli.main import app
from taskgov_cli.schema import FILE, ID, schema_text

ROOT = Path(__file__).parents[2]


def init(file: Path, *more: str) -> Result:
    words = ["init", "-s", str(ROOT / "examples" / "snapshot.json"), "-o", str(file), *more]
    return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


def test_it_is_printed_and_written_as_it_is_published(tmp_path: Path) -> None:
    published = (ROOT / "docs" / FILE).read_text()
    assert CliRunner().invoke(app, ["schema"]).stdout == published
    file = tmp_path / "s.json"
    assert CliRunner().invoke(app, ["schema", "-o", str(file)]).exit_code == 0
    assert file.read_text() == published
    nowhere = CliRunner().invoke(app, ["schema", "-o", str(tmp_path / "no" / "s.json")])
    assert (nowhere.exit_code, "No such file" in nowhere.stderr) == (2, True)


def test_the_first_line_of_a_first_document_names_the_schema_beside_it(tmp_path: Path) -> None:
    document = tmp_path / "deep" / "ml.yaml"
    document.parent.mkdir()
    assert init(document).exit_code == 0
    first, _, _ = document.read_text().partition("\n")
    key, _, place = first.partition("$schema=")
    assert key == "# yaml-language-server: "  # as the YAML language server documents it; relative to the document
    found = json.loads((document.parent / place).read_text())
    assert found["$id"] == ID
    jsonschema.validate(yaml.safe_load(document.read_text()), found)


def test_an_older_taskgov_schema_is_replaced_and_no_other(tmp_path: Path) -> None:
    beside = tmp_path / FILE
    beside.write_text(json.dumps({"$id": ID, "title": "old"}))
    assert init(tmp_path / "a.yaml").exit_code == 0
    assert beside.read_text() == schema_text()
    for other in ('{"$id": "https://example.com/other"}', "[]", "no JSON", "\0"):
        beside.write_text(other)
        done = init(tmp_path / "b.yaml", "--force")
        assert done.exit_code == 0
        assert beside.read_text() == other
        assert "is kept; for editors, run: taskgov schema -o" in done.stdout


def test_a_schema_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    refused = init(tmp_path / "a.yaml")
    assert (refused.exit_code, f"beside {tmp_path / 'a.yaml'}: Is a directory" in refused.stderr) == (1, True)


@pytest.mark.parametrize("name", [path.name for path in (ROOT / "examples" / "policies").glob("*.yaml")])
def test_every_example_fits_it(name: str) -> None:
    jsonschema.validate(yaml.safe_load((ROOT / "examples/policies" / name).read_text()), json.loads(schema_text()))
