"""The book's Sphinx extension: stale pages fail the build; what a page shows beside its words is computed when it is read.

    {value}`heavy_hitters/frequency_oracle lemma_error ,.0f`    the value `lemma_error` of that notebook, formatted
    {measured}`thresh`                                          when and how benchmarks/results/thresh.csv was made

    ```{cite-this} heavy_hitters
    :papers: bassily2020
    ```

shows BibTeX of the papers and of the chapter's experiments, with the commits that computed the results in
book/results/heavy_hitters; without a name, BibTeX of the whole book. `{idea} thresholds` draws a picture of an idea as a
numbered figure, `{plan} mean --users 500_000` shows the command and what the planner prints, and the directives of `SHOWN`
show what a function of book/drawn/ returns.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from docutils.parsers.rst import directives
from pybtex.plugin import find_plugin, register_plugin
from pybtex.style.formatting.plain import Style as Plain
from pybtex.style.template import href
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole

from evolvingdp.book import citing, dated
from evolvingdp.book.checkout import Project
from evolvingdp.book.files import LIBRARY
from evolvingdp.book.numerals import readable
from evolvingdp.book.planned import plan
from evolvingdp.book.rendering import api, dark, reproduction, theme
from evolvingdp.book.running import problems
from evolvingdp.core.tables import DATA

SHOWN = {  # a directive: the function of book/drawn/ that gets the book's folder, the argument and the lines below it
    "explorer": "explorers.page", "cards": "cards.written", "planner": "fields.shown", "peers": "peers.section",
    "timings": "performance.timings", "numbers": "performance.numbers", "loop": "performance.loop", "ledger": "ledger.table",
    "live": "live.page", "measured-figure": "measured.figure", "titles": "titles.compared",
}  # fmt: skip


def refuse_stale_pages(app: Sphinx) -> None:
    """Fail the build where a page would not show what its notebook computes now."""
    project = Project(Path(app.srcdir))
    found = [problem for notebook in project.pages() for problem in problems(project, notebook)]
    if found:
        raise ExtensionError("pages that may not be shown (run `make book`):\n" + "\n".join(found))


class KeepLabels(SphinxTransform):
    """Labels keep their own quotes and hyphens."""

    default_priority = 700  # before Sphinx writes typographic ones

    def apply(self, **kwargs: Any) -> None:
        for node in self.document.findall(nodes.inline):
            if "label" in node["classes"]:
                node["support_smartquotes"] = False


class Value(SphinxRole):
    """A number of a result, formatted; a name that the result lacks is an error."""

    def run(self) -> tuple[Sequence[nodes.Node], Sequence[nodes.system_message]]:  # type: ignore[override]
        notebook, name, *form = self.text.split()
        path = Project(Path(self.env.srcdir)).results / notebook / "values.json"
        self.env.note_dependency(str(path))
        try:
            value = json.loads(path.read_text())[name]
            text = format(value, form[0] if form else "")
        except (OSError, KeyError, ValueError) as error:
            return [], [self.inliner.reporter.error(f"no value {self.text!r}: {error!r}", line=self.lineno)]
        return [nodes.inline("", text, classes=["label"]) if isinstance(value, str) else nodes.Text(readable(text))], []


class Measured(SphinxRole):
    """The sentence on a dated result."""

    def run(self) -> tuple[Sequence[nodes.Node], Sequence[nodes.system_message]]:  # type: ignore[override]
        self.env.note_reread()  # the library is none of the page's files
        try:
            parts = dated.sentence(Path(self.env.srcdir), self.text).split("`")
        except (OSError, KeyError, ValueError) as error:
            return [], [self.inliner.reporter.error(f"no dated result {self.text!r}: {error!r}", line=self.lineno)]
        return [nodes.literal(text=part) if place % 2 else nodes.Text(part) for place, part in enumerate(parts)], []


class CiteThis(SphinxDirective):
    """BibTeX of a chapter's papers and experiments, or of the book; what is missing is an error."""

    optional_arguments = 1
    option_spec = {"papers": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        project = Project(Path(self.env.srcdir))
        for source in ("CITATION.cff", "book/references.bib"):
            self.env.note_dependency(str(project.root / source))
        if not self.arguments:
            return [_bibtex(citing.book(project.root))]
        chapter = self.arguments[0]
        paths = [project.results / name / "provenance.json" for name in project.pages() if name.split("/")[0] == chapter]
        papers = self.options.get("papers", "").replace(",", " ").split()
        try:
            entries = [citing.paper(key, project.root) for key in papers]
            for path in paths:
                self.env.note_dependency(str(path))
            records = [json.loads(path.read_text()) for path in paths]
        except (OSError, KeyError, ValueError) as error:
            raise self.error(f"cite-this {chapter}: {error!r}") from None
        if not records:
            raise self.error(f"cite-this {chapter}: no notebook of the book is in notebooks/{chapter}")
        title = next(node.astext() for node in self.state.document.findall(nodes.title))
        return [_bibtex("\n".join(entries)), _bibtex(citing.chapter(chapter, title, records, project.root))]


def _bibtex(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="bibtex")


class Linked(Plain):  # type: ignore[misc]
    """The bibliography's style: plain, and each title leads to its paper, by DOI or by the entry's stable address."""

    def format_title(self, e: Any, which_field: str, as_sentence: bool = True) -> Any:
        return href(citing.address(e.fields))[super().format_title(e, which_field, as_sentence)]

    def format_btitle(self, e: Any, which_field: str, as_sentence: bool = True) -> Any:
        title = super().format_btitle(e, which_field, as_sentence)
        return href(citing.address(e.fields))[title] if which_field == "title" else title  # proceedings are no paper


class Shown(SphinxDirective):
    """HTML or MyST from a function of book/drawn/; what it lacks is an error."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # neither the library nor all results are the page's files
        module, function = SHOWN[self.name].split(".")
        try:
            made = getattr(import_module(f"drawn.{module}"), function)
            text: str = made(Path(self.env.srcdir), " ".join(self.arguments), list(self.content))
        except (OSError, KeyError, ValueError) as error:
            raise self.error(f"no {' '.join([self.name, *self.arguments])}: {error!r}") from error
        return [nodes.raw("", text, format="html")] if text.startswith("<") else self.parse_text_to_nodes(text)


class Idea(SphinxDirective):
    """A figure with a drawing in place of an image; its text is the caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        pictures, name = import_module("drawn.pictures").PICTURES, self.arguments[0]
        if name not in pictures:
            raise self.error(f"no picture {name!r}; there are {', '.join(pictures)}")
        self.env.note_reread()
        figure = nodes.figure("", nodes.raw("", pictures[name]().svg(f"idea-{name}"), format="html"), classes=["idea"])
        caption = nodes.caption()
        self.set_source_info(caption)
        said = self.parse_text_to_nodes("\n".join(self.content))
        caption += [child for paragraph in said for child in paragraph.children]
        figure += caption
        figure["names"].append(f"idea-{name}")
        self.state.document.note_explicit_target(figure, figure)
        return [figure]


class Plan(SphinxDirective):
    """What `evolvingdp plan` prints; a question that it refuses is an error."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        typed, printed = " ".join(self.arguments[0].split()), io.StringIO()
        try:
            with redirect_stdout(printed):
                plan.main(shlex.split(typed), prog_name="evolvingdp plan", standalone_mode=False)
        except click.ClickException as error:
            raise self.error(f"plan {typed}: {error.format_message()}") from error
        text = f"$ evolvingdp plan {typed}\n\n{printed.getvalue().rstrip()}"
        return [nodes.literal_block(text, text, language="text", classes=["planned"])]


def _depend_on_the_library(app: Sphinx, page: str, source: list[str]) -> None:
    """A changed library, or other data, has pages with code read again, and their code run."""
    if "{code-cell}" in source[0]:
        code = (path for path in LIBRARY.rglob("*.py") if "book" not in path.relative_to(LIBRARY).parts)
        for path in (*code, *DATA.glob("*.csv*")):
            app.env.note_dependency(str(path))


def _find_drawn(app: Sphinx) -> None:
    sys.path.insert(0, str(Path(app.srcdir) / "book"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", refuse_stale_pages)
    app.connect("builder-inited", _find_drawn)
    app.connect("source-read", _depend_on_the_library)
    app.add_config_value("made_with", theme.made_with(), "env")  # made with something else: all pages are read again
    app.add_transform(KeepLabels)
    app.add_role("value", Value())
    app.add_role("measured", Measured())
    for name, directive in {"cite-this": CiteThis, "idea": Idea, "plan": Plan, **dict.fromkeys(SHOWN, Shown)}.items():
        app.add_directive(name, directive)
    app.add_css_file("ideas.css")
    app.add_js_file("explorers.js")
    for part in (api, dark, reproduction, theme):
        part.setup(app)
    register_plugin("pybtex.style.formatting", "linked", Linked)
    # looked up for every citation, in the lists of all installed packages unless it is registered
    register_plugin("pybtex.backends", "plaintext", find_plugin("pybtex.backends", "plaintext"), force=True)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
