"""Every page that a visitor can click to, looked at as four readers see it.

`crawl` begins at the home page and only clicks: each link of each kind of page once at both widths,
back with the browser's own button. At each page it finds: the page scrolls sideways, axe-core's
violations, what the browser complains of (errors of scripts, of the policy, of loading), and
answers that are no page. Links to rows are alike: of each kind of target that a page has, the
first is clicked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Locator, Page

from tests.e2e.pages.browser import axe

WIDTHS = (1280, 360)
HEIGHT = 900
SCHEMES = ("light", "dark")
MENU_MAX = 880
"""The width up to which the menu is behind a button."""
FILES = (".json", ".csv", ".pdf", ".parquet", ".jsonl", ".journal", ".txt", ".tlog-proof")
_ROW = re.compile(r"(?<=/)(?:[a-z]+_[0-9a-f]{8,}|\d{4}-\d{2}|\d+)(?=/|$)")
_ALIKE = re.compile(r"^/(docs|problems)/[^/]+$")
_RUN = """async (rules) => {
  const found = await axe.run(document, rules ? {runOnly: rules} : {});
  return found.violations.map((one) =>
    `${one.impact} ${one.id}: ` + one.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' +
      (n.any[0]?.message ?? n.failureSummary ?? '')).join(' | '));
}"""
_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return null;
  const out = [...document.querySelectorAll('main *')].filter((each) =>
    each.getBoundingClientRect().right > width + 1 && !each.closest('.scroll, .cmd, .log'));
  return out.slice(0, 3).map((each) => each.outerHTML.slice(0, 160)).join(' | ') || 'something';
}"""


def kind_of(address: str) -> str:
    """The kind of page of an address: `/bills/2026-11/lines/71` is `/bills/*/lines/*`."""
    path = _ROW.sub("*", urlsplit(address).path)
    return _ALIKE.sub(r"/\1/*", path)


@dataclass
class Crawl:
    """What was seen: `pages` by their kind with the address of the first, `wrong` in sentences.

    `at_page` is called with each page the first time it is seen, for checks of a test's own. Links
    to a kind of page in `leave` are clicked, and the page is not looked at: another crawl does it.
    """

    page: Page
    at_page: Callable[[Page, str], None] | None = None
    leave: frozenset[str] = frozenset()
    pages: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _clicked: set[tuple[str, str]] = field(default_factory=set)
    _looked: set[str] = field(default_factory=set)

    def run(self) -> Crawl:
        """Click through all that can be reached from where the page is."""
        for width in WIDTHS:
            self._clicked.clear()
            self.page.set_viewport_size({"width": width, "height": HEIGHT})
            self._explore(width)
        return self

    def _explore(self, width: int) -> None:
        at, here = self.page.url, kind_of(self.page.url)
        self._look(here)
        for where in ("main", "nav.side", "header.top", "footer.foot"):
            for href in self._hrefs(where):
                # Menu, top and foot are the same on all pages: each of their links once.
                place = here if where == "main" else where
                if (place, kind_of(href)) in self._clicked:
                    continue
                self._clicked.add((place, kind_of(href)))
                if self._click(where, href, width):
                    self._explore(width)
                    self.page.go_back()
                if self.page.url != at:  # the page before is not the one that the link was on
                    self.page.goto(at)

    def _hrefs(self, where: str) -> list[str]:
        found = self.page.locator(f"{where} a[href]").evaluate_all(
            "all => all.map((each) => each.getAttribute('href'))"
        )
        return [href for href in dict.fromkeys(found) if href.startswith("/")]

    def _click(self, where: str, href: str, width: int) -> bool:
        """Whether a page came that was not seen at this width."""
        before = self.page.url
        link = self.page.locator(f'{where} a[href="{href}"]').first
        if not link.count():
            self.wrong.append(f"{before}: {href} is gone when the page is shown again")
            return False
        _uncover(link)
        if where == "nav.side" and width <= MENU_MAX:
            self.page.get_by_role("button", name="Menu").click()
        if urlsplit(href).path.endswith(FILES):
            return self._fetched(href)
        if not link.is_visible():
            return False  # at this width the style sheet leaves it out
        with self.page.expect_navigation() as came:
            link.click()
        if came.value is not None and came.value.status >= 400:
            self.wrong.append(f"{kind_of(before)}: {href} answers {came.value.status}")
        now = kind_of(self.page.url)
        self.pages.setdefault(now, self.page.url)
        if ("seen", now) in self._clicked or now in self.leave:
            self.page.go_back()
            return False
        return True

    def _fetched(self, href: str) -> bool:
        """A file is asked for with the same cookies: clicking it would leave the page or not."""
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(self.page.url))
        answer = self.page.request.get(origin + href)
        may_be_empty = href.endswith(".jsonl")  # one line each, and there may be none
        if answer.status != 200 or not (answer.body() or may_be_empty):
            self.wrong.append(f"{kind_of(self.page.url)}: {href} answers {answer.status}")
        return False

    def _look(self, here: str) -> None:
        self._clicked.add(("seen", here))
        is_new = here not in self._looked
        self._looked.add(here)
        self.pages.setdefault(here, self.page.url)
        size = self.page.viewport_size
        assert size is not None
        for one in inspect(self.page):
            self.wrong.append(f"{here} at {size['width']}: {one}")
        if is_new and self.at_page is not None:
            self.at_page(self.page, here)


def _uncover(link: Locator) -> None:
    """Open every `details` that the link lies in."""
    link.evaluate(
        """each => {
          for (let d = each.closest('details'); d; d = d.parentElement.closest('details'))
            d.open = true;
        }"""
    )


def inspect(page: Page) -> list[str]:
    """What is wrong with the page as it is, in both colour schemes, `details` closed and open."""
    wrong = []
    page.evaluate(axe())
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        # The colours are what the second scheme changes.
        rules = None if scheme == SCHEMES[0] else ["color-contrast"]
        if scheme == SCHEMES[0]:
            page.evaluate(
                "() => document.querySelectorAll('details').forEach((d) => { d.open = true; })"
            )
        wrong += [f"{scheme}, axe: {one}" for one in page.evaluate(_RUN, rules)]
        wide = page.evaluate(_WIDE)
        if wide is not None:
            wrong.append(f"scrolls sideways: {wide}")
    page.emulate_media(color_scheme="light")
    return wrong


@contextmanager
def overheard(page: Page) -> Generator[list[str], None, None]:
    """What the browser complains of while the page is used: scripts, policy, what is missing."""
    said: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            said.append(f"{kind_of(page.url)}: {message.text}")

    def failed(error: Exception) -> None:
        said.append(f"{kind_of(page.url)}: {error}")

    page.on("console", heard)
    page.on("pageerror", failed)
    yield said
    page.remove_listener("console", heard)
    page.remove_listener("pageerror", failed)


def sign_in(page: Page, address: str, key: str, goes_on: str = "/") -> None:
    """As a person does it: from the home page to the form, a key, the button."""
    page.goto(f"http://{address}/")
    page.get_by_role("link", name="Sign in", exact=True).first.click()
    page.locator("#key").fill(key)
    with page.expect_navigation():
        page.get_by_role("button", name="Sign in", exact=True).click()
    if goes_on != "/":
        page.goto(f"http://{address}{goes_on}")


def sign_out(page: Page) -> None:
    """With the button at the top of every page."""
    with page.expect_navigation():
        page.get_by_role("button", name="Sign out").click()
