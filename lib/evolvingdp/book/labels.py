"""Labels are data: what a reader brings (words, names of files) is shown as it is, and read in no language.

A `Label` has one form for each place where it is shown, escaped once, and none of its own: an f-string that does not say the
place raises.  What would be invisible, or would turn its neighbours around, is shown by its code: <U+202E>.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

LONGEST = 40  # letters of a label in a drawing, where a longer one would leave it no room
_HIDDEN = {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}
_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}  # controls of the direction of writing
_SPAN = re.compile(r"\[((?:[^\[\]]|&#\d+;)*)\]\{\.label\}")
_SCRIPTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans Devanagari", "Noto Sans Arabic", "Noto Emoji")


@dataclass(frozen=True)
class Label:
    """`text` as somebody typed it."""

    text: str

    @property
    def plain(self) -> str:
        """One line of plain text: alternative texts, messages."""
        return "".join(map(_seen, self.text))

    @property
    def markdown(self) -> str:
        """For MyST: a span of the class `label`, which the book leaves alone, with all that is no letter as its number."""
        return f"[{''.join(map(_numbered, self.plain))}]{{.label}}"

    @property
    def mathtext(self) -> str:
        """For a drawing, cut to `LONGEST` letters, in a text without formulas."""
        shown = self.plain if len(self.plain) <= LONGEST else f"{self.plain[: LONGEST - 1]}…"
        return shown.replace("$", r"\$")

    def __str__(self) -> str:
        raise TypeError(f"say where {self.text!r} is shown: label.plain, .markdown or .mathtext")

    def __format__(self, form: str) -> str:
        return str(self)


def _seen(character: str) -> str:
    hidden = unicodedata.category(character) in _HIDDEN or unicodedata.bidirectional(character) in _TURNING
    return f"<U+{ord(character):04X}>" if hidden else character


def _numbered(character: str) -> str:
    return character if not character.isascii() or character.isalpha() else f"&#{ord(character)};"


def unmarked(markdown: str) -> str:
    """`markdown` for a reader that knows no spans, such as Jupyter: labels without their marks, still escaped."""
    return _SPAN.sub(r"\1", markdown)


def spoken(markdown: str) -> str:
    """`markdown` for a text file: labels as they are."""
    return _SPAN.sub(lambda span: re.sub(r"&#(\d+);", lambda number: chr(int(number[1])), span[1]), markdown)


def fenced(text: str, language: str) -> str:
    """`text` as a block of code of Markdown, whatever fence it holds itself."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text}\n{fence}"


@cache
def families() -> list[str]:
    """The fonts of drawings: the usual one, then those of other scripts that are installed; for the rest matplotlib draws
    boxes that name the script."""
    from matplotlib import font_manager

    there = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in _SCRIPTS if name in there)]
