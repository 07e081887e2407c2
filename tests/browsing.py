"""The rendered book in a real browser: how a page is served and opened."""

from __future__ import annotations

import http.server
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urljoin, urlparse

import pytest
from accessibility import DESKTOP, PHONE, STRUCTURE, examine
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page

from evolvingdp.book.files import PublishError
from evolvingdp.book.rendering import offline

MADE_BY_SPHINX = ["genindex.html", "search.html?q=Hadamard"]


def chromium() -> str:
    """Where chromium is; without it the tests are skipped with a line that says so, but never in CI."""
    try:
        return offline.chromium()
    except PublishError as error:
        assert not os.environ.get("CI"), "CI must have chromium"
        pytest.skip(f"browser tests need chromium: {error}")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Visit:
    """A page as opened in light on a desktop from a server, and again in dark on a phone from the unpacked zip."""

    problems: list[str] = field(default_factory=list)  # errors, warnings, failed and outside requests of both
    modes: list[str] = field(default_factory=list)  # the theme that each of the two had
    overflow: list[str] = field(default_factory=list)  # at which width and mode it scrolls sideways
    html: str = ""  # after scripts
    facts: dict[str, Any] = field(default_factory=dict)  # what the pages' tests ask for
    structure: dict[str, Any] = field(default_factory=dict)  # and those of accessibility
    narrow: list[str] = field(default_factory=list)  # the files of the figures that the phone shows
    formulas: list[int] = field(default_factory=list)  # how many each of the two shows, typeset
    hits: list[int] = field(default_factory=list)  # and how many pages each has found, where it is the search

    @cached_property
    def soup(self) -> BeautifulSoup:
        return BeautifulSoup(self.html, "html.parser")


FACTS = """async () => ({
  captions: [...document.querySelectorAll("article figure figcaption")].map(node => node.innerText),
  images: await Promise.all([...document.querySelectorAll("article figure img")].map(image => {
    image.loading = "eager";  // twins for the other theme, too
    return image.decode().then(() => image.naturalWidth > 0, () => false);
  })),
  sources: [...document.querySelectorAll("article p")].map(node => node.textContent)
    .filter(text => /^\\|.*\\|$/m.test(text)),
  icons: [...document.querySelectorAll("svg[data-icon], i[class*='fa-']")]
    .map(icon => [icon.dataset.icon, Boolean(icon.querySelector("path")?.getAttribute("d"))]),
  downloads: [...document.querySelectorAll("article a[download]")].map(link => link.href),
})"""

NARROW = """async () => Promise.all([...document.querySelectorAll("article figure .by-night img")].map(async image => {
  image.loading = "eager";
  await image.decode();
  return image.currentSrc.split("/").pop();
}))"""


def visited(browser: Browser, site: str, disk: str, addresses: list[str]) -> dict[str, Visit]:
    """Open every page twice: light on a desktop from `site`, dark on a phone from `disk`, each resized to the other's width.

    In light it is then examined for accessibility, which leaves little of it.
    """
    found = {address: Visit() for address in [*addresses, *MADE_BY_SPHINX]}
    known: dict[str, list[str]] = {"light": [], "dark": []}
    for mode, root, width, other in (("light", site, DESKTOP, PHONE), ("dark", disk, PHONE, DESKTOP)):
        page, problems = new_page(browser, root, width, mode)
        for address, visit in found.items():
            page.goto("about:blank")  # or the page before would be laid out once more
            page.set_viewport_size({"width": width, "height": 900})
            problems.clear()
            page.goto(root + address, wait_until="load")
            ready(page)
            if "search" in address:
                page.wait_for_selector("#search-results .search-summary:has-text('found')")
                visit.hits.append(page.locator("#search-results li").count())
            visit.problems += problems
            visit.modes.append(page.evaluate("document.documentElement.dataset.theme"))
            visit.formulas.append(page.locator("mjx-container").count())
            if mode == "light":
                visit.html, visit.facts, visit.structure = page.content(), page.evaluate(FACTS), page.evaluate(STRUCTURE)
            else:
                visit.narrow = page.evaluate(NARROW)
            for size in (width, other):
                page.set_viewport_size({"width": size, "height": 900})
                if page.evaluate("document.documentElement.scrollWidth") > size:
                    visit.overflow.append(f"{size} px, {mode}")
            if mode == "light":
                visit.structure |= examine(page, known)
        page.context.close()
    return found


def opened(browser: Browser, address: str, width: int = DESKTOP, mode: str = "light") -> tuple[Page, list[str]]:
    """The page at `address` after MathJax has finished, and what went wrong on the way."""
    page, problems = new_page(browser, address, width, mode)
    page.goto(address, wait_until="load")
    ready(page)
    return page, problems


def new_page(browser: Browser, site: str, width: int, mode: str) -> tuple[Page, list[str]]:
    """An empty page of `width` in the theme `mode`, and the list of what goes wrong in it; `site`
    alone may be asked, or from disk its folder."""
    context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    context.add_init_script(f"localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', '{mode}')")
    page = context.new_page()
    problems: list[str] = []
    inside = urljoin(site, "/" if urlparse(site).netloc else "."), "data:"
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
    page.on("response", lambda reply: problems.append(f"{reply.status}: {reply.url}") if reply.status >= 400 else None)
    page.on("request", lambda ask: None if ask.url.startswith(inside) else problems.append(f"outside: {ask.url}"))
    return page, problems


def ready(page: Page) -> None:
    """Wait until MathJax has set every formula, and for up to five seconds until every icon is drawn."""
    page.evaluate("() => window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
    page.evaluate("""async () => {
      const waiting = () => document.querySelector("i[class*='fa-']")
      for (let wait = 0; wait < 100 && waiting(); wait++) await new Promise(go => setTimeout(go, 50))
    }""")
