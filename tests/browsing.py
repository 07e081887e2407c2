"""The rendered book in a real browser: how a page is served and opened."""

from __future__ import annotations

import http.server
import os
import shutil
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE, DESKTOP = 360, 1280


def chromium() -> str:
    """Where chromium is; without it the tests are skipped with a line that says so, but never in CI."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        assert not os.environ.get("CI"), "CI must have chromium"
        pytest.skip("browser tests need chromium (install it, or set CHROMIUM to its path)")
    return found


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
