"""Parts of pages that benchmarks write, between `<!-- begin NAME -->` and `<!-- end NAME -->`."""

from collections.abc import Mapping
from pathlib import Path


def write_sections(page: Path, sections: Mapping[str, str]) -> None:
    """Replace these parts of a page. Raises ValueError for one that the page does not have, and writes nothing then."""
    text = page.read_text()
    for name, section in sections.items():
        begin, end = f"<!-- begin {name} -->\n", f"\n<!-- end {name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"{page} has no section {name!r}")
        text = f"{before}{begin}{section}{end}{after}"
    page.write_text(text)
