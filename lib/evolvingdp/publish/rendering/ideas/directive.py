"""A picture of an idea, in the book.

    ```{idea} thresholds
    The larger a change, the sooner it is seen.
    ```

draws `PICTURES["thresholds"]` into the page, as a numbered figure `idea-thresholds` with this caption.
"""

from __future__ import annotations

from collections.abc import Callable

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from evolvingdp.publish.rendering.ideas import continual_mean, evolving, heavy_hitters, sparse_vector, trust
from evolvingdp.publish.rendering.ideas.svg import Drawing

PICTURES: dict[str, Callable[[], Drawing]] = {
    "trust": trust.trust,
    "count-sketch": heavy_hitters.count_sketch,
    "prefix-tree": heavy_hitters.prefix_tree,
    "thresholds": evolving.thresholds,
    "blocks": continual_mean.blocks,
    "user-blocks": continual_mean.user_blocks,
    "counters": sparse_vector.counters,
}


class Idea(SphinxDirective):
    """A figure with a drawing in place of an image; its text is the caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
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


def register(app: Sphinx) -> None:
    app.add_directive("idea", Idea)
    app.add_css_file("ideas.css")
