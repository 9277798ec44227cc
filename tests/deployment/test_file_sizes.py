"""A product file that a person reads at one sitting: at most 300 lines."""

from tests.support.imports import LAYER, ROOT, WORKSTATION

MOST = 300


def test_no_product_file_is_longer_than_300_lines() -> None:
    files = [path for folder in (LAYER, WORKSTATION, ROOT / "functions") for path in folder.rglob("*.py")]
    assert len(files) > 300
    longer = sorted(str(path.relative_to(ROOT)) for path in files if len(path.read_text().splitlines()) > MOST)
    assert longer == [], "split it by the questions that it answers"
