"""The book as one PDF and as a zip: whole, linked inside, and with nothing of the machine that made them."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
import zipfile
from pathlib import Path
from urllib.parse import unquote, urljoin, urlparse

import pytest
from bs4 import BeautifulSoup
from click.testing import CliRunner
from pypdf import PdfReader

from browsing import chromium, in_browser, in_thread
from evolvingdp.publish.cli import main
from evolvingdp.publish.errors import BookError
from evolvingdp.publish.rendering import offline, pdf
from evolvingdp.publish.sources import provenance
from evolvingdp.publish.sources.project import Project


@pytest.fixture(scope="module")
def printed(built_book: Project) -> PdfReader:
    """What `evolvingdp pdf` prints."""
    chromium()
    return PdfReader(told(built_book, "pdf"))


def told(built_book: Project, command: str) -> Path:
    """Run `evolvingdp COMMAND` on the built book; the file that it says it wrote."""
    with pytest.MonkeyPatch.context() as here:
        here.setattr("evolvingdp.publish.sources.project.Project", lambda: built_book)
        result = in_thread(CliRunner().invoke, main, [command])
    assert result.exit_code == 0, result.output
    return Path(result.stdout.strip().split(": ", 1)[1])


@pytest.fixture(scope="module")
def texts(printed: PdfReader) -> list[str]:
    """Each page's text, ligatures as letters; a page's number comes first."""
    return [" ".join(unicodedata.normalize("NFKC", page.extract_text()).split()) for page in printed.pages]


@pytest.fixture(scope="module")
def titles(built_book: Project) -> list[str]:
    """The title of each page of the book, in its order."""
    html = built_book.root / "_build" / "html"
    soups = [BeautifulSoup((html / f"{entry.page}.html").read_text(), "html.parser") for entry in pdf.entries(built_book)]
    return [soup.select_one("article h1").find(string=True) for soup in soups]


def test_the_pdf_opens_with_a_title_page_and_contents_that_name_the_right_pages(texts, titles):
    assert texts[0].startswith("Evolving Privacy")
    assert provenance.commit()[:40] in texts[0].replace(" ", "")
    assert "preset quick" in texts[0]
    assert texts[1].startswith("2 Contents Evolving Privacy Chapters Heavy hitters ")
    listed = [int(number) for number in re.findall(r"(?<= )\d+$|(?<= )\d+(?= )", texts[1].split("Bibliography", 1)[1])]
    assert len(listed) == len(titles)
    for title, page in zip(titles, listed, strict=True):
        assert texts[page - 1].startswith(f"{page} ")
        assert title in texts[page - 1]


def test_every_page_of_the_book_is_in_the_pdf_and_every_page_of_the_pdf_has_a_number(built_book, texts, titles):
    assert 80 < len(texts) < 200
    assert all(text.startswith(f"{number} ") for number, text in enumerate(texts[1:], start=2))
    whole = "".join(texts).replace(" ", "")
    for entry in pdf.entries(built_book):
        article = BeautifulSoup((built_book.root / f"_build/html/{entry.page}.html").read_text(), "html.parser").article
        last = [p.get_text() for p in article.select("p") if not p.select("a, .math, code") and len(p.get_text()) > 60]
        for paragraph in (last[0], last[-1]) if last else ():
            assert "".join(paragraph.split())[:50] in whole, entry.page


def test_the_outline_of_the_pdf_is_that_of_the_book(built_book, printed, titles):
    def flat(nodes, depth=0):
        return [pair for node in nodes for pair in (flat(node, depth + 1) if isinstance(node, list) else [(depth, node)])]

    outline = flat(printed.outline)
    named = [node.title for _, node in outline]
    places = [named.index(title) for title in titles]
    assert places == sorted(places)
    assert named.count("Claims") >= 10
    depths = [outline[place][0] for place in places]
    assert depths == [entry.depth for entry in pdf.entries(built_book)]
    pages = [printed.get_destination_page_number(node) for _, node in outline]
    assert pages == sorted(pages)


def test_links_of_the_pdf_lead_inside_or_to_the_web_and_never_to_this_machine(built_book, printed):
    inside = 0
    for page in printed.pages:
        for note in page.get("/Annots", []):
            link = note.get_object()
            action = link.get("/A", {})
            if "/URI" in action:
                assert urlparse(action["/URI"]).scheme in ("http", "https"), action["/URI"]
            else:
                name = link.get("/Dest", action.get("/D"))
                assert str(name) in printed.named_destinations or not isinstance(name, str)
                inside += 1
    assert inside > 200
    content = b"".join(page.get_contents().get_data() for page in printed.pages[:1])
    assert b"file:" not in content
    raw = (built_book.root / "_build" / f"{offline.NAME}.pdf").read_bytes()
    assert b"file:///" not in raw
    assert str(built_book.root).encode() not in raw


def test_the_pdf_s_fonts_are_embedded_and_its_figures_are_vectors(printed):
    fonts, with_pixels = {}, 0
    for page in printed.pages:
        resources = page["/Resources"]
        for name, font in resources.get("/Font", {}).items():
            fonts[name] = font.get_object()
        with_pixels += any(item.get_object()["/Subtype"] == "/Image" for item in resources.get("/XObject", {}).values())
    assert fonts
    for font in fonts.values():
        described = font if font["/Subtype"] != "/Type0" else font["/DescendantFonts"][0].get_object()
        descriptor = described.get("/FontDescriptor", {})
        assert font["/Subtype"] == "/Type3" or {"/FontFile", "/FontFile2", "/FontFile3"} & set(descriptor), font
    assert with_pixels <= 2  # the one heat map, on its page and on the first
    assert printed.metadata.title == "Evolving Privacy"


@pytest.fixture(scope="module")
def unpacked(built_book: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(told(built_book, "zip")) as book:
        book.extractall(folder)
    assert [path.name for path in folder.iterdir()] == [offline.NAME]
    return folder / offline.NAME


def test_the_zip_reads_from_disk_in_a_browser(built_book, unpacked):
    """No console error, no failed or outside request on any page, and search and math work."""

    def look(browser):
        context = browser.new_context()
        page, said = context.new_page(), []
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("requestfailed", lambda request: said.append(f"failed: {request.url}"))
        inside = (unpacked.as_uri(), "data:")
        page.on("request", lambda ask: None if ask.url.startswith(inside) else said.append(f"outside: {ask.url}"))
        formulas = {}
        for file in [*built_book.contents(), "index"]:
            name = file.removesuffix(".ipynb")
            page.goto(f"{unpacked.as_uri()}/{name}.html", wait_until="networkidle")
            page.evaluate("() => window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
            formulas[name] = page.locator("mjx-container").count()
        page.goto(f"{unpacked.as_uri()}/search.html?q=Hadamard")
        page.wait_for_selector("#search-results li")
        page.wait_for_selector("#search-results .search-summary:has-text('found')")
        found = page.locator("#search-results li").count()
        return said, formulas, found

    said, formulas, found = in_browser(look)
    assert said == []
    assert formulas["book/heavy_hitters"] > 30
    assert found >= 3


def test_every_link_of_the_zip_is_relative_and_leads_to_a_file_in_it(built_book, unpacked):
    followed = {"csv": 0, "svg": 0, "html": 0}
    pages = [path for path in unpacked.rglob("*.html") if "_static" not in path.parts]  # there the theme keeps templates
    for path in pages:
        text = path.read_text()
        assert str(built_book.root) not in text
        assert "file:///" not in text
        for link in re.findall(r'(?:href|src)="([^"#]+)', text):
            if urlparse(link).scheme in ("http", "https", "data", "mailto"):
                continue
            assert not link.startswith("/"), link
            target = Path(unquote(urlparse(urljoin(path.as_uri(), link)).path))
            assert target.is_relative_to(unpacked), f"{path.name} links to {link}"
            assert target.is_file(), f"{path.name} links to {link}"
            followed[target.suffix[1:]] = followed.get(target.suffix[1:], 0) + 1
    assert all(followed[kind] > 30 for kind in ("csv", "svg", "html"))


@pytest.mark.usefixtures("unpacked")
def test_the_same_pages_give_the_same_zip(built_book):
    path = built_book.root / "_build" / f"{offline.NAME}.zip"
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    for page in (built_book.root / "_build" / "html").glob("book/*.html"):
        os.utime(page)  # written again with the same content
    assert hashlib.sha256(offline.archive(built_book).read_bytes()).hexdigest() == before


def test_pages_older_than_their_sources_are_not_packed(built_book):
    source = built_book.root / "book" / "notation.md"
    before = source.stat()
    try:
        os.utime(source, (before.st_atime + 10**6, before.st_mtime + 10**6))
        with pytest.raises(BookError, match="book/notation: changed since it was rendered"):
            offline.archive(built_book)
    finally:
        os.utime(source, (before.st_atime, before.st_mtime))


def test_without_rendered_pages_or_chromium_a_line_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    with pytest.raises(BookError, match="the book is not rendered yet, or not all of it; run make book"):
        offline.archive(Project(tmp_path))
    for value, said in (
        ("/no/such/program", "CHROMIUM is '/no/such/program', which is no program"),
        ("", "chromium was not found"),
    ):
        monkeypatch.setenv("CHROMIUM", value)
        monkeypatch.setenv("PATH", str(tmp_path))
        result = CliRunner().invoke(main, ["pdf"])
        assert result.exit_code == 1
        assert result.stderr.startswith(f"Error: {said}; install it (Debian: apt-get install chromium), or set CHROMIUM")
        assert result.stderr.count("\n") == 1
