"""A real Chromium for tests of pages, and axe-core to look at them.

Needs Chromium: Debian's package `chromium`, or any that `TALLYSTICK_TEST_CHROMIUM` names; and npm,
which fetches axe-core (MPL-2.0, by its lock in `tests/e2e/pages/axe/`) into `.venv/axe` once.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, sync_playwright

ROOT = Path(__file__).parents[3]
CHROMIUM = os.environ.get("TALLYSTICK_TEST_CHROMIUM") or shutil.which("chromium")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SCREENSHOTS = os.environ.get("TALLYSTICK_SCREENSHOTS")
"""A folder: the pictures in the documents are made by the tests."""
AXE_LOCK = ROOT / "tests" / "e2e" / "pages" / "axe"
AXE = ROOT / ".venv" / "axe"


@contextmanager
def browser_in(folder: Path) -> Generator[BrowserContext, None, None]:
    """A browser with a profile of its own."""
    with sync_playwright() as playwright:
        assert CHROMIUM is not None
        context = playwright.chromium.launch_persistent_context(
            folder / "profile",
            executable_path=CHROMIUM,
            args=list(QUIET),
            viewport={"width": 1200, "height": 1400},
            accept_downloads=True,
        )
        yield context
        context.close()


@contextmanager
def browsing(folder: Path) -> Generator[Page, None, None]:
    """One page in a browser of its own."""
    with browser_in(folder) as context:
        yield new_page(context)


def new_page(context: BrowserContext) -> Page:
    page = context.new_page()
    page.set_default_timeout(30_000)
    return page


def pictured(page: Page, name: str, *, whole: bool = True) -> None:
    """A picture for the documents, where a folder for them is named; else than `whole`, only what
    is seen without scrolling.
    """
    if SCREENSHOTS:
        page.wait_for_timeout(300)
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", full_page=whole)


@cache
def axe() -> str:
    """The script of axe-core, which runs in a page and tells what is wrong with it."""
    script = AXE / "node_modules" / "axe-core" / "axe.min.js"
    AXE.mkdir(parents=True, exist_ok=True)
    with (AXE / "lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        lock = (AXE_LOCK / "package-lock.json").read_bytes()
        kept = AXE / "package-lock.json"
        if not script.is_file() or kept.read_bytes() != lock:
            for name in ("package.json", "package-lock.json"):
                shutil.copyfile(AXE_LOCK / name, AXE / name)
            subprocess.run(
                ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"],
                cwd=AXE,
                check=True,
                timeout=120,
            )
    return script.read_text(encoding="utf-8")
