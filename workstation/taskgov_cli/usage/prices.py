"""What does an hour of an accelerator cost? Prices from a file, by instance type.

YAML:  currency: EUR
       acceleratorHour: {ml.p5.48xlarge: 4.90, ml.g5.12xlarge: 1.10}

CSV:   instanceType,acceleratorHour,currency
       ml.p5.48xlarge,4.90,EUR
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_COLUMNS: Final = ("instanceType", "acceleratorHour", "currency")
MOST: Final = Decimal(1_000_000)
DECIMALS: Final = 9


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of an hour of one accelerator (of types without accelerators: of one core)."""

    currency: str
    hour: Mapping[str, Decimal]
    """Instance type -> price."""


def read_prices(path: Path) -> Prices:
    """Read a file of prices; by its ending it is CSV, else YAML. Raises `ValueError`, `OSError`.

    The sentence names everything that is wrong, its value and the rule.
    """
    text = path.read_text(encoding="utf-8-sig")
    return _of_csv(text) if path.suffix.lower() == ".csv" else _of_yaml(text)


def _of_yaml(text: str) -> Prices:
    try:
        read = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"it is not YAML: {error}") from error
    if not isinstance(read, dict) or read.keys() != {"currency", "acceleratorHour"}:
        raise ValueError("it must have exactly the members currency and acceleratorHour")
    prices = read["acceleratorHour"]
    if not isinstance(prices, dict):
        raise ValueError(  # noqa: TRY004 -- what a file holds is a value
            f"acceleratorHour is {prices!r}: it is a mapping from instance types to prices"
        )
    return _prices({str(read["currency"])}, prices.items())


def _of_csv(text: str) -> Prices:
    reader = csv.DictReader(text.splitlines())
    try:
        names_of_columns, rows = tuple(reader.fieldnames or ()), list(reader)
    except csv.Error as error:
        raise ValueError(f"it is not CSV: {error}") from error
    if names_of_columns != _COLUMNS:
        raise ValueError(f"its first line is {reader.fieldnames}: the columns are {', '.join(_COLUMNS)}")
    prices = [(row["instanceType"], row["acceleratorHour"]) for row in rows]
    names = [name for name, _ in prices]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"instanceType {twice} has two lines, but may have only one")
    return _prices({str(row["currency"]) for row in rows}, prices)


def _prices(currencies: set[str], prices: Iterable[tuple[Any, Any]]) -> Prices:
    wrong = []
    if len(currencies) != 1 or not all(map(_CURRENCY.fullmatch, currencies)):
        shown = ", ".join(sorted(currencies)) or "missing"
        wrong.append(f"currency is {shown}: it is one code of three capital letters (ISO 4217)")
    hour = {}
    for name, price in prices:
        number = _price(price)
        hour[str(name)] = number
        if number is None:
            wrong.append(
                f"the price of {name} is {price!r}: it is a number from 0 to {MOST:,} with up to {DECIMALS} decimals"
            )
    if wrong:
        raise ValueError("; ".join(wrong))
    return Prices(currencies.pop(), {name: number for name, number in hour.items() if number is not None})


def _price(price: Any) -> Decimal | None:
    """Return a price; None for what is not one."""
    try:
        number = Decimal(str(price))
    except InvalidOperation:
        return None
    exponent = number.as_tuple().exponent
    is_short = isinstance(exponent, int) and exponent >= -DECIMALS
    return None if isinstance(price, bool) or not is_short or not 0 <= number <= MOST else number
