"""Photograph the audit report: on a desk in the light, on a phone in the dark, and printed."""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Literal

from tests.browser.opening import NONE, chromium

if TYPE_CHECKING:
    from pathlib import Path

SHOTS: Final[tuple[tuple[str, int, int, Literal["light", "dark"], Literal["screen", "print"]], ...]] = (
    ("report-desk.png", 1180, 2000, "light", "screen"),
    ("report-phone.png", 390, 2040, "dark", "screen"),
    ("report-print.png", 794, 1123, "dark", "print"),
)
"""File, width and height of what is seen, the reader's choice, and the medium: A4."""


def photograph(page: bytes, folder: Path) -> None:
    """Write the photographs; without Chromium say so and write none."""
    binary = chromium()
    if binary is None:
        print(f"SKIPPED: photographs of the report, {NONE}", file=sys.stderr)
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- only here, and large

    with TemporaryDirectory() as temporary, sync_playwright() as playwright:
        html = folder.__class__(temporary) / "report.html"
        html.write_bytes(page)
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox", "--hide-scrollbars"])
        for name, width, height, scheme, medium in SHOTS:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            shot = context.new_page()
            shot.goto(html.as_uri())
            shot.emulate_media(media=medium)
            if medium == "print":
                shot.evaluate("dispatchEvent(new Event('beforeprint'))")
                shot.add_style_tag(content="body { margin: 10mm }")  # as of the paper
            shot.screenshot(path=folder / name)
        browser.close()
