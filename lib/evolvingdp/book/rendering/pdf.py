"""The book as one PDF: its rendered pages joined to one page, which chromium prints.

Made of _build/html, so that figures, numbers and references are those of the pages that everybody reads.
"""

from __future__ import annotations

import html
import json
import posixpath
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import yaml

from evolvingdp.book import provenance
from evolvingdp.book.checkout import Project
from evolvingdp.book.files import PublishError, replacing, scratch
from evolvingdp.book.rendering.build import check_rendered
from evolvingdp.book.rendering.offline import FLAGS, NAME, chromium

try:  # the book's and the developers' tools, which reading or running a notebook does not need
    from bs4 import BeautifulSoup, Tag
    from bs4.filter import SoupStrainer
    from pikepdf import Dictionary, Object, ObjectStreamMode, Page, Pdf, String
    from playwright.sync_api import sync_playwright
except ImportError as error:
    raise PublishError(f"make pdf needs the packages of requirements.lock ({error}); run make .venv/.ready") from None


@dataclass(frozen=True)
class Entry:
    """A page of the book: its file below _build/html without ending, how deep it stands, and the part that it opens."""

    page: str
    depth: int
    part: str = ""

    @property
    def slug(self) -> str:
        return self.page.replace("/", "-")


def build(project: Project) -> Path:
    """Print the rendered book to _build/evolving-privacy.pdf; raises PublishError for stale pages or no chromium."""
    program = chromium()
    check_rendered(project)
    target = project.root / "_build" / f"{NAME}.pdf"
    with scratch(target.parent, ".print-") as folder:
        source = folder / "book.html"
        source.write_text(joined(project), encoding="utf-8")
        book = folder / "book.pdf"
        _print(program, source, book, entries(project))
        with replacing(target) as partial:
            _finish(project, book, partial)
    return target


def entries(project: Project) -> list[Entry]:
    """The book's pages in the order of `_toc.yml`; the library's reference is for the screen."""
    toc = yaml.safe_load((project.root / "_toc.yml").read_text())
    found = [Entry(_page(toc["root"]), 0)]
    for part in toc["parts"]:
        caption = part.get("caption", "")
        for chapter in part["chapters"]:
            if chapter["file"] == "book/api":
                continue
            found.append(Entry(_page(chapter["file"]), 0, caption))
            found += [Entry(_page(section["file"]), 1) for section in chapter.get("sections", [])]
            caption = ""
    return found


def _page(file: str) -> str:
    return file.removesuffix(".ipynb").removesuffix(".md")


def joined(project: Project) -> str:
    """All pages as one: title page, contents, and every article with its links led to the others."""
    root = project.root / "_build" / "html"
    book = entries(project)
    needed = SoupStrainer(["head", "article"])
    pages = {entry.page: (root / f"{entry.page}.html").read_text(encoding="utf-8") for entry in book}
    soups = {page: BeautifulSoup(text, "html.parser", parse_only=needed) for page, text in pages.items()}
    ids = {page: {node["id"] for node in soup.article.find_all(id=True)} for page, soup in soups.items() if soup.article}
    articles = [_article(soups[entry.page], entry, ids) for entry in book]
    titles = [_heading(article).get_text() for article in articles]
    body = "\n".join(str(article) for article in articles)
    return (
        f'<!DOCTYPE html>\n<html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f"<title>{html.escape(_settings(project)['title'])}</title>\n{_head(soups[book[0].page], book[0].page)}"
        f'<link rel="stylesheet" href="{_UP}_static/print.css"></head>\n<body><main class="bd-content book">'
        f'<div class="bd-article-container">{_title(project)}{_contents(book, titles)}{body}</div></main></body></html>\n'
    )


_UP = "../html/"  # from the joined page to the rendered ones


def _settings(project: Project) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load((project.root / "_config.yml").read_text())
    return settings


def _head(soup: BeautifulSoup, page: str) -> str:
    """The styles, and of the scripts MathJax alone."""
    kept = []
    for node in soup.select("head link[rel=stylesheet], head script"):
        address = str(node.get("href") or node.get("src") or "")
        if node.name == "script" and "MathJax" not in (node.string or "") and "mathjax" not in address:
            continue
        if address:
            node["href" if node.name == "link" else "src"] = _UP + _resolve(page, urldefrag(address).url)
        kept.append(str(node))
    return "\n".join(kept)


def _resolve(page: str, address: str) -> str:
    """The path below _build/html that `address` means on `page`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), address))


# what only a screen can use, and the code that the page itself hides
_SCREEN_ONLY = (
    "a.headerlink, .toctree-wrapper, script, button, .sd-summary-state-marker, details.above-input, picture source"
)


def _article(soup: BeautifulSoup, entry: Entry, ids: dict[str, set[Any]]) -> Tag:
    """The page's article without what only a screen can use; links lead inside the document or outside the machine."""
    article = soup.select_one("article")
    if article is None:
        raise PublishError(f"{entry.page}.html has no article; the theme has changed")
    for node in article.select(_SCREEN_ONLY):
        node.decompose()
    for menu in article.select("details.figure-menu"):  # its files are not in the PDF, its figure's id is what one cites
        menu.replace_with(BeautifulSoup(f'<p class="figure-id">{menu.select_one("summary code")}</p>', "html.parser"))
    for line in [line for line in article.find_all("p") if line.get_text().strip() == "LaTeX"]:  # a table's file
        line.decompose()
    for node in article.select("table.grouped"):
        _group(node)
    for node in article.find_all("a", href=True):
        _redirect(node, entry, ids)
    for node in article.find_all("img", src=True):
        node["src"] = _UP + _resolve(entry.page, str(node["src"]))
    for node in article.find_all(id=True):
        node["id"] = f"{entry.slug}--{node['id']}"
    for node in article.find_all("details"):
        node["open"] = ""
    for node in article.find_all(["h1", "h2", "h3", "h4", "h5"]):
        node.name = f"h{min(6, int(node.name[1]) + entry.depth)}"
    article["id"] = entry.slug
    article["class"] = f"bd-article {'section' if entry.depth else 'chapter'}"
    return article


def _group(table: Tag) -> None:
    """As tables.js does on a screen: what the first column says is a heading above its rows."""
    above = ""
    for first in table.select("colgroup > col:first-child, tr > :first-child"):
        name = html.escape(first.get_text().strip())
        if first.name == "td" and first.parent and name != above:
            heading = f'<tr class="group"><th colspan="{len(first.find_next_siblings())}" scope="rowgroup">{name}</th></tr>'
            first.parent.insert_before(BeautifulSoup(heading, "html.parser"))
            above = name
        first.decompose()


def _redirect(link: Tag, entry: Entry, ids: dict[str, set[Any]]) -> None:
    address = str(link["href"])
    if urlparse(address).scheme:
        return
    path, fragment = urldefrag(address)
    page = _resolve(entry.page, path).removesuffix(".html") if path else entry.page
    if page not in ids:
        link.unwrap()  # a file beside the pages: it is in the zip, not in the PDF
        return
    slug = page.replace("/", "-")
    link["href"] = f"#{slug}--{unquote(fragment)}" if unquote(fragment) in ids[page] else f"#{slug}"


def _heading(article: Tag) -> Tag:
    heading = article.select_one("h1, h2")
    if heading is None:
        raise PublishError(f"{article['id']} has no title")
    return heading


def _title(project: Project) -> str:
    settings = _settings(project)
    presets = ", ".join(sorted(set(_presets(project))))
    lines = [
        ("book-title", settings["title"]),
        ("book-subtitle", "An executable reference for differential privacy on data that changes over time"),
        ("book-author", settings["author"]),
        ("book-source", f"Version {version('evolvingdp')}, commit {provenance.commit()}"),
        ("book-source", f"Notebooks computed with the preset {presets}; the commit of each stands at its end."),
    ]
    inside = "".join(f'<p class="{name}">{html.escape(str(text))}</p>' for name, text in lines)
    return f'<section class="title-page">{inside}</section>\n'


def _presets(project: Project) -> Iterator[str]:
    """The preset of each notebook's page, as its command names it."""
    for notebook in project.pages():
        words = shlex.split(json.loads((project.results / notebook / "provenance.json").read_text())["command"])
        yield words[words.index("--preset") + 1]


def _contents(book: list[Entry], titles: list[str]) -> str:
    """The table of contents; its page numbers are as wide as they will be, until the pages are counted."""
    lines = []
    for entry, title in zip(book, titles, strict=True):
        lines += [f'<p class="contents-part">{html.escape(entry.part)}</p>'] if entry.part else []
        lines.append(
            f'<p class="contents-{entry.depth}"><a href="#{entry.slug}">{html.escape(title)}</a>'
            f'<span class="contents-page" data-page="{entry.slug}">000</span></p>'
        )
    return f'<section class="contents" id="contents"><h1>Contents</h1>{"".join(lines)}</section>\n'


_PATIENCE = 600_000  # milliseconds that the whole book may take to load, on a machine that does much else
_WIDTH = 718  # of an A4 page between its margins (print.css), in pixels of 1/96 inch; 30 on each side are for broad figures


def _print(program: str, source: Path, book: Path, pages: list[Entry]) -> None:
    """Print `source` to `book`, and again when its contents can say on which page of the first printing each entry is."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        tab = browser.new_page(viewport={"width": _WIDTH, "height": 980})
        tab.set_default_timeout(_PATIENCE)
        tab.emulate_media(media="print")
        failed: list[str] = []
        tab.on("requestfailed", lambda request: failed.append(request.url))
        tab.goto(source.as_uri(), wait_until="load")
        tab.evaluate("() => MathJax.startup.promise.then(() => document.fonts.ready)")
        if failed or tab.locator("mjx-merror").count():
            raise PublishError(f"the book's pages are not whole: {failed or 'a formula does not typeset'}")
        cut = tab.evaluate((source.parents[1] / "html" / "_static" / "print.js").read_text(encoding="utf-8"), _WIDTH)
        if cut:
            raise PublishError(f"wider than a page of the PDF: {'; '.join(cut)}")
        options: Any = {"prefer_css_page_size": True, "print_background": True, "outline": True, "tagged": True}
        tab.pdf(path=book, **options)
        with Pdf.open(book) as whole:
            where = {entry.slug: Page(whole.Root.Dests[f"/{entry.slug}"][0]).index + 1 for entry in pages}
        spans = "document.querySelectorAll('[data-page]')"
        tab.evaluate(f"where => {spans}.forEach(node => node.textContent = where[node.dataset.page])", where)
        tab.pdf(path=book, **options)
        browser.close()


def _finish(project: Project, book: Path, target: Path) -> None:
    """Say what the file is, and nothing of the machine that made it."""
    settings = _settings(project)
    with Pdf.open(book) as whole:
        said = {"/Title": settings["title"], "/Author": settings["author"], "/Subject": f"commit {provenance.commit()}"}
        whole.docinfo = whole.make_indirect(Dictionary(said))
        for entry in _bookmarks(whole.Root.Outlines):
            entry.Title = String(_once(str(entry.Title)))
        whole.save(target, object_stream_mode=ObjectStreamMode.generate)


def _bookmarks(node: Object) -> Iterator[Object]:
    """Every entry of a PDF's outline below `node`."""
    child = node.get("/First")
    while child is not None:
        yield child
        yield from _bookmarks(child)
        child = child.get("/Next")


def _once(title: str) -> str:
    """`title` once: chromium writes a heading that a page break precedes twice."""
    half = title[: len(title) // 2]
    return half if title == 2 * half else title
