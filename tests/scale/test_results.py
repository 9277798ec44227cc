"""What was measured last is what docs/scale.md shows, and functions have time and memory for it."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.scale import results
from benchmarks.scale.functions import BUDGETED, FULL, FUNCTION_OF, Fit, fits
from benchmarks.scale.measured import AIMS, ALL, Aim, Measured
from benchmarks.scale.results import PAGE, sections, stored
from tests.support.golden import assert_section
from tests.template.conftest import load

ROWS = stored()
ONE_SHAPE = "plan_quotas: one shape"
FACTS = {"commit", "date", "processor", "python", "scale"}


def test_every_row_is_in_the_file_with_what_it_was_measured_on() -> None:
    assert [row["row"] for row in ROWS] == list(ALL)
    for row in ROWS:
        assert {"row", "ratio", "cpuSeconds", "rssMiB", "exponent"} | FACTS <= row.keys()
        assert not str(row["commit"]).endswith("+"), "measured with changes that are in no commit"
        assert 0 < row["scale"] <= 1


def test_facts_name_the_machine_with_its_size() -> None:
    facts = results.facts(1)
    assert facts.keys() == FACTS | {"cores", "memoryGiB"}
    assert facts["cores"] >= 1
    assert facts["memoryGiB"] > 0.5


def test_the_page_shows_the_file() -> None:
    for name, table in sections(ROWS).items():
        assert_section(PAGE, name, table)


FITS = list(fits(ROWS, load().resources_of("AWS::Lambda::Function")))


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: f"{fit.function}-{fit.row}")
def test_a_function_has_time_and_memory_for_full_size(fit: Fit) -> None:
    """Of rows with a budget of model steps only what was measured at full size is known."""
    assert fit.fits or (fit.row in BUDGETED and not fit.measured)


def missed(row: dict[str, Any]) -> list[str]:
    """Return which aims a row of full size misses."""
    aim = AIMS.get(row["row"], Aim())
    memory = row["counts"].get("rssMiBBefore", aim.memory)
    limits = {"ratio": aim.ratio, "rssMiB": memory, "exponent": aim.exponent}
    found = [name for name, most in limits.items() if most is not None and (row[name] is None or row[name] > most)]
    is_predicted = row["row"] != ONE_SHAPE or row["counts"]["complete"]
    return found if is_predicted else [*found, "complete"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["row"])
def test_what_was_measured_at_full_size_meets_its_aims(row: dict[str, Any]) -> None:
    assert row["scale"] == 1
    assert missed(row) == []


@pytest.mark.parametrize("name", AIMS)
def test_a_row_that_misses_an_aim_is_found(name: str) -> None:
    (row,) = [row for row in ROWS if row["row"] == name]
    high = {**row, "ratio": 10**6, "rssMiB": 10**6, "exponent": 3}
    aim, has_memory = AIMS[name], AIMS[name].memory is not None or "rssMiBBefore" in row["counts"]
    assert missed(high) == [
        *(["ratio"] if aim.ratio is not None else []),
        *(["rssMiB"] if has_memory else []),
        *(["exponent"] if aim.exponent is not None else []),
    ]
    assert missed({**row, "ratio": None, "exponent": None})


def test_a_plan_for_queues_of_one_shape_that_is_not_fully_predicted_is_found() -> None:
    (row,) = [row for row in ROWS if row["row"] == ONE_SHAPE]
    assert missed({**row, "counts": {**row["counts"], "complete": False}}) == ["complete"]


MEGABYTES = {
    ("read_snapshot", "bytes"): 92,
    ("plan_quotas", "planBytes"): 36,
    ("publish_usage", "useBytes"): 5,
    ("publish_usage", "workloadsBytes"): 1.25,
    ("audit_cluster", "reportBytes"): 44,
    ("audit_cluster", "pageBytes"): 3,
}
"""A row, and the most bytes of what its work keeps in S3 at full size, which the page's table of sizes says."""


@pytest.mark.parametrize(("name", "kept"), MEGABYTES)
def test_what_is_kept_in_s3_is_no_larger_than_the_page_says(name: str, kept: str) -> None:
    (row,) = [row for row in ROWS if row["row"] == name]
    assert 0 < row["counts"][kept] <= MEGABYTES[name, kept] * 1e6


def test_every_row_with_an_aim_is_a_row() -> None:
    assert AIMS.keys() <= set(ALL)
    assert FUNCTION_OF.keys() <= set(ALL)


def a_row(*points: tuple[int, float, float]) -> Measured:
    figures = [
        (size, {"cpuSeconds": cpu, "rssMiB": memory, "yardstickSeconds": 0.5, "changes": size})
        for size, cpu, memory in points
    ]
    return Measured("read_snapshot", figures)


def test_a_row_has_the_figures_of_its_largest_size() -> None:
    found = a_row((25, 1, 100), (50, 2, 120), (100, 4, 160)).to_json()
    assert found == {
        "row": "read_snapshot",
        "ratio": 8,
        "cpuSeconds": 4,
        "rssMiB": 160,
        "exponent": 1,
        "sizes": [25, 50, 100],
        "cpuSecondsBySize": [1, 2, 4],
        "rssMiBBySize": [100, 120, 160],
        "counts": {"changes": 100},
    }


def test_what_was_not_measured_at_full_size_is_extrapolated_and_said_to_be() -> None:
    settings = {name: {"MemorySize": 1769, "Timeout": 100} for name in FUNCTION_OF.values()}
    linear, square, full = (
        a_row((50, 2, 120), (100, 4, 160)),
        a_row((50, 1, 120), (100, 4, 120)),
        a_row((500, 30, 900), (FULL, 50, 1000)),
    )

    def fit(row: Measured) -> Fit:
        rows = [{**row.to_json(), "row": name} for name in FUNCTION_OF]
        return next(fits(rows, settings))

    assert (fit(linear).seconds, fit(linear).mebibytes, fit(linear).measured) == (40, 880, False)
    assert fit(square).seconds == pytest.approx(4 * 100)
    assert not fit(square).fits
    of_plan = next(fits([{**linear.to_json(), "row": "plan_quotas"}], settings))
    assert (of_plan.seconds, of_plan.mebibytes, of_plan.fits) == (None, None, False)
    assert (fit(full).seconds, fit(full).mebibytes, fit(full).measured) == (50, 1000, True)
    assert fit(full).fits


def test_less_than_a_processor_leaves_less_time() -> None:
    half = Fit("f", "read_snapshot", 31, 10, memory=1769 // 2, timeout=100, measured=True)
    assert half.seconds_left == pytest.approx(30, rel=0.01)
    assert not half.fits
    assert Fit("f", "read_snapshot", 61, 10, memory=10_240, timeout=100, measured=True).seconds_left == 60


def test_rows_that_are_measured_again_replace_theirs_and_keep_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, page = tmp_path / "results.json", tmp_path / "scale.md"
    page.write_text("".join(f"<!-- begin {name} -->\n\n<!-- end {name} -->\n" for name in ("measured", "functions")))
    monkeypatch.setattr(results, "RESULTS", file)
    monkeypatch.setattr(results, "PAGE", page)
    about = {"scale": 0.1, "commit": "c", "date": "2026-11-20", "python": "3.13"}
    about |= {"processor": "p", "cores": 2, "memoryGiB": 7.8}
    first, second = ({**a_row((50, 1, 1), (100, cpu, 1)).to_json()} for cpu in (2, 4))
    results.keep([{**first, "row": "status"}, first], about)
    results.keep([second], {**about, "scale": 1})
    assert [(row["row"], row["cpuSeconds"], row["scale"]) for row in results.stored()] == [
        ("read_snapshot", 4, 1),
        ("status", 2, 0.1),
    ]
    text = page.read_text()
    assert "| `read_snapshot` | 100 | 8 | 4 | 4.00 | 1 | 600 | 2 | 1.1 |" in text
    assert "* `status`: scale 0.1, 2026-11-20, commit c, Python 3.13, p, 2 cores, 7.8 GiB." in text
    assert "| `ReadSnapshotFunction` |" in text
    assert "PlanQuotasFunction" not in text, "its row was not measured"
