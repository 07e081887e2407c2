"""The book's Sphinx extension: stale pages fail the build; numbers in prose and what to cite come from results.

    {value}`heavy_hitters/frequency_oracle lemma_error ,.0f`

prints the value `lemma_error` of that notebook's values.json in the given Python format.

    ```{cite-this} heavy_hitters
    :papers: bassily2020
    ```

shows BibTeX of the papers and of the chapter's experiments, with the commits that computed the results in
book/results/heavy_hitters; without a name, BibTeX of the whole book.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole

from evolvingdp.book import citing
from evolvingdp.book.checkout import Project
from evolvingdp.book.rendering import api, bibliography, drawn_ext, reproduction_ext, theme, whose
from evolvingdp.book.rendering.dated import Loop, Measured, Timings
from evolvingdp.book.running import problems


def refuse_stale_pages(app: Sphinx) -> None:
    """Fail the build where a page would not show what its notebook computes now."""
    project = Project(Path(app.srcdir))
    found = [problem for notebook in project.pages() for problem in problems(project, notebook)] + whose.stale(project.root)
    if found:
        raise ExtensionError("pages that may not be shown (run `make book`):\n" + "\n".join(found))


def _say_whose_numbers(app: Sphinx, doctree: nodes.document) -> None:
    """In a book with the reader's results, each of our pages says below its title that it is ours."""
    shown = whose.record(Path(app.srcdir))
    if not shown or app.env.docname.startswith(whose.YOURS):
        return
    own = shown["pages"].get(app.env.docname)
    said = f"What stands here is ours (preset {shown['base']}, seed 0), not yours. What {shown['file']} computes is in "
    target = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{own or whose.YOURS + '/index'}"}
    link = addnodes.pending_xref("", nodes.inline(), **target, refexplicit=False, refdoc=app.env.docname, refwarn=True)
    note = nodes.note("", nodes.paragraph("", said, link, nodes.Text(".")), classes=["whose"])
    for title in list(doctree.findall(nodes.title))[:1]:
        title.parent.insert(title.parent.index(title) + 1, note)


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
        return [nodes.inline("", text, classes=["label"]) if isinstance(value, str) else nodes.Text(text)], []


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


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", refuse_stale_pages)
    app.connect("doctree-read", _say_whose_numbers)
    app.add_transform(KeepLabels)
    app.add_role("value", Value())
    app.add_role("measured", Measured())
    theme.setup(app)
    bibliography.register()
    reproduction_ext.register(app)
    drawn_ext.register(app)
    app.add_directive("cite-this", CiteThis)
    app.add_directive("timings", Timings)
    app.add_directive("loop", Loop)
    app.add_directive("public-names", api.PublicNames)
    app.add_directive("source", api.Source)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
