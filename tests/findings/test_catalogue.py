"""The kinds of findings: the page that is written from them, and that nothing else is ever raised."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from string import Formatter
from types import ModuleType

import pytest

from taskgov.audit.report_words import full_sentence
from taskgov.findings import Severity, of_audit, of_document, of_plan, of_state
from taskgov.findings.kind import FindingKind
from tests.support.golden import assert_section

PAGE = Path("docs/findings.md")
LAYER = Path("layers/taskgov/python/taskgov")
PRODUCT = [*LAYER.rglob("*.py"), *Path("workstation").rglob("*.py"), *Path("functions").rglob("*.py")]
OTHER_MEANINGS = {
    "no-progress": "an outcome of a plan and of a run",
    "mass-loss": "a guardrail",
    "kueue-version": "a check of the doctor",
    "over-quota": "a class of the report's style sheet",
}
"""Codes that are also the names of other things, and so may stand in product code as text."""


def kinds_of(*modules: ModuleType) -> dict[str, FindingKind]:
    """Return the kinds of rooms by the names of their constants, in the order in which they stand."""
    found = chain.from_iterable(vars(module).items() for module in modules)
    return {name: value for name, value in found if isinstance(value, FindingKind)}


BY_FINDER = {
    "document": kinds_of(of_document),
    "plan": kinds_of(of_plan, of_state),
    "audit": kinds_of(of_audit),
}
KINDS = kinds_of(of_document, of_plan, of_state, of_audit)


@pytest.mark.parametrize("finder", BY_FINDER)
def test_the_page_has_the_table_of_each_finder(finder: str) -> None:
    rows = ["| code | severity | means | says, and what to do | raised in |", "| --- | --- | --- | --- | --- |"]
    assert_section(PAGE, finder, "\n".join([*rows, *map(_row, BY_FINDER[finder].values())]))


def test_codes_are_stable_tokens_and_sentences_are_distinguished() -> None:
    assert [kind.code for kind in KINDS.values() if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", kind.code)] == []
    said = [(kind.code, kind.sentence) for kind in KINDS.values()]
    assert len(set(said)) == len(said) == sum(map(len, BY_FINDER.values()))


def test_a_finding_says_what_its_kind_says_with_the_fields_in_it() -> None:
    finding = of_audit.BORROW_LIMIT_UNUSABLE.about("team-a", {"n": 1}, team="{team-a}", instance_type="ml.g5.8xlarge")
    assert finding.code == "borrow-limit-unusable"
    assert finding.severity is Severity.INFO
    assert finding.because == "{team-a} may borrow ml.g5.8xlarge, and nobody else has any to lend."
    assert finding.evidence == {"n": 1}


def test_a_finding_without_a_field_of_its_sentence_is_not_made() -> None:
    with pytest.raises(KeyError, match="instance_type"):
        of_audit.BORROW_LIMIT_UNUSABLE.about("team-a", {}, team="team-a")


@pytest.mark.parametrize(
    ("kind", "case", "severity"),
    [
        (of_plan.BUDGET_THRESHOLD, 99.99, "warning"),
        (of_plan.BUDGET_THRESHOLD, 100, "error"),
        (of_state.STATE_RESTORED, True, "warning"),
        (of_state.STATE_RESTORED, False, "incident"),
        (of_state.OTHER_STACK, True, "info"),
        (of_state.OTHER_STACK, None, "incident"),
        (of_state.UNREADABLE_OBJECT, True, "error"),
        (of_state.UNREADABLE_OBJECT, False, "warning"),
        (of_audit.IDLE_QUOTA, None, "info"),
    ],
)
def test_the_severity_follows_the_rule_that_the_page_states(kind: FindingKind, case: object, severity: str) -> None:
    assert kind.severity_in(case) == severity
    assert severity in _severity(kind)


def test_only_a_kind_makes_a_finding() -> None:
    made = {
        f"{path}:{call.lineno}" for path in PRODUCT for call in _calls(path) if _name(call.func).endswith("Finding")
    }
    assert {place.rpartition(":")[0] for place in made} == {
        str(LAYER / "findings/kind.py"),
        str(LAYER / "audit/finding_report.py"),  # A finding as a report has it,
        str(LAYER / "audit/trend.py"),  # as the history keeps it,
        str(LAYER / "services/run_events.py"),  # and as an event tells it: each copies the code of one that was found.
    }


def test_no_code_stands_in_the_code_beside_its_kind() -> None:
    codes = {kind.code for kind in KINDS.values()} - OTHER_MEANINGS.keys()
    assert {
        f"{path}:{node.lineno} {node.value}"
        for path in PRODUCT
        if path.parent != LAYER / "findings"
        for node in _nodes(path)
        if isinstance(node, ast.Constant) and node.value in codes
    } == set()


def test_each_kind_is_raised_where_it_says_and_nowhere_else() -> None:
    raised: dict[str, set[str]] = {name: set() for name in KINDS}
    for path in PRODUCT:
        for node in _nodes(path):
            if isinstance(node, ast.Name) and node.id in KINDS and path.is_relative_to(LAYER):
                raised[node.id].add(str(path.relative_to(LAYER)))
    # A room may also look for what another one raised.
    missing = {name: set(kind.found_in) - raised[name] for name, kind in KINDS.items()}
    assert {name: places for name, places in missing.items() if places} == {}
    calls = [(path, call) for path in PRODUCT for call in _calls(path) if _name(call.func).endswith(".about")]
    strangers = [
        f"{path}:{call.lineno}"
        for path, call in calls
        if (kind := KINDS.get(_name(call.func).partition(".")[0])) and str(path.relative_to(LAYER)) not in kind.found_in
    ]
    assert strangers == []


def test_each_code_that_raises_a_finding_gives_the_fields_of_its_sentence_and_no_others() -> None:
    checked, wrong = set(), []
    for path in PRODUCT:
        for call in _calls(path):
            name, _, method = _name(call.func).rpartition(".")
            if method == "about" and name in KINDS:
                given = {keyword.arg for keyword in call.keywords} - {"case"}
                checked.add(name)
                if given != _fields(KINDS[name]):
                    wrong.append(f"{path}:{call.lineno} {name}: {sorted(map(str, given ^ _fields(KINDS[name])))}")
    assert wrong == []
    # Those about a quota that is left alone are all raised by one line, with the quota's own fields.
    notes = {"team", "quota", "status", "governed", "reason", "recovery", "who", "before", "after", "settings", "tool"}
    assert all(_fields(KINDS[name]) <= notes for name in KINDS.keys() - checked), KINDS.keys() - checked


def test_every_finding_says_what_it_means_and_what_to_do_and_has_evidence() -> None:
    assert [name for name, kind in KINDS.items() if not (kind.means and kind.sentence and kind.remedy)] == []
    abouts = [(path, call) for path in PRODUCT for call in _calls(path) if _name(call.func).endswith(".about")]
    assert len(abouts) >= len(KINDS) - 10
    empty = [
        f"{path}:{call.lineno}" for path, call in abouts if isinstance(call.args[1], ast.Dict) and not call.args[1].keys
    ]
    assert empty == []


def _row(kind: FindingKind) -> str:
    where = ", ".join(f"`{place}`" for place in kind.found_in)
    said = f"{full_sentence(_shown(kind.sentence))}<br>→ {full_sentence(_shown(kind.remedy))}"
    return f"| `{kind.code}` | {_severity(kind)} | {kind.means} | {said} | {where} |"


def _severity(kind: FindingKind) -> str:
    return kind.severity.value if isinstance(kind.severity, Severity) else kind.severity.words


def _shown(template: str) -> str:
    """Return a template with its fields as words."""
    return "".join(text + (f"{{{name.replace('_', ' ')}}}" if name else "") for text, name in _pieces(template))


def _fields(kind: FindingKind) -> set[str]:
    return {name for template in (kind.sentence, kind.remedy) for _, name in _pieces(template) if name}


def _pieces(template: str) -> Iterator[tuple[str, str]]:
    """Split a template into texts, each with the name of the field that follows it, or with nothing."""
    for text, name, _, _ in Formatter().parse(template):
        yield text, name or ""


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def _calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in _nodes(path) if isinstance(node, ast.Call))


def _name(function: ast.expr) -> str:
    """Return a name with its dots; nothing for what is no name."""
    match function:
        case ast.Name():
            return function.id
        case ast.Attribute():
            return f"{_name(function.value)}.{function.attr}"
        case _:
            return ""
