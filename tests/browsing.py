"""The rendered book in a real browser: how a page is served and opened."""

from __future__ import annotations

import http.server
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from evolvingdp.publish.errors import BookError
from evolvingdp.publish.rendering import offline

PHONE, DESKTOP = 360, 1280


def chromium() -> str:
    """Where chromium is; without it the tests are skipped with a line that says so, but never in CI."""
    try:
        return offline.chromium()
    except BookError as error:
        assert not os.environ.get("CI"), "CI must have chromium"
        pytest.skip(f"browser tests need chromium: {error}")


def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """`work` in a thread of its own: playwright allows one browser session a thread, and the page tests hold this one's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work, *arguments).result()


def in_browser(look: Callable[[Browser], Any]) -> Any:
    """What `look` sees in a new chromium."""

    def session() -> Any:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=offline.FLAGS)
            try:
                return look(browser)
            finally:
                browser.close()

    program = chromium()
    return in_thread(session)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def opened(browser: Browser, address: str, width: int = DESKTOP, mode: str = "light") -> tuple[Page, list[str]]:
    """The page at `address` after MathJax has finished, and what went wrong on the way."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    context.add_init_script(f"localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', '{mode}')")
    page = context.new_page()
    problems: list[str] = []
    host = urlparse(address).netloc
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
    page.on("response", lambda reply: problems.append(f"{reply.status}: {reply.url}") if reply.status >= 400 else None)
    page.on(
        "request",
        lambda request: (
            problems.append(f"outside: {request.url}")
            if urlparse(request.url).netloc != host and not request.url.startswith("data:")
            else None
        ),
    )
    page.goto(address, wait_until="load")
    ready(page)
    return page, problems


def ready(page: Page) -> None:
    """Wait until MathJax has set every formula."""
    page.evaluate("() => window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
