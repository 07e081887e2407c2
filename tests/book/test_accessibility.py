"""The book for people who listen to it, who have no mouse, who see little: axe, the keyboard, a phone, paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from accessibility import DESKTOP, PHONE, UNFOLD, WCAG_AA, WIDE, dress, hidden, stuck, violations
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page

from browsing import Visit, ready

CHAPTER, NOTEBOOK = "book/sparse_vector.html", "book/results/sparse_vector/threshold_monitor.html"
KEYBOARD = "a[href], button, input, select, textarea, summary, [tabindex='0']"

TO_TOP = 'id="pst-back-to-top"'  # a button that the theme shows while one scrolls up, a moment late

# what of an element (or, for an arrow in the sidebar, of the picture in it) shows that it has the focus
LOOK = """element => [element, element.firstElementChild].filter(Boolean).map(node => {
  const style = getComputedStyle(node)
  return [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow].join(" ")
}).join(" | ")"""
SEEN = """element => element.checkVisibility({opacityProperty: true, visibilityProperty: true})
  && [element, ...element.querySelectorAll("*")].flatMap(node => [...node.getClientRects()]).some(box =>
    box.width > 1 && box.height > 1 && box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight)"""
STOP = f"""() => {{
  const element = document.activeElement
  if (element === document.body) return null
  window.stops = window.stops || []
  const before = window.stops.indexOf(element)
  if (before < 0) window.stops.push(element)
  const name = element.outerHTML.replace(/ active| aria-current="true"/g, "").slice(0, 120)  // the section seen, marked late
  return {{name, before, seen: ({SEEN})(element), look: ({LOOK})(element)}}
}}"""
MISSED = f"""() => [...document.querySelectorAll("{KEYBOARD}")].filter(element => !window.stops.includes(element)
  && element.tabIndex >= 0 && !element.disabled && element.checkVisibility({{visibilityProperty: true}}))
  .map(element => element.outerHTML.slice(0, 120))"""
PRINTED = """() => [...document.querySelectorAll("article :is(figure, pre, table, div.math)")].filter(element =>
  element.getClientRects().length && (element.scrollWidth > element.clientWidth + 1
    || element.getBoundingClientRect().right > innerWidth
    || element.matches("figure") && getComputedStyle(element).breakInside !== "avoid")
).map(element => element.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One page for all tests of this module, of somebody who has asked for less motion."""
    context = browser.new_context(viewport={"width": DESKTOP, "height": 900}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def visit(page: Page, address: str, width: int = DESKTOP, mode: str = "light") -> None:
    """Open `address` at `width` in the theme `mode`, and wait for its formulas."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address)
    dress(page, mode)
    ready(page)


def walk(page: Page, key: str = "Tab") -> list[dict[str, object]]:
    """Every stop of the keyboard from here once round the page, with whether one sees it and sees that one is there."""
    page.evaluate("() => { window.stops = [] }")
    stops = []
    for _ in range(1000):
        page.keyboard.press(key)
        stop = page.evaluate(STOP)
        if stop is None or stop["before"] == 0:
            break
        assert stop["before"] < 0, f"a keyboard does not get past {stop['name']}"
        stops.append(stop)
    page.evaluate("() => document.activeElement.blur()")
    resting = page.evaluate(f"() => window.stops.map({LOOK})")
    return [stop | {"shown": stop["look"] != look} for stop, look in zip(stops, resting, strict=True)]


@pytest.fixture(scope="module")
def facts(visits: dict[str, Visit]) -> dict[str, dict[str, Any]]:
    """What the visit to every page found: its structure, what axe says in light and dark, and how it fits a phone."""
    return {address: visit.structure for address, visit in visits.items()}


@pytest.mark.parametrize("rules", ["axe", "light", "dark"])
def test_axe_finds_nothing_on_any_page(facts, rules):
    assert {address: fact[rules] for address, fact in facts.items() if fact[rules]} == {}


def test_every_page_has_a_language_one_main_heading_no_skipped_level_and_named_landmarks(facts):
    for address, fact in facts.items():
        assert fact["language"] == "en", address
        assert fact["mains"] == 1, address
        assert fact["levels"].count(1) == 1, address
        assert all(below - above <= 1 for above, below in pairwise(fact["levels"])), address
        assert all(fact["navigations"]), address
        for names in (fact["navigations"], fact["ids"]):
            assert len(names) == len(set(names)), address


def test_nothing_scrolls_sideways_on_a_phone_even_unfolded_and_what_scrolls_on_its_own_is_a_stop(facts):
    assert {address: fact["width"] for address, fact in facts.items() if fact["width"] > PHONE} == {}
    assert {address: fact["stuck"] for address, fact in facts.items() if fact["stuck"]} == {}
    assert {address: fact["cut"] for address, fact in facts.items() if fact["cut"]} == {}, "formulas that nobody can read"


def test_no_line_of_a_phone_begins_with_the_comma_behind_a_formula(facts):
    assert {address: fact["parted"] for address, fact in facts.items() if fact["parted"]} == {}


def test_no_table_hides_a_column_on_a_desktop(facts):
    """Each is measured against the box that it stands in; that the page does not scroll says nothing about it."""
    assert {address: fact["hidden"] for address, fact in facts.items() if any(fact["hidden"].values())} == {}


def test_a_table_that_a_phone_has_shown_hides_no_column_on_a_desktop(site, page):
    for _ in range(4):  # what the page measured first, before or after the tables were made, differs
        visit(page, f"{site}book/privacy.html", PHONE)
        page.evaluate(UNFOLD)
        assert hidden(page, WIDE) == []


@pytest.mark.parametrize("address", [CHAPTER, NOTEBOOK])
def test_axe_finds_nothing_on_a_phone(site, page, address):
    visit(page, site + address, PHONE)
    page.evaluate(UNFOLD)
    assert stuck(page) == []
    page.evaluate(AXE_SCRIPT)
    assert violations(page, WCAG_AA) == []


@pytest.mark.parametrize(("address", "width"), [(CHAPTER, DESKTOP), (NOTEBOOK, PHONE)])
def test_the_keyboard_reaches_everything_shows_where_it_is_and_stops_at_nothing_hidden(site, page, address, width):
    visit(page, site + address, width)
    assert stuck(page) == [], "the theme measures a while after the page is there what scrolls and needs a stop"
    stops = walk(page)
    assert len(stops) > 20
    assert page.evaluate(MISSED) == []
    assert [stop["name"] for stop in stops if not stop["seen"]] == []
    assert [stop["name"] for stop in stops if not stop["shown"]] == []
    there, back = ([stop["name"] for stop in way if TO_TOP not in stop["name"]] for way in (stops, walk(page, "Shift+Tab")))
    assert back == there[::-1], "the way back is another one"


FURNITURE = ("nav", "#pst-primary-sidebar", "#pst-secondary-sidebar", ".bd-header-article", ".prev-next-footer", "button")


@pytest.mark.parametrize("address", [CHAPTER, NOTEBOOK])
def test_a_printed_page_is_its_content_in_full_width_and_nothing_is_cut(site, page, address):
    visit(page, site + address, 720)
    page.emulate_media(media="print")
    for furniture in FURNITURE:
        assert page.locator(furniture).locator("visible=true").count() == 0, furniture
    assert page.locator("article").evaluate("article => article.getBoundingClientRect().width") > 0.9 * 720
    assert page.evaluate(PRINTED) == []
    page.emulate_media(media="screen")
