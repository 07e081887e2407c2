"""A small drawing, as SVG that stands in the page: it takes the page's colours, by day and by night, and names itself.

Lengths are units of a drawing `WIDTH` wide, which fills a phone: a unit is then nearly a pixel, and letters
are 12 to 13 units high.  The classes of marks (`ours`, `other`, `faint`, ...) get their colours in book/_static/ideas.css.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

WIDTH = 400


@dataclass
class Drawing:
    """Marks in drawing order.  `says` is the text for who cannot see them; positions grow to the right and down."""

    title: str
    says: str
    height: float
    marks: list[str] = field(default_factory=list)

    def _add(self, tag: str, kind: str, content: str = "", **places: object) -> None:
        given = "".join(f' {name.replace("_", "-")}="{_short(value)}"' for name, value in places.items())
        self.marks.append(f'<{tag} class="{kind}"{given}>{content}</{tag}>')

    def text(self, x: float, y: float, words: str, kind: str = "", *, at: str = "start") -> None:
        """`words` on the line at height `y`; `x` is where they start, end or have their middle."""
        self._add("text", kind, escape(words), x=x, y=y, text_anchor=at)

    def box(self, x: float, y: float, width: float, height: float, kind: str = "faint", *, strength: float = 1) -> None:
        self._add("rect", kind, x=x, y=y, width=width, height=height, rx=2, fill_opacity=strength)

    def dot(self, x: float, y: float, kind: str = "ours", radius: float = 4) -> None:
        self._add("circle", kind, cx=x, cy=y, r=radius)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "thin") -> None:
        self._add("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def path(self, course: str, kind: str = "ours") -> None:
        """A line along `course`, as SVG has it."""
        self._add("path", kind, d=course)

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A level or upright line with a head at its end."""
        self.line(x1, y1, x2, y2)
        back, side = ((-6 if x2 > x1 else 6), 0) if y1 == y2 else (0, (-6 if y2 > y1 else 6))
        corners = [(x2, y2), (x2 + back + side / 2, y2 + side + back / 2), (x2 + back - side / 2, y2 + side - back / 2)]
        self._add("polygon", "head", points=" ".join(f"{_short(x)},{_short(y)}" for x, y in corners))

    def svg(self, name: str) -> str:
        """The drawing as one element; `name` tells its title and its text from those of others on the page."""
        return (
            f'<svg class="idea" viewBox="0 0 {WIDTH} {_short(self.height)}" role="img" xmlns="http://www.w3.org/2000/svg" '
            f'aria-labelledby="{name}-title {name}-says"><title id="{name}-title">{escape(self.title)}</title>'
            f'<desc id="{name}-says">{escape(self.says)}</desc>{"".join(self.marks)}</svg>'
        )


def _short(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
