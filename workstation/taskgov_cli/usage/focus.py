"""Hours and prices with the column names of FOCUS, the FinOps Open Cost and Usage Specification (1.0).

<https://focus.finops.org/focus-specification/v1-0/>. A charge is what a team used, or left idle of its guarantee, of
one instance type in one period; capacity that no quota guarantees is a charge of nobody. Time that was not measured is
not charged. Columns that say nothing here are there, and empty, as the specification asks; ours begin with `x_`.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from taskgov.work.day import stamp
from taskgov_cli.usage.rows import NOT_MEASURED, OVERCOMMITTED, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from decimal import Decimal

    from taskgov_cli.usage.prices import Prices

VERSION: Final = "1.0"
EMPTY: Final = (
    "AvailabilityZone",
    "ChargeClass",
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "RegionName",
)
"""Columns that have to be there, and are empty here."""
_WHO: Final = "taskgov"


@dataclass(frozen=True, slots=True)
class Account:
    """The account that is charged."""

    cluster: str
    arn: str

    @property
    def region(self) -> str:
        """The Region of the cluster."""
        return self.arn.split(":")[3]

    @property
    def account(self) -> str:
        """The AWS account of the cluster."""
        return self.arn.split(":")[4]


def focus_csv(rows: Iterable[Row], account: Account, prices: Prices) -> str:
    """Return the charges as CSV; without any there are the columns. Raises `ValueError` for a type without a price."""
    charges = [charge for row in rows for charge in _charges(row, account, prices)]
    out = io.StringIO()
    columns = sorted(_charge(_NO_ROW, "used", _NO_ROW.used, account, prices, _NO_ROW.used))
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(charges)
    return out.getvalue()


_NO_ROW: Final = Row(datetime(2026, 1, 1), datetime(2026, 1, 2), "", "", "", time=0)  # type: ignore[arg-type]  # noqa: DTZ001


def _charges(row: Row, account: Account, prices: Prices) -> Iterator[dict[str, str]]:
    if row.team in {NOT_MEASURED, OVERCOMMITTED}:
        return
    price = prices.hour.get(row.instance_type)
    if price is None:
        known = ", ".join(sorted(prices.hour)) or "none"
        raise ValueError(f"there is no price of {row.instance_type}; there are prices of: {known}")
    for use, hours in (("used", row.used), ("idle", row.idle)):
        if hours:
            yield _charge(row, use, hours, account, prices, price)


def _charge(row: Row, use: str, hours: Decimal, account: Account, prices: Prices, price: Decimal) -> dict[str, str]:
    cost, number = f"{hours * price:f}", f"{hours:f}"
    start = row.start.replace(day=1, hour=0, minute=0, second=0)
    unit = "Core-Hours" if row.resource == "cpu" else "GPU-Hours"
    return dict.fromkeys(EMPTY, "") | {
        "BilledCost": cost,
        "BillingAccountId": account.account,
        "BillingAccountName": account.cluster,
        "BillingCurrency": prices.currency,
        "BillingPeriodStart": stamp(start),
        "BillingPeriodEnd": stamp((start + timedelta(days=32)).replace(day=1)),
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{row.instance_type}: quota {use} by {row.team}",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": stamp(row.start),
        "ChargePeriodEnd": stamp(row.end),
        "ConsumedQuantity": number,
        "ConsumedUnit": unit,
        "ContractedCost": cost,
        "ContractedUnitPrice": f"{price:f}",
        "EffectiveCost": cost,
        "InvoiceIssuerName": _WHO,
        "ListCost": cost,
        "ListUnitPrice": f"{price:f}",
        "PricingCategory": "Standard",
        "PricingQuantity": number,
        "PricingUnit": unit,
        "ProviderName": _WHO,
        "PublisherName": _WHO,
        "RegionId": account.region,
        "ResourceId": account.arn,
        "ResourceName": account.cluster,
        "ResourceType": row.instance_type,
        "ServiceCategory": "AI and Machine Learning",
        "ServiceName": "GPU quota",
        "SkuId": f"{row.instance_type}/{row.resource}",
        "SkuPriceId": f"{row.instance_type}/{row.resource}",
        "SubAccountId": row.team,
        "SubAccountName": row.team,
        "Tags": json.dumps({"team": row.team, "use": use}),
        "x_Borrowed": f"{row.borrowed:f}" if use == "used" else "",
        "x_Guaranteed": f"{row.guaranteed:f}",
        "x_Lent": f"{row.lent:f}",
        "x_MeasuredHours": f"{row.time:f}",
        "x_Use": use,
    }
