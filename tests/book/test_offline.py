"""The book as one PDF and as a zip: whole, linked inside, and with nothing of the machine that made them."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from contextlib import nullcontext
from ctypes import c_float, c_int
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from bs4 import BeautifulSoup
from bs4.filter import SoupStrainer
from click.testing import CliRunner
from pikepdf import ObjectStreamMode, Pdf, StreamDecodeLevel
from pypdf import PdfReader
from pypdfium2 import PdfDocument, PdfPage, raw

from browsing import chromium, told
from evolvingdp.book import bundle, provenance
from evolvingdp.book.checkout import Project
from evolvingdp.book.cli import main
from evolvingdp.book.files import BookError
from evolvingdp.book.rendering import legible, offline, pdf
from evolvingdp.book.style import canvas


@pytest.fixture(scope="module")
def made(built_book: Project) -> tuple[Path, str]:
    """The file that `evolvingdp pdf` writes, and the page that it prints."""
    chromium()
    pages, real = [], pdf.joined
    with pytest.MonkeyPatch.context() as kept:
        kept.setattr(pdf, "joined", lambda project: pages.append(real(project)) or pages[-1])
        return told(built_book, "pdf"), pages[0]


@pytest.fixture(scope="module")
def file(made: tuple[Path, str]) -> Path:
    return made[0]


@pytest.fixture(scope="module")
def printed(file: Path) -> PdfReader:
    return PdfReader(file)


@dataclass
class Sheet:
    """A page of the PDF: its text, ligatures as letters, the page's number first; and what stands where, in points.

    `lines` are heights of letters, `frames` the (top, bottom) of boxes as broad as the text, `strokes` where lines end.
    """

    text: str
    lines: set[float]
    frames: list[tuple[float, float]]
    strokes: list[float]

    @property
    def end(self) -> float:
        """The height of the lowest thing above the page's number."""
        return min([height for height in self.lines if height > FOOT] + self.strokes)


HEAD, FOOT = 785.0, 56.0  # points, where the text begins and ends


def sheet(page: PdfPage) -> Sheet:
    """pdfium's own functions, as a book has half a million letters and lines."""
    lines, frames, strokes = set(), [], []
    place, filled, stroked, edges = raw.FS_MATRIX(), c_int(), c_int(), [c_float() for _ in range(4)]
    for number in range(raw.FPDFPage_CountObjects(page)):
        item = raw.FPDFPage_GetObject(page, number)
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_TEXT:
            assert raw.FPDFPageObj_GetMatrix(item, place)
            lines.add(place.f)
        elif kind == raw.FPDF_PAGEOBJ_PATH:
            assert raw.FPDFPageObj_GetBounds(item, *edges)
            assert raw.FPDFPath_GetDrawMode(item, filled, stroked)
            left, bottom, right, top = (edge.value for edge in edges)
            if stroked and not filled and bottom > FOOT:
                strokes += [bottom, top]
            bottom, top = max(bottom, FOOT), min(top, HEAD)
            if filled and 48 < left < 54 and 540 < right < 550 and top - bottom > 4:
                frames.append((top, bottom))
    return Sheet(plain(page.get_textpage().get_text_range()), lines, frames, strokes)


def plain(text: str) -> str:
    text = re.sub(r"\ufffe\s*", "-", text)  # so pdfium marks a hyphen at the end of a line
    return " ".join(unicodedata.normalize("NFKC", text).split())


@pytest.fixture(scope="module")
def sheets(file: Path) -> list[Sheet]:
    return [sheet(page) for page in PdfDocument(file)]


@pytest.fixture(scope="module")
def texts(sheets: list[Sheet]) -> list[str]:
    return [sheet.text for sheet in sheets]


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


def test_the_pdf_opens_with_a_title_page_and_contents_that_name_the_right_pages(texts, titles):
    assert texts[0].startswith("Evolving Privacy")
    assert provenance.commit()[:40] in texts[0].replace(" ", "")
    assert "preset quick" in texts[0]
    assert texts[1].startswith("2 Contents Evolving Privacy Start here Which method for my problem Chapters Heavy hitters ")
    listed = [int(number) for number in re.findall(r"(?<= )\d+$|(?<= )\d+(?= )", texts[1].split("Bibliography", 1)[1])]
    assert len(listed) == len(titles)
    for title, page in zip(titles, listed, strict=True):
        assert texts[page - 1].startswith(f"{page} ")
        assert title in texts[page - 1]


def test_every_page_of_the_book_is_in_the_pdf_and_every_page_of_the_pdf_has_a_number(articles, texts):
    assert 80 < len(texts) < 300
    assert [text[:60] for number, text in enumerate(texts[1:], start=2) if text.split()[0] != str(number)] == []
    whole = "".join(texts).replace(" ", "")
    for page, article in articles.items():
        last = [p.get_text() for p in article.select("p") if not p.select("a, .math, code") and len(p.get_text()) > 60]
        for paragraph in (last[0], last[-1]) if last else ():
            assert "".join(paragraph.split())[:50] in whole, page


def test_the_ledger_names_its_columns_on_every_page_of_the_pdf_and_each_paper_once(texts):
    pages = [text for text in texts if "verdict mechanism promise measured checked protects test" in text]
    assert len(pages) > 2
    for paper in ("What all four papers use", "Heavy hitters: Bassily et al. (2020), and their rivals"):
        assert sum(len(re.findall(f"{re.escape(paper)} (tight|–)", text)) for text in pages) == 1


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


def test_the_numbers_of_the_contents_stand_on_their_titles_lines(file, titles):
    page = PdfDocument(file)[1]
    letters = page.get_textpage()
    found = [
        (item.get_matrix().f, item.extract()) for item in page.get_objects([raw.FPDF_PAGEOBJ_TEXT], 2, textpage=letters)
    ]
    lines = [(height, "".join(text for _, text in line)) for height, line in groupby(found, lambda letter: letter[0])]
    heights = {"".join(plain(text).split()): height for height, text in lines}
    numbers = [height for height, text in lines if text.strip().isdigit()][1:]
    assert len(numbers) == len(titles)
    for title, number in zip(titles, numbers, strict=True):
        assert abs(heights["".join(title.split())] - number) < 1.5, title


def outlined(nodes: list[Any]) -> list[Any]:
    return [leaf for node in nodes for leaf in (outlined(node) if isinstance(node, list) else [node])]


def test_no_heading_of_the_pdf_stands_alone_at_the_end_of_a_page(printed, sheets):
    headings = outlined(printed.outline)
    assert len(headings) > 150
    alone = []
    for heading in headings:
        page = sheets[printed.get_destination_page_number(heading)]
        alone += [heading.title] if float(heading.top) - page.end < 30 else []
    assert alone == []


def test_every_frame_of_the_pdf_holds_its_text(sheets):
    """A frame that is cut from its code stays empty on the page before."""
    seen = 0
    for number, page in enumerate(sheets, start=1):
        there = [*page.strokes, *page.lines]
        for top, bottom in page.frames:
            assert any(bottom - 2 < height < top for height in there), f"page {number}: {top:.0f} to {bottom:.0f}"
            seen += 1
    assert seen > 500


def test_pages_of_the_pdf_are_full_but_where_a_page_of_the_book_ends(built_book, printed, sheets):
    """None but the last of an article ends in its upper 60 %, and one in a hundred where a large figure follows."""
    starts = [f"/{entry.slug}" for entry in pdf.entries(built_book)]
    last = {printed.get_destination_page_number(printed.named_destinations[start]) - 1 for start in starts}
    ends = {number + 1: page.end for number, page in enumerate(sheets) if number not in {0, *last, len(sheets) - 1}}
    height = float(printed.pages[0].mediabox.height)
    assert len({number: end for number, end in ends.items() if end > 0.4 * height}) <= len(sheets) // 100


def test_labels_of_figures_in_print_have_six_points_or_nearly(built_book, made):
    """A label's size in the file times how much smaller the figure is printed."""
    html = built_book.root / "_build" / "html"
    figures = "".join(re.findall(r"<figure\b.*?</figure>", made[1], re.DOTALL))
    soup = BeautifulSoup(figures, "html.parser")
    images = soup.select("figure img[src$='.svg']")
    assert len(images) > 40
    for image in images:
        svg = (html / image["src"].removeprefix("../html/")).read_text()
        width = float(re.search(r'<svg\b[^>]* width="([\d.]+)pt"', svg)[1])
        printed = float(re.match(r"width: ([\d.]+)pt", image["style"])[1])
        assert min(size for _, size in legible.labels(svg)) * printed / width > 5.65, image["src"]
        assert printed < 540


def test_a_figure_that_is_taller_than_a_page_goes_on_on_others_and_no_label_is_cut():
    """As the ledger's does, of which the quick preset shows one row in so many."""
    figure, ax = canvas(8.0, 47.0)
    ax.set_yticks(range(230), [f"row {number}" for number in range(230)], fontsize="xx-small")
    svg = bundle.image(figure, "svg").decode()
    soup = BeautifulSoup('<figure><img src="tall.svg"></figure>', "html.parser")
    legible.fit(soup.img, svg)
    slices = soup.select(".slice")
    assert len(slices) >= 4
    heights = [float(re.match(r"height: ([\d.]+)pt", part["style"])[1]) for part in slices]
    assert max(heights) <= legible.TALLEST
    offsets = [-float(re.search(r"margin-top: (-?[\d.]+)pt", part.img["style"])[1]) for part in slices]
    assert offsets == pytest.approx([sum(heights[:place]) for place in range(len(slices))], abs=0.5)
    shown = float(re.match(r"width: ([\d.]+)pt", slices[0].img["style"])[1])
    scale = shown / float(re.search(r'<svg\b[^>]* width="([\d.]+)pt"', svg)[1])
    texts = legible.labels(svg)
    assert len(texts) >= 230
    assert not [line for line, size in texts for cut in offsets[1:] if scale * (line - 0.9 * size) < cut < scale * line]


def test_links_of_the_pdf_lead_inside_or_to_the_web_and_never_to_this_machine(built_book, file, printed):
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
    for unwanted in (b"file:///", str(built_book.root).encode()):
        assert unwanted not in plainly.getvalue()


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


def test_every_link_of_the_zip_is_relative_and_leads_to_a_file_in_it(built_book, unpacked):
    followed = {"csv": 0, "svg": 0, "html": 0}
    files = {str(path) for path in unpacked.rglob("*") if path.is_file()}
    pages = [path for path in unpacked.rglob("*.html") if "_static" not in path.parts]  # there the theme keeps templates
    for path in pages:
        text = path.read_text()
        assert str(built_book.root) not in text
        assert "file:///" not in text
        for link in re.findall(r'(?:href|src)="([^"#]+)', text):
            if urlparse(link).scheme in ("http", "https", "data", "mailto"):
                continue
            assert not link.startswith("/"), link
            target = os.path.normpath(path.parent / unquote(urlparse(link).path))
            assert target in files, f"{path.name} links to {link}"
            kind = target.rpartition(".")[2]
            followed[kind] = followed.get(kind, 0) + 1
    assert all(followed[kind] > 30 for kind in ("csv", "svg", "html"))


@pytest.mark.usefixtures("unpacked")
def test_the_same_pages_give_the_same_zip(built_book):
    path = built_book.root / "_build" / f"{offline.NAME}.zip"
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    for page in (built_book.root / "_build" / "html").glob("book/*.html"):
        os.utime(page)  # written again with the same content
    assert hashlib.sha256(offline.archive(built_book).read_bytes()).hexdigest() == before


def test_pages_older_than_their_sources_are_not_packed(built_book, tmp_path):
    (tmp_path / "book").mkdir()
    for path in [*built_book.root.iterdir(), *(built_book.root / "book").iterdir()]:
        link = tmp_path / path.relative_to(built_book.root)
        if not link.exists():
            link.symlink_to(path)
    source = tmp_path / "book" / "notation.md"
    before = source.stat().st_mtime
    source.unlink()
    source.touch()
    for later, said in ((0, None), (10**6, "book/notation: changed since it was rendered")):
        os.utime(source, (before + later, before + later))
        with pytest.raises(BookError, match=said) if said else nullcontext():
            offline.check_rendered(Project(tmp_path))


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
    for name in ("google-chrome", "chromium", "chromium-headless-shell"):
        (tmp_path / name).touch(mode=0o755)
        assert offline.chromium() == str(tmp_path / name), "each before those that do more than is needed"
