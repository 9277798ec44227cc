"""Check a CSV with focus-validator, in its own environment: `.venv-focus/bin/python tests/focus/check.py FILE`.

It prints each rule of FOCUS 1.0 that is broken, and ends with 1 when one is. What of focus-validator 1.0.0, the last
release for Python 3.11, does not fit its own specification is put right here, and nothing else:

* A CSV has no types: it takes an account number for an integer. The columns are given with the types that FOCUS has.
* It looks for four columns under the names of the draft.
* The file of currencies that one of its rules reads is not in the package: two of them are given here.
* One rule reads a column (`ChargeType`) that FOCUS 1.0 calls `ChargeCategory`: it is not run. `test_focus.py` does.
"""

import sys

import pandas as pd
from focus_validator.rules import checks
from focus_validator.rules.spec_rules import SpecRules
from focus_validator.validator import DEFAULT_VERSION_SETS_PATH

DRAFT = {
    "InvoiceIssuerName": "InvoiceIssuer",
    "ProviderName": "Provider",
    "PublisherName": "Publisher",
    "ResourceId": "ResourceID",
}
NOT_RUN = "SkuPriceId_Nullable"
CURRENCIES = {"EUR", "USD"}
NUMBERS = ("Cost", "Price", "Quantity")


def main(file: str) -> int:
    """Check a file, and return how the command ends."""
    table = pd.read_csv(file, dtype=str, keep_default_na=False).replace("", None)
    for name in table.columns:
        if name.endswith(NUMBERS):
            table[name] = table[name].astype(float)
    rules = SpecRules(None, DEFAULT_VERSION_SETS_PATH, "1.0", column_namespace=None)
    rules.load()
    rules.rules = [rule for rule in rules.rules if rule.check_id != NOT_RUN]
    checks.get_currency_codes = lambda: CURRENCIES
    results = rules.validate(focus_data=table.rename(columns=DRAFT))
    results.process_result()
    kept = [name for name, rule in results.checklist.items() if rule.status.value == "passed"]
    broken = sorted(name for name, rule in results.checklist.items() if rule.status.value not in {"passed", "skipped"})
    print("\n".join(broken) or f"{len(table)} charges keep {len(kept)} rules of FOCUS 1.0")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
