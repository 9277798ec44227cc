"""Where is Chromium, and what happens when a report is opened in it?"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Final

from taskgov.audit.report_html import report_html

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Dialog, Page

    from taskgov.audit.report import Report

GIVEN: Final = "TASKGOV_CHROMIUM"
NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NONE: Final = f"no Chromium here: install one (apt-get install chromium), or say where it is with {GIVEN}"

CONTRAST: Final = """
() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = numbers(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const element = walker.currentNode.parentElement;
    if (!text || ["SCRIPT", "STYLE", "CAPTION"].includes(element.tagName) || !element.checkVisibility()) continue;
    const back = behind(element);
    let solid = 1;
    for (let each = element; each; each = each.parentElement) solid *= Number(getComputedStyle(each).opacity);
    const ink = numbers(getComputedStyle(element).color).slice(0, 3).map((v, i) => v * solid + back[i] * (1 - solid));
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), text]);
  }
  return found.sort((x, y) => x[0] - y[0])[0];
}
"""
"""Finds the text that stands out least from what is behind it: its contrast (WCAG 2.2, 1.4.3), and the text."""


def chromium() -> str | None:
    """Return the path of Chromium, or None."""
    given = os.environ.get(GIVEN)
    return given or next((found for name in NAMES if (found := shutil.which(name))), None)


class Opened:
    """A report in a browser, with everything that it asked for and complained of."""

    def __init__(self, page: Page, report: Report, file: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.requests.append(request.url))
        file.write_bytes(report_html(report))
        self.url = file.as_uri()
        page.goto(self.url)

    def _refuse(self, dialog: Dialog) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def column(self, table: str, heading: str) -> list[str]:
        """Return a column's cells from top to bottom."""
        number = self.headings(table).index(heading) + 1
        cells: list[str] = self.page.locator(f"#{table} tbody td:nth-child({number})").all_inner_texts()
        return cells

    def headings(self, table: str) -> list[str]:
        """Return a table's headings."""
        labels: list[str] = self.page.locator(f"#{table} th").all_inner_texts()
        return labels

    def heading(self, table: str, label: str) -> Any:
        """Return a heading's button."""
        return self.page.locator(f"#{table} thead").get_by_role("button", name=label, exact=True)

    def widths(self) -> tuple[int, int]:
        """Return how wide the content is, and how wide the window."""
        content, window = self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        return content, window
