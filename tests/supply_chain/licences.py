"""Add the licence that each package declares to a bill of materials.

    python -m cyclonedx_py environment .venv/bin/python | python -m tests.supply_chain.licences build/sbom.cdx.json

A bill from requirements has what is pinned, with its hashes, and no licences. The bill of an environment has them, from
the metadata of what is installed there. A package that is not installed there at its very version ends it.
"""

import json
import sys
from pathlib import Path
from typing import Any

Bill = dict[str, Any]


def with_licences(bill: Bill, installed: Bill) -> Bill:
    """Return the bill with the licences of the same packages, by name and version. Raises ValueError without any."""
    known = {one["purl"]: one["licenses"] for one in installed["components"] if one.get("licenses") and "purl" in one}
    missing = sorted(one["purl"] for one in bill["components"] if one["purl"] not in known)
    if missing:
        raise ValueError(f"no licence is known of {', '.join(missing)}: bring requirements/dev.txt up to date")
    components = [dict(sorted({**one, "licenses": known[one["purl"]]}.items())) for one in bill["components"]]
    return {**bill, "components": components}


def main() -> None:
    """Add licences to the bill whose path is given, from the bill on standard input."""
    path = Path(sys.argv[1])
    bill = with_licences(json.loads(path.read_text()), json.load(sys.stdin))
    path.write_text(json.dumps(bill, indent=2) + "\n")


if __name__ == "__main__":
    main()
