"""The book's Sphinx extension: stale pages fail the build, and numbers in prose come from results.

    {value}`heavy_hitters/frequency_oracle lemma_error ,.0f`

prints the value `lemma_error` of that notebook's values.json in the given Python format.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxRole

from evolvingdp.publish import accessible, reproduction_ext
from evolvingdp.publish.execute import problems
from evolvingdp.publish.project import Project


def _refuse_stale_pages(app: Sphinx) -> None:
    project = Project(Path(app.srcdir))
    found = [problem for notebook in project.pages() for problem in problems(project, notebook)]
    if found:
        raise ExtensionError("pages that may not be shown (run `make book`):\n" + "\n".join(found))


class Value(SphinxRole):
    """A number of a result, formatted; a name that the result lacks is an error."""

    def run(self) -> tuple[Sequence[nodes.Node], Sequence[nodes.system_message]]:  # type: ignore[override]
        notebook, name, *form = self.text.split()
        path = Project(Path(self.env.srcdir)).results / notebook / "values.json"
        self.env.note_dependency(str(path))
        try:
            text = format(json.loads(path.read_text())[name], form[0] if form else "")
        except (OSError, KeyError, ValueError) as error:
            return [], [self.inliner.reporter.error(f"no value {self.text!r}: {error!r}", line=self.lineno)]
        return [nodes.Text(text)], []


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _refuse_stale_pages)
    app.add_role("value", Value())
    accessible.setup(app)
    reproduction_ext.register(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
