"""What a page is to people who listen to it, have no mouse or see little: its structure, axe, how it fits a phone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, TimeoutError

PHONE, DESKTOP, WIDE = 360, 1280, 1400
WCAG_AA = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
COLOURS = {"color-contrast": "asked", "link-in-text-block": "linked"}  # all that light or dark can change, and who is asked
UNFOLD = """() => document.querySelectorAll("details").forEach(details => { details.open = true })"""
STUCK = """() => [...document.querySelectorAll("article *")].filter(element => element.tabIndex < 0
  && element.scrollWidth > element.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(element).overflowX)
  && element.getClientRects().length).map(element => element.outerHTML.slice(0, 120))"""
CUT_OFF = """() => [...document.querySelectorAll("article :is(div.math, span.math)")].filter(element =>
  element.querySelector("mjx-math")?.getBoundingClientRect().width > element.clientWidth + 1
  && ![element, ...element.querySelectorAll("mjx-container")].some(box => getComputedStyle(box).overflowX === "auto")
).map(element => element.outerHTML.slice(0, 120))"""
PARTED = """() => [...document.querySelectorAll("article span.math")].filter(formula => {
  let last = formula
  while (!last.nextSibling && last.parentElement.matches("span, strong, em, a")) last = last.parentElement
  const next = last.nextSibling?.nodeType === Node.TEXT_NODE ? last.nextSibling : null
  if (!next || !/^\\S/.test(next.data) || !formula.getClientRects().length) return false
  const range = document.createRange()
  range.setStart(next, 0)
  range.setEnd(next, 1)
  return range.getBoundingClientRect().left < formula.getBoundingClientRect().left
}).map(formula => formula.parentElement.innerText.slice(0, 120))"""
HIDDEN = """() => [...document.querySelectorAll("article table")].filter(table =>
  [table, table.closest(".pst-scrollable-table-container") ?? table.parentElement]
    .some(box => table.scrollWidth > box.clientWidth + 1)
).map(table => table.innerText.slice(0, 120))"""
BARE = """() => {  // a formula is drawn by pseudo-elements and said by MathML: axe has no rules for them, but measures each
  const rules = "a, button, input, img, iframe, object, [role], [tabindex], [href], [lang], [id], [title], "
    + "[contenteditable], [aria-label], [aria-labelledby], [aria-describedby]"
  const found = [...document.querySelectorAll(`mjx-container :is(${rules})`)].map(element => element.outerHTML.slice(0, 120))
  const boxes = [...document.querySelectorAll("mjx-math")].map(formula => [formula, formula.getBoundingClientRect()])
  for (const [formula, {width, height}] of boxes) {
    formula.replaceChildren()
    Object.assign(formula.style, {display: "inline-block", width: `${width}px`, height: `${height}px`})
  }
  document.querySelectorAll("mjx-assistive-mml").forEach(formula => formula.replaceChildren())
  document.querySelectorAll("wbr").forEach(element => element.remove())
  return found
}"""
LETTERS = """known => {  // marks what is asked about; the looks of letters that are not yet `known`
  const looks = ["color", "backgroundColor", "backgroundImage", "opacity", "fontSize", "fontWeight", "textShadow",
    "textDecorationLine", "position", "mixBlendMode"], names = new Map(), found = new Map(), before = new Set(known)
  const name = text => {  // the same on every page: two hashes of 32 bits
    let one = 7, two = 11
    for (let place = 0; place < text.length; place++) {
      const code = text.charCodeAt(place)
      one = Math.imul(one ^ code, 2654435761)
      two = Math.imul(two ^ code, 1597334677) ^ (two >>> 15)
    }
    return `${one >>> 0}.${two >>> 0}`
  }
  const look = element => {  // its own look and that of all around it
    if (!element) return ""
    if (!names.has(element)) {
      const style = getComputedStyle(element), own = looks.map(each => style[each])
      names.set(element, name([look(element.parentElement), element.tagName, element.getAttribute("class"), ...own].join()))
    }
    return names.get(element)
  }
  const single = []
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].map(node => node.nodeType === Node.TEXT_NODE ? node.data : "").join("").trim()
    // axe passes over single letters and some signs: none stands for others; nor does a link within a text
    if (element.matches("p a")) element.dataset.linked = ""
    if (element.matches("input, select, textarea")) element.dataset.asked = ""
    else if (!text || !element.getClientRects().length) continue
    else if (text.length === 1) single.push(element)
    else if (/[!-~]{2}/.test(text)) found.set(look(element), element)
    else element.dataset.asked = ""
  }
  for (const element of single) if (!found.has(look(element))) found.set(look(element), element)
  const asked = [...found].filter(([each]) => !before.has(each))
  for (const [, element] of asked) element.dataset.asked = ""
  return asked.map(([each]) => each)
}"""
REST = """() => {  // axe measures all that is there: what is not asked about, nor around it, is emptied in its place
  const walk = element => {
    if (element.matches("p:has(a[data-linked])")) return
    for (const child of element.children)
      if (child.matches("[data-asked], [data-linked], :has([data-asked], [data-linked])")) walk(child)
      else if (child.childNodes.length) child.replaceChildren()
  }
  walk(document.body)
}"""
STRUCTURE = """() => ({
  language: document.documentElement.lang,
  mains: document.querySelectorAll("main").length,
  levels: [...document.querySelectorAll(":is(h1, h2, h3, h4, h5, h6)")].filter(heading => heading.checkVisibility())
    .map(heading => Number(heading.tagName[1])),
  navigations: [...document.querySelectorAll("nav")].filter(part => part.checkVisibility())
    .map(part => part.ariaLabel || part.getAttribute("aria-labelledby") || ""),
  ids: [...document.querySelectorAll("[id]")].map(element => element.id),
})"""


def examine(page: Page, known: dict[str, list[str]]) -> dict[str, Any]:
    """How the open page fits a phone unfolded, what axe says, of colours in light and dark; little of it is left.

    Of letters whose look, and that of all around them, is `known` from a page before axe is not asked again.
    """
    page.evaluate(UNFOLD)
    page.set_viewport_size({"width": PHONE, "height": 900})
    facts: dict[str, Any] = {
        "width": page.evaluate("document.documentElement.scrollWidth"),
        "stuck": stuck(page),
        "cut": page.evaluate(CUT_OFF),
        "parted": page.evaluate(PARTED),
    }
    facts["hidden"] = {width: hidden(page, width) for width in (WIDE, DESKTOP)}
    stuck(page)  # what scrolls at this width becomes a stop a moment later
    page.evaluate(AXE_SCRIPT)
    facts["axe"] = page.evaluate(BARE) + violations(page, WCAG_AA, without=COLOURS)
    for mode in ("light", "dark"):
        dress(page, mode)
        known[mode] += page.evaluate(LETTERS, known[mode])
    page.evaluate(REST)
    for mode in ("dark", "light"):
        dress(page, mode)
        facts[mode] = []
        for rule, whom in COLOURS.items():
            if page.locator(f"[data-{whom}]").count():
                facts[mode] += violations(page, {"type": "rule", "values": [rule]}, among=f"'[data-{whom}]'")
    return facts


def hidden(page: Page, width: int) -> list[str]:
    """The tables that are wider than the box they stand in, where the window is `width` pixels wide."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("() => dispatchEvent(new Event('resize'))")  # book.js measures them now, and not a moment later
    return page.evaluate(HIDDEN)


def dress(page: Page, mode: str) -> None:
    """Choose the theme as its switch does."""
    page.evaluate("mode => { Object.assign(document.documentElement.dataset, {mode, theme: mode}) }", mode)


def violations(page: Page, rules: dict[str, object], without: Iterable[str] = (), among: str = "document") -> list[str]:
    """A line for every element that breaks one of the `rules`, those named in `without` left out.

    Of colours, `LETTERS` asks one element for all that look alike, as does all around them.
    """
    options = {"runOnly": rules, "rules": {rule: {"enabled": False} for rule in without}, "resultTypes": ["violations"]}
    found = page.evaluate(f"options => axe.run({among}, options).then(run => run.violations)", options)
    return [f"{broken['id']}: {node['target']} {node['failureSummary']}" for broken in found for node in broken["nodes"]]


def stuck(page: Page) -> list[str]:
    """What scrolls sideways and is no stop of the keyboard, when the theme has had the time to measure the page again."""
    with contextlib.suppress(TimeoutError):
        page.wait_for_function(f"() => ({STUCK})().length === 0", timeout=2000)
    return page.evaluate(STUCK)
