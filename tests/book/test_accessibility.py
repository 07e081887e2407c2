"""The book for people who listen to it, who have no mouse, who see little: axe, the keyboard, a phone, paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from accessibility import DESKTOP, PHONE, UNFOLD, WCAG_AA, dress, stuck, violations
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
  return {{name: element.outerHTML.slice(0, 120), before, seen: ({SEEN})(element), look: ({LOOK})(element)}}
}}"""
MISSED = f"""() => [...document.querySelectorAll("{KEYBOARD}")].filter(element => !window.stops.includes(element)
  && element.tabIndex >= 0 && !element.disabled && element.checkVisibility({{visibilityProperty: true}}))
  .map(element => element.outerHTML.slice(0, 120))"""
MOVING = """() => [...document.querySelectorAll("*")].filter(element => { const style = getComputedStyle(element)
  return style.scrollBehavior === "smooth" || /[1-9]/.test(style.transitionDuration + style.animationDuration)
}).map(element => element.outerHTML.slice(0, 120))"""
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


def test_no_two_pages_have_the_same_title(facts):
    assert len({fact["title"] for fact in facts.values()}) == len(facts)


def test_nothing_scrolls_sideways_on_a_phone_even_unfolded_and_what_scrolls_on_its_own_is_a_stop(facts):
    assert {address: fact["width"] for address, fact in facts.items() if fact["width"] > PHONE} == {}
    assert {address: fact["stuck"] for address, fact in facts.items() if fact["stuck"]} == {}
    assert {address: fact["cut"] for address, fact in facts.items() if fact["cut"]} == {}, "formulas that nobody can read"


def test_no_line_of_a_phone_begins_with_the_comma_behind_a_formula(facts):
    assert {address: fact["parted"] for address, fact in facts.items() if fact["parted"]} == {}


def test_no_table_hides_a_column_on_a_desktop(facts):
    """Each is measured against the box that it stands in; that the page does not scroll says nothing about it."""
    assert {address: fact["hidden"] for address, fact in facts.items() if any(fact["hidden"].values())} == {}


@pytest.mark.parametrize("address", [CHAPTER, NOTEBOOK])
def test_axe_finds_nothing_on_a_phone(site, page, address):
    visit(page, site + address, PHONE)
    page.evaluate(UNFOLD)
    assert stuck(page) == []
    page.evaluate(AXE_SCRIPT)
    assert violations(page, WCAG_AA) == []


def test_every_formula_is_there_for_a_screen_reader(site, page):
    visit(page, site + CHAPTER)
    formulas = page.locator("mjx-container").count()
    assert formulas > 30
    assert page.locator("mjx-container > mjx-assistive-mml > math").count() == formulas
    assert page.locator("mjx-container:not([display])[tabindex]").count() == 0, "hundreds of stops on the way to a link"


@pytest.mark.parametrize("address", [CHAPTER, NOTEBOOK])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
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


def test_the_first_stop_skips_to_the_content(site, page):
    visit(page, site + NOTEBOOK)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to main content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_dropdowns_open_and_close_by_keyboard_and_what_is_in_them_is_reached(site, page):
    visit(page, site + NOTEBOOK, PHONE)
    summary = page.locator("article summary:has-text('Compute this figure again')").first
    details = page.locator("article details.sd-dropdown").first
    for key in ("Enter", "Space"):
        summary.focus()
        page.keyboard.press(key)
        assert details.evaluate("details => details.open")
        assert stuck(page) == []
        inside = []
        for _ in range(2):
            page.keyboard.press("Tab")
            inside.append(
                page.evaluate("[document.activeElement.tagName, document.activeElement.closest('details') !== null]")
            )
        assert inside == [["PRE", True], ["BUTTON", True]], "the command, which scrolls, and its copy button"
        summary.focus()
        page.keyboard.press(key)
        assert not details.evaluate("details => details.open")


@pytest.mark.parametrize(
    ("address", "fold", "said"),
    [
        (CHAPTER, "details.proof-fold", "Proof"),
        ("book/evolving.html", ".algorithm-code details:not([open])", "In code: step"),
        (NOTEBOOK, "details:has(table)", "claims hold; their bounds come from theory, from the paper"),
    ],
)
def test_proofs_code_and_claims_unfold_by_keyboard_and_in_print(site, page, address, fold, said):
    visit(page, site + address)
    found = page.query_selector_all(f"article {fold}")
    (details, *_) = [each for each in found if said in each.query_selector("summary").inner_text()]
    shown = "details => details.open && details.lastElementChild.checkVisibility()"
    details.query_selector("summary").focus()
    for key in ("Enter", "Space"):
        page.keyboard.press(key)
        assert details.evaluate(shown)
        page.keyboard.press(key)
        assert not details.evaluate(shown)
    page.emulate_media(media="print")
    try:
        page.wait_for_function("document.querySelectorAll('article details:not([open], .above-input)').length === 0")
    finally:
        page.emulate_media(media="screen")
    page.wait_for_function("details => !details.open", arg=details)


def test_menu_theme_and_search_work_by_keyboard(site, page):
    visit(page, site + NOTEBOOK)
    page.locator(".dropdown-download-buttons button.dropdown-toggle").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('.dropdown-menu.show') !== null")
    page.keyboard.press("Escape")
    assert page.locator(".dropdown-menu.show").count() == 0
    themes = []
    page.locator(".theme-switch-button").first.focus()
    for _ in range(3):
        page.keyboard.press("Enter")
        themes.append(page.evaluate("document.documentElement.dataset.mode"))
    assert sorted(themes) == ["auto", "dark", "light"]
    page.locator("button.search-button-field").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className").startswith("btn search-button")
    page.keyboard.press("Control+k")
    page.keyboard.type("Hadamard")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")


def test_sidebars_open_and_close_by_keyboard(site, page):
    visit(page, site + CHAPTER, PHONE)
    for side in ("primary", "secondary"):
        links = page.locator(f"#pst-{side}-sidebar a:visible, #pst-{side}-sidebar-modal a:visible")
        assert links.count() == 0
        page.locator(f"button.{side}-toggle").first.focus()
        page.keyboard.press("Enter")
        assert page.evaluate(f"document.activeElement.closest('#pst-{side}-sidebar-modal') !== null")
        assert links.count() > 3
        page.keyboard.press("Escape")
        assert links.count() == 0
        assert f"{side}-toggle" in page.evaluate("document.activeElement.className")
    visit(page, site + CHAPTER, DESKTOP)
    arrow = page.locator("#pst-primary-sidebar summary").first
    assert arrow.get_attribute("aria-label") == "Sections of Heavy hitters"
    arrow.focus()
    page.keyboard.press("Enter")
    assert arrow.evaluate("arrow => arrow.parentElement.open")
    page.locator("button.primary-toggle").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.closest('#pst-primary-sidebar') === null"), "what is hidden is no stop"


def test_less_motion_is_no_motion(site, page):
    visit(page, site + NOTEBOOK)
    assert page.evaluate(MOVING) == []


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


def test_a_table_whose_columns_can_be_sorted_names_them_in_print(site, page):
    visit(page, site + "book/privacy.html", 720)
    page.emulate_media(media="print")
    names = page.locator("table.searchable thead").first.inner_text().split("\t")
    page.emulate_media(media="screen")
    assert [name.strip() for name in names][:4] == ["verdict", "mechanism", "promise", "measured"]
