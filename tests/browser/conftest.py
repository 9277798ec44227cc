"""A headless Chromium, once for all tests here; skipped with a reason where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.opening import NONE, Opened, chromium

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from taskgov.audit.report import Report


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the machine's Chromium, driven over its debugging protocol."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: make test-browser installs it")
    binary = chromium()
    if binary is None:
        pytest.skip(NONE)
    with sync_api.sync_playwright() as playwright:
        # Chromium's own sandbox needs a user other than root, and the page is ours.
        found = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Return what opens a report as a file; the options are those of a browser context."""
    contexts = []

    def opened(report: Report, **options: object) -> Opened:
        context = browser.new_context(**options)
        contexts.append(context)
        return Opened(context.new_page(), report, tmp_path / f"report-{len(contexts)}.html")

    yield opened
    for context in contexts:
        context.close()
