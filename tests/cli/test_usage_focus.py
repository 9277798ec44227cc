"""Prices, and charges with the column names of FOCUS."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from taskgov.work.measured import Span
from taskgov.work.standing import Standing
from taskgov_cli.form import Form
from taskgov_cli.main import app
from taskgov_cli.usage.command import By, Shown, together
from taskgov_cli.usage.focus import EMPTY, Account, focus_csv
from taskgov_cli.usage.hours import usage_of
from taskgov_cli.usage.prices import Prices, read_prices
from taskgov_cli.usage.rows import NOT_PROMISED, rows_of
from tests.cli.test_usage_hours import G5, KIND, at, done, line

if TYPE_CHECKING:
    from pathlib import Path

    from taskgov_cli.usage.rows import Row

ACCOUNT = Account("ml-cluster", "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl")
PRICES = Prices("USD", {G5: Decimal("1.418")})


def rows(prices: Prices | None = PRICES) -> list[Row]:
    standing = Standing(at(0), {("a", *KIND): line(8, 10, borrowed=2), ("b", *KIND): line(4, 1, lent=2)}, {KIND: 16})
    usage, ends = together(usage_of(done([standing], Span(at(0), at(200)))), By.HOUR)
    return list(rows_of(usage, ends, prices))


def charges_csv() -> str:
    return focus_csv(rows(), ACCOUNT, PRICES)


def charges() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(charges_csv())))


def test_what_is_charged_is_the_capacity_that_was_measured() -> None:
    """Used by somebody, idle in somebody's guarantee, or promised to nobody: each accelerator hour is charged once."""
    total = sum(Decimal(charge["BilledCost"]) for charge in charges())
    assert abs(total - Decimal(16 * 200) / 60 * Decimal("1.418")) < Decimal("0.00001")
    assert {(charge["SubAccountName"], charge["x_Use"]) for charge in charges()} == {
        ("a", "used"),
        ("b", "used"),
        ("b", "idle"),
        (NOT_PROMISED, "idle"),
    }


def test_hours_beyond_the_capacity_are_charged_and_named() -> None:
    standing = Standing(at(0), {("a", *KIND): line(8, 8), ("b", *KIND): line(4, 0)}, {KIND: 10})
    usage, ends = together(usage_of(done([standing], Span(at(0), at(60)))), By.HOUR)
    some = list(rows_of(usage, ends, PRICES))
    charged = csv.DictReader(io.StringIO(focus_csv(some, ACCOUNT, PRICES)))
    assert sum(Decimal(charge["ConsumedQuantity"]) for charge in charged) == 12
    shown = Shown("ml-cluster", PRICES, Form.TABLE, By.HOUR)
    assert [text.plain for text in shown.beyond_capacity(some)] == [
        "2.00 hours beyond the capacity are guaranteed or held, and charged."
    ]
    assert list(shown.beyond_capacity(rows())) == []


def test_a_charge_says_whose_what_and_when() -> None:
    first = charges()[0]
    assert json.loads(first["Tags"]) == {"team": "a", "use": "used"}
    assert (first["BillingPeriodStart"], first["BillingPeriodEnd"]) == ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z")
    assert (first["ChargePeriodStart"], first["ChargePeriodEnd"]) == ("2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z")
    assert (first["ConsumedQuantity"], first["ConsumedUnit"], first["BilledCost"]) == ("10", "GPU-Hours", "14.180")
    assert (first["RegionId"], first["BillingAccountId"]) == ("us-east-1", "111122223333")
    assert all(first["SkuPriceId"] and not any(charge[name] for name in EMPTY) for charge in charges())


def test_without_a_charge_there_are_the_columns() -> None:
    assert focus_csv([], ACCOUNT, PRICES) == charges_csv().splitlines()[0] + "\n"


def test_a_type_without_a_price_is_named() -> None:
    with pytest.raises(ValueError, match=rf"there is no price of {G5}; there are prices of: none"):
        focus_csv(rows(), ACCOUNT, Prices("USD", {}))


YAML = f"currency: EUR\nacceleratorHour: {{{G5}: 1.418, ml.p5.48xlarge: 4}}\n"
CSV = f"instanceType,acceleratorHour,currency\n{G5},1.418,EUR\nml.p5.48xlarge,4,EUR\n"


@pytest.mark.parametrize(("name", "text"), [("prices.yaml", YAML), ("prices.csv", CSV), ("prices.csv", f"\ufeff{CSV}")])
def test_prices_are_read(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert read_prices(file) == Prices("EUR", {G5: Decimal("1.418"), "ml.p5.48xlarge": Decimal(4)})


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("p.yaml", "currency: [", "it is not YAML"),
        ("p.yaml", "[" * 1000, "it is not YAML"),
        ("p.csv", CSV + "x" * 200_000 + ",2,EUR\n", "it is not CSV"),
        ("p.yaml", "currency: EUR\nacceleratorHour: {a: 1e-999999}", "with up to 9 decimals"),
        ("p.yaml", "1", "it must have exactly the members currency and acceleratorHour"),
        ("p.yaml", "currency: EUR\nacceleratorHour: 4", "acceleratorHour is 4: it is a mapping"),
        ("p.yaml", "currency: euro\nacceleratorHour: {}", "currency is euro: it is one code of three capital letters"),
        (
            "p.yaml",
            "currency: EUR\nacceleratorHour: {a: -1}",
            "the price of a is -1: it is a number from 0 to 1,000,000",
        ),
        ("p.yaml", "currency: EUR\nacceleratorHour: {a: yes}", "the price of a is True"),
        ("p.yaml", "currency: EUR\nacceleratorHour: {a: .nan}", "the price of a is nan"),
        ("p.csv", "a,b\n", "its first line is ['a', 'b']: the columns are instanceType, acceleratorHour, currency"),
        ("p.csv", f"{CSV}{G5},2,EUR\n", f"instanceType {G5} has two lines, but may have only one"),
        ("p.csv", f"{CSV}x,2,USD\n", "currency is EUR, USD: it is one code"),
        ("p.csv", f"{CSV}x,2\n", "currency is EUR, None"),
        (
            "p.yaml",
            "currency: e\nacceleratorHour: {a: -1, b: x}",
            "(ISO 4217); the price of a is -1: it is a number from",
        ),
        ("p.yaml", "currency: e\nacceleratorHour: {a: -1, b: x}", "; the price of b is 'x'"),
        ("p.csv", f"{CSV}x,dear,EUR\n", "the price of x is 'dear'"),
    ],
)
def test_prices_that_cannot_be_read_say_why(tmp_path: Path, name: str, text: str, says: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ValueError, match=re.escape(says)):
        read_prices(file)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--month", "november"), "'november' is not a month such as 2026-11"),
        (("--month", "2026-11", "--from", "2026-11-01"), "--month and --from or --to exclude each other"),
        (("--to", "2026-11-01"), "--to 2026-11-01 needs --from"),
        (("--from", "soon"), "'soon' is not a time such as 2026-11-20"),
        (("--from", "2026-11-02", "--to", "2026-11-01"), "2026-11-02 is not before --to 2026-11-01"),
        (("--from", "2006-11-02", "--to", "2026-11-01"), "2006-11-02 is more than 3660 days before the end"),
        (("--focus",), "--focus needs a cost in each row: give --prices"),
        (("--by", "week"), "'week' is not one of 'hour', 'day', 'all'"),
    ],
)
def test_what_is_not_understood_is_said_before_anything_is_asked(arguments: tuple[str, ...], says: str) -> None:
    result = CliRunner().invoke(app, ("usage", "ml-cluster", *arguments))
    assert result.exit_code == 2
    assert says in unfolded(result.stderr)


def unfolded(text: str) -> str:
    return " ".join(re.findall(r"[^\s│]+", text))


def test_focus_is_a_csv_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(YAML)
    result = CliRunner().invoke(app, ("usage", "ml-cluster", "--focus", "--prices", str(file), "--json"))
    assert (result.exit_code, "leave out --format and --json" in unfolded(result.stderr)) == (2, True)
    file.write_text("1")
    result = CliRunner().invoke(app, ("usage", "ml-cluster", "--prices", str(file)))
    assert (result.exit_code, "cannot be read" in unfolded(result.stderr)) == (2, True)
