"""Every page that a visitor can click to, looked at as four readers see it.

A crawl begins where the page is and opens each kind of page once, by clicking a link to it: from
the page that it is at if that has one, else from the last page that had. There it clicks each kind
of link once, at each width. Such a click is held, so that the page stays: where it leads is opened
later, or asked for with the same cookies. At each page it finds: the page scrolls sideways, what
axe-core finds, what the browser complains of (errors of scripts, of the policy, of loading), links
that are not shown or that no click reaches, and answers that are no page. Links to rows are alike:
of each kind of target that a page has, the first is clicked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import ConsoleMessage, Page

from tests.e2e.pages.browser import axe

Scheme = Literal["light", "dark"]
WIDTHS = (1280, 360)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
HEIGHT = 900
MENU_MAX = 880
"""The width up to which the menu is behind a button."""
MENU = "nav.side"
PLACES = ("main", MENU, "header.top", "footer.foot")
FILES = (".json", ".csv", ".pdf", ".parquet", ".jsonl", ".journal", ".txt", ".tlog-proof")
_ROW = re.compile(r"(?<=/)(?:[a-z]+_[0-9a-f]{8,}|\d{4}-\d{2}|\d+)(?=/|$)")
_ALIKE = re.compile(r"^/(docs|problems)/[^/]+$")
_AXE = """async (rules) => {
  const told = {resultTypes: ['violations'], selectors: false, preload: false};
  const asked = {...told, ...(rules ? {runOnly: rules} : {})};
  const found = await axe.run(document, asked);
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
_OUTLINES = """() => {
  let found = new Set();
  const walk = (each, above) => {
    const empty = each.textContent.trim() ? '' : ' empty';
    const way = `${above}>${each.tagName}.${each.className?.baseVal ?? each.className} ` +
      each.getAttributeNames().filter((name) => name !== 'class').sort().join(' ') + empty;
    found.add(way);
    for (const child of each.children) if (child !== main) walk(child, way);
  };
  const main = document.querySelector('main');
  return [document.body, main].map((each) => {
    found = new Set();
    walk(each, '');
    return [...found].sort().join('\\n');
  });
}"""
"""Of what is around the page and of the page: all ways down to an element, each once, so that five
rows of a table are one.
"""
_UNFOLD = "() => document.querySelectorAll('details').forEach((each) => { each.open = true; })"
_LINKS = """(places) => places.flatMap((place) =>
  [...document.querySelectorAll(`${place} a[href^="/"]`)].map((each) =>
    [place, each.getAttribute('href')]))"""
_HOLD = """() => {
  window.reached = [];
  window.addEventListener('click', (event) => {
    const link = event.target.closest('a[href]');
    if (link === null || event.defaultPrevented || window.reached === undefined) return;
    event.preventDefault();
    window.reached.push(link.getAttribute('href'));
  });
}"""
"""Clicks are noted and lead nowhere, as long as `reached` is there."""
_LET_GO = "() => { delete window.reached; }"
_REACHED = """() => {
  document.querySelector(':popover-open')?.hidePopover();
  return window.reached.splice(0);
}"""
_POINT = """([place, href]) => {
  const links = [...document.querySelectorAll(`${place} a`)];
  const link = links.find((each) => each.getAttribute('href') === href);
  for (let up = link.closest('details'); up; up = up.parentElement.closest('details'))
    up.open = true;
  if (!link.checkVisibility({visibilityProperty: true})) return null;
  link.scrollIntoView({block: 'center', inline: 'center'});
  const box = link.getClientRects()[0];
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""
"""The middle of a link in the window; null: it is not shown."""


def kind_of(address: str) -> str:
    """The kind of page of an address: `/bills/2026-11/lines/71` is `/bills/*/lines/*`."""
    path = _ROW.sub("*", urlsplit(address).path)
    return _ALIKE.sub(r"/\1/*", path)


class Step(NamedTuple):
    """A link that can be clicked: the page that it is on, the part of it, where it leads, and a
    width at which it is shown.
    """

    at: str
    place: str
    href: str
    width: int


@dataclass
class Crawl:
    """What was seen: `pages` by their kind with the address of the first, `wrong` in sentences.

    Links to a kind of page in `leave` are clicked, and the page is not looked at: another crawl
    does it. `sound` is a folder for all crawls of a run of the tests, as most pages are alike to
    all roles: an empty file for each outline in which axe-core has found nothing, by kind of page
    (none: what is around it), width and colour schemes.

    A crawl at one width alone asks for what links lead to that are shown at the other width only.
    """

    page: Page
    sound: Path
    leave: frozenset[str] = frozenset()
    widths: tuple[int, ...] = WIDTHS
    schemes: tuple[Scheme, ...] = SCHEMES
    pages: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _opened: set[str] = field(default_factory=set)
    _ahead: dict[str, Step] = field(default_factory=dict)
    _clicked: set[tuple[str, str, int]] = field(default_factory=set)
    _led: dict[str, str] = field(default_factory=dict)
    _loaded: set[str] = field(default_factory=set)

    def run(self) -> Crawl:
        """Open, look at and click through all that can be reached from where the page is."""
        self._loaded.add(self.page.url)
        self._look()
        while self._ahead:
            here = [kind for kind, step in self._ahead.items() if step.at == self.page.url]
            kind = here[0] if here else next(reversed(self._ahead))
            self._opened.add(kind)
            self._open(self._ahead.pop(kind))
        for address, at in self._led.items():
            if address not in self._loaded:
                self._ask(address, at)
        return self

    def _open(self, step: Step) -> None:
        """Click the link, and look at the page if its kind is new."""
        if step.at != self.page.url:
            self.page.goto(step.at)
        self.page.set_viewport_size({"width": step.width, "height": HEIGHT})
        self.page.evaluate(_LET_GO)
        with self.page.expect_navigation() as came:
            self._click(step)
        if came.value is not None and came.value.status >= 400:
            self.wrong.append(f"{kind_of(step.at)}: {step.href} answers {came.value.status}")
        self._loaded |= {urljoin(step.at, step.href), self.page.url}
        if kind_of(self.page.url) not in self.pages:
            self._look()

    def _look(self) -> None:
        """Inspect the page and click its links, at each width; it stays."""
        at, here = self.page.url, kind_of(self.page.url)
        self._opened.add(here)
        self._ahead.pop(here, None)
        self.pages[here] = at
        self.page.evaluate(_HOLD)
        links = [(place, href) for place, href in self.page.evaluate(_LINKS, PLACES)]
        for width in self.widths if len(self.pages) % 2 else reversed(self.widths):
            self.page.set_viewport_size({"width": width, "height": HEIGHT})
            self.wrong += [f"{here} at {width}: {one}" for one in self._unsound(here, width)]
            for place, href in links:
                self._try(Step(at, place, href, width), here)
        for place, href in links if self.widths == WIDTHS else ():
            part = here if place == "main" else place
            if not any((part, kind_of(href), width) in self._clicked for width in WIDTHS):
                self.wrong.append(f"{here}: {href} is shown at no width")

    def _try(self, step: Step, here: str) -> None:
        """Click the link, unless one of its kind was, and remember where it leads."""
        kind = kind_of(step.href)
        # Menu, top and foot are the same on all pages: each of their links once.
        link = (here if step.place == "main" else step.place, kind, step.width)
        if link not in self._clicked:
            if not self._click(step):  # at this width the style sheet leaves it out
                if self.widths != WIDTHS:
                    self._led.setdefault(urljoin(step.at, step.href), here)
                return
            self._clicked.add(link)
            if self.page.evaluate(_REACHED) != [step.href]:
                self.wrong.append(f"{here} at {step.width}: no click reaches {step.href}")
                return
            self._led.setdefault(urljoin(step.at, step.href), here)
        is_file = urlsplit(step.href).path.endswith(FILES)
        if not is_file and kind not in self._opened | self.leave:
            self._ahead[kind] = step

    def _click(self, step: Step) -> bool:
        """Whether the link is shown at this width; then it is clicked with the mouse."""
        if step.place == MENU and step.width <= MENU_MAX:
            self.page.get_by_role("button", name="Menu").click()
        point = self.page.evaluate(_POINT, [step.place, step.href])
        if point is not None:
            self.page.mouse.click(*point)
        return point is not None

    def _ask(self, address: str, at: str) -> None:
        """What a link answers whose page was not opened, with the same cookies."""
        answer = self.page.request.get(address, headers={"accept": "text/html"})
        path = urlsplit(address).path
        if answer.status >= 400:
            self.wrong.append(f"{at}: {path} answers {answer.status}")
        elif not path.endswith(FILES):
            self.pages.setdefault(kind_of(answer.url), answer.url)
        elif not answer.body() and not path.endswith(".jsonl"):  # one line each, or none
            self.wrong.append(f"{at}: {path} is empty")

    def _unsound(self, here: str, width: int) -> list[str]:
        """What is wrong with the page at this width, in each colour scheme."""
        self.page.evaluate(_UNFOLD)
        around, main = self.page.evaluate(_OUTLINES)
        form = f"{width} {' '.join(self.schemes)}"
        marks = [
            self.sound / _digest(f"{at} {form}\n{way}") for at, way in (("", around), (here, main))
        ]
        wrong = list[str]()
        if not all(mark.exists() for mark in marks):
            wrong = violations(self.page, self.schemes)
            if not wrong:
                for mark in marks:
                    mark.touch()
        wide = self.page.evaluate(_WIDE)
        return wrong if wide is None else [*wrong, f"scrolls sideways: {wide}"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def violations(page: Page, schemes: tuple[Scheme, ...] = SCHEMES) -> list[str]:
    """What axe-core finds in the page as it is, in these colour schemes."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe())
    found, rules = list[str](), None
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        found += [f"{scheme}, axe: {one}" for one in page.evaluate(_AXE, rules)]
        rules = ["color-contrast"]  # the colours are what the second scheme changes
    page.emulate_media(color_scheme="light")
    return found


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
