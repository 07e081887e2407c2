"""The book as one PDF and as a zip: whole, linked inside, and with nothing of the machine that made them."""

from __future__ import annotations

import html
import os
import re
import subprocess
import unicodedata
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from bs4 import BeautifulSoup
from bs4.filter import SoupStrainer
from pikepdf import ObjectStreamMode, Pdf, StreamDecodeLevel
from pypdf import PdfReader
from pypdfium2 import PdfDocument
from serial import refused

from evolvingdp.book.checkout import Project
from evolvingdp.book.files import PublishError
from evolvingdp.book.rendering import offline, pdf
from support import REPOSITORY


@pytest.fixture(scope="module")
def file(clone: Path, typed: subprocess.CompletedProcess[str]) -> Path:
    """That which `make release` writes, one of the printed commands."""
    made = clone / "_build" / "evolving-privacy.pdf"
    assert made.exists(), typed.stdout[-5000:]
    return made


@pytest.fixture(scope="module")
def printed(file: Path) -> PdfReader:
    return PdfReader(file)


@pytest.fixture(scope="module")
def texts(file: Path) -> list[str]:
    """Of every page, with letters that print joins (ff, fl) apart."""
    with PdfDocument(file) as book:
        found = [page.get_textpage().get_text_bounded().replace("\2", "-") for page in book]  # at the end of a line
    return [" ".join(unicodedata.normalize("NFKC", text).split()) for text in found]


@pytest.fixture(scope="module")
def articles(built_book: Project) -> dict[str, BeautifulSoup]:
    """By page of the book, in its order, the title and the paragraphs of its article."""
    html, read = built_book.root / "_build" / "html", SoupStrainer(["h1", "p"])
    pages = {entry.page: (html / f"{entry.page}.html").read_text() for entry in pdf.entries(built_book)}
    inside = {page: re.search("<article.*</article>", text, re.DOTALL)[0] for page, text in pages.items()}
    return {page: BeautifulSoup(text, "html.parser", parse_only=read) for page, text in inside.items()}


@pytest.fixture(scope="module")
def titles(articles: dict[str, BeautifulSoup]) -> list[str]:
    return [article.h1.find(string=True) for article in articles.values()]


def test_the_pdf_opens_with_a_title_page_and_contents_that_name_the_right_pages(clone, texts, titles):
    assert texts[0].startswith("Evolving Privacy")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, capture_output=True, text=True, check=True).stdout
    assert f"commit{commit.strip()}Notebooks" in texts[0].replace(" ", "")
    assert "preset quick" in texts[0]
    assert "Contents" in texts[1]
    last = titles[-1].replace(" ", "")
    bare = [text.replace(" ", "") for text in texts]
    ends = next(page for page in (1, 2) if last in bare[page])  # it may take two pages
    contents, numbers = (
        "".join(bare[1 : ends + 1]),
        [int(number) for number in re.findall(r"\b\d+\b", " ".join(texts[1 : ends + 1]))],
    )
    for title in (title.replace(" ", "") for title in titles):
        assert title in contents
        found = [page for page, text in enumerate(bare, start=1) if page > ends + 1 and title in text]
        assert set(found) & set(numbers), title


def test_every_page_of_the_book_is_in_the_pdf_and_every_page_of_the_pdf_has_a_number(articles, texts):
    assert 80 < len(texts) < 300
    assert [number for number, text in enumerate(texts[1:], start=2) if str(number) not in text.split()] == []
    whole = "".join(texts).replace(" ", "")
    for page, article in articles.items():
        last = [p.get_text() for p in article.select("p") if not p.select("a, .math, code") and len(p.get_text()) > 60]
        for paragraph in (last[0], last[-1]) if last else ():
            assert "".join(unicodedata.normalize("NFKC", paragraph).split())[:50] in whole, page


def test_no_page_of_the_pdf_is_half_empty_but_where_a_page_of_the_book_ends(built_book, file, printed):
    starts = [f"/{entry.slug}" for entry in pdf.entries(built_book)]
    last = {printed.get_destination_page_number(printed.named_destinations[start]) - 1 for start in starts}
    ends = []
    with PdfDocument(file) as book:
        for page in book:
            sheet = page.render(scale=0.25, grayscale=True).to_numpy()
            height = len(sheet)
            text = sheet[: round(0.93 * height)]  # without its number
            ends.append((text < 250).reshape(len(text), -1).any(axis=1).nonzero()[0].max() / height)
    half = {page + 1: ends[page] for page in range(2, len(ends) - 1) if page not in last and ends[page] < 0.5}
    assert len(half) <= len(ends) // 100, half  # a large figure and its caption may go to the next page together


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


def test_links_of_the_pdf_lead_inside_or_to_the_web_and_never_to_this_machine(clone, file, printed):
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
    with Pdf.open(file) as book:
        book.save(
            plainly := BytesIO(),
            object_stream_mode=ObjectStreamMode.disable,
            stream_decode_level=StreamDecodeLevel.generalized,
            compress_streams=False,
        )
    assert len(plainly.getvalue()) > 2 * file.stat().st_size, "unpacked"
    for unwanted in (b"file:///", str(clone).encode()):
        assert unwanted not in plainly.getvalue()


def test_the_pdf_says_what_it_is_and_its_figures_are_vectors(printed):
    resources = [page["/Resources"].get("/XObject", {}).values() for page in printed.pages]
    with_pixels = sum(any(item.get_object()["/Subtype"] == "/Image" for item in each) for each in resources)
    assert with_pixels <= 2  # the one heat map, on its page and on the first
    assert printed.metadata.title == "Evolving Privacy"


def test_every_link_of_the_zip_is_relative_and_leads_to_a_place_in_it(built_book, unpacked):
    followed = {"csv": 0, "svg": 0, "html": 0, "#": 0}
    files = {str(path) for path in unpacked.rglob("*") if path.is_file()}
    pages = {path: path.read_text() for path in unpacked.rglob("*.html") if "_static" not in path.parts}  # templates there
    ids = {str(path): set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    for path, text in pages.items():
        assert not [root for root in (str(built_book.root), str(REPOSITORY), "file:///") if root in text], path.name
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            if urlparse(link).scheme in ("http", "https", "data", "mailto"):
                continue
            assert not link.startswith("/"), link
            place, fragment = urldefrag(html.unescape(link))
            target = os.path.normpath(path.parent / unquote(urlparse(place).path)) if place else str(path)
            assert target in files, f"{path.name} links to {link}"
            if fragment and target in ids and "_modules" not in path.parts:  # whose sources Sphinx leads back to the page
                assert unquote(fragment) in ids[target], f"{path.name} links to {link}"
            kind = target.rpartition(".")[2]
            followed[kind] = followed.get(kind, 0) + 1
            followed["#"] += bool(fragment)
    assert all(followed[kind] > 30 for kind in ("csv", "svg", "html", "#"))


def test_without_rendered_pages_or_chromium_a_line_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    with pytest.raises(PublishError, match="the book is not rendered yet, or not all of it; run make book"):
        offline.archive(Project(tmp_path))
    for value, code, said in (
        ("/no/such/program", 2, "CHROMIUM is '/no/such/program', which is no program"),
        ("", 3, "chromium was not found"),
    ):
        monkeypatch.setenv("CHROMIUM", value)
        monkeypatch.setenv("PATH", str(tmp_path))
        told = f"Error: {said}; install it (Debian: apt-get install chromium), or set CHROMIUM"
        assert refused("pdf", code=code).startswith(told)
    for name in ("google-chrome", "chromium", "chromium-headless-shell"):
        (tmp_path / name).touch(mode=0o755)
        assert offline.chromium() == str(tmp_path / name), "each before those that do more than is needed"
