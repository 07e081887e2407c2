"""The directives that compute or draw what they show.  Each imports what it needs when a page has it: most of the library,
pandas and matplotlib, which a book without such a page does not wait for.

    ```{idea} thresholds
    The larger a change, the sooner it is seen.
    ```

draws `PICTURES["thresholds"]` into the page, as a numbered figure `idea-thresholds` with this caption. `explorer`, `cards`,
`planner` and `peers` show what the modules of these names make; `{plan} mean --users 500_000` shows the command and what
the planner prints.
"""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import click
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from evolvingdp.book.checkout import Project
from evolvingdp.book.planned import plan


class Idea(SphinxDirective):
    """A figure with a drawing in place of an image; its text is the caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        from evolvingdp.book.rendering.ideas.pictures import PICTURES

        name = self.arguments[0]
        if name not in PICTURES:
            raise self.error(f"no picture {name!r}; there are {', '.join(PICTURES)}")
        self.env.note_reread()
        figure = nodes.figure("", nodes.raw("", PICTURES[name]().svg(f"idea-{name}"), format="html"), classes=["idea"])
        caption = nodes.caption()
        self.set_source_info(caption)
        said = self.parse_text_to_nodes("\n".join(self.content))
        caption += [child for paragraph in said for child in paragraph.children]
        figure += caption
        figure["names"].append(f"idea-{name}")
        self.state.document.note_explicit_target(figure, figure)
        return [figure]


class Explore(SphinxDirective):
    """An explorer, as HTML; a name that is none's is an error."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from evolvingdp.book.rendering.ideas.explorers import EXPLORERS, page

        if self.arguments[0] not in EXPLORERS:
            raise self.error(f"no explorer {self.arguments[0]!r}; there are {', '.join(EXPLORERS)}")
        self.env.note_reread()
        return [nodes.raw("", page(self.arguments[0]), format="html")]


class Cards(SphinxDirective):
    """Draw all cards; what the results lack is an error."""

    def run(self) -> list[nodes.Node]:
        from evolvingdp.book.rendering.ideas.cards import CARDS, draw

        results = Project(Path(self.env.srcdir)).results
        self.env.note_reread()
        for name in CARDS:
            try:
                drawn = draw(results, name)
            except (OSError, KeyError, ValueError) as error:
                raise self.error(f"no card {name!r}: {error!r}") from error
            (results / f"card-{name}.svg").write_bytes(drawn)
        return []


class Fields(SphinxDirective):
    """The planner's fields and table, as HTML; an error where the grid is missing, or for other fields."""

    def run(self) -> list[nodes.Node]:
        from evolvingdp.book.rendering.ideas.fields import FOLDER, Grid, page, table

        root = Path(self.env.srcdir)
        for name in ("planner_grid.csv", "planner_grid_methods.csv"):
            self.env.note_dependency(str(root / FOLDER / name))
        self.env.note_reread()
        try:
            grid = Grid.read(root)
        except (OSError, KeyError, ValueError) as error:
            raise self.error(f"no planner: {error!r}") from error
        return [nodes.raw("", page(grid) + table(grid), format="html")]


class Peers(SphinxDirective):
    """A section on other packages; a task that the results lack is an error."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        from evolvingdp.book.rendering import peers

        root = Path(self.env.srcdir)
        for file in sorted((root / "benchmarks" / "results").glob("peers*.csv")):
            self.env.note_dependency(str(file))
        try:
            text = peers.section(root, self.arguments[0])
        except (OSError, KeyError) as problem:
            raise self.error(f"no peers {self.arguments[0]!r}: {problem}") from problem
        node = nodes.container(classes=["peers"])
        self.state.nested_parse(StringList(text.splitlines(), source=self.arguments[0]), self.content_offset, node)
        return [node]


class Plan(SphinxDirective):
    """What `evolvingdp plan` prints; a question that it refuses is an error."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # the library is none of the page's files
        typed = " ".join(self.arguments[0].split())
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                plan.main(shlex.split(typed), prog_name="evolvingdp plan", standalone_mode=False)
        except click.ClickException as error:
            raise self.error(f"plan {typed}: {error.format_message()}") from error
        text = f"$ evolvingdp plan {typed}\n\n{printed.getvalue().rstrip()}"
        return [nodes.literal_block(text, text, language="text", classes=["planned"])]


def register(app: Sphinx) -> None:
    shown = {"idea": Idea, "explorer": Explore, "cards": Cards, "planner": Fields, "peers": Peers, "plan": Plan}
    for name, directive in shown.items():
        app.add_directive(name, directive)
    app.add_css_file("ideas.css")
    app.add_js_file("explorers.js")
