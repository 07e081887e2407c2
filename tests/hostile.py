"""Words that a reader's file may hold: markup, formulas, commands, all scripts, and made up of their pieces."""

from __future__ import annotations

import random
import unicodedata

import pandas as pd

HIT = "window.hit = 1"
HOSTILE = [
    f"<script>{HIT}</script>", f'<img src="x" onerror="{HIT}">', f'"><svg onload="{HIT}">', f"[l](javascript:{HIT})",
    f"</title></figcaption><script>{HIT}</script>", "`<u>x</u>`", "{value}`streams/two_centuries word`", "{{ value }}",
    "{doc}`/book/index`", "```{raw} html", "new york", "a, b", "a;b|c", "$x^2$", r"$\int$ \$5", r"100%_#&~^\{}",
    r"\textbf{x}\par", "**a** _b_", "![i](x.png)", "| a | b |", "http://evil.example/x", "# head", "- item", "nan", "=1+1",
    "7.66e4", "123456", "007", "---", "\"a\" 'b' ...", "{#id .class}", "]{.label}", "&lt;b&gt;", "中文标签", "Привет",
    "مرحبا", "שלום, a", "नमस्ते", "€ 5", "🙂👍🏽", "e\u0301te\u0301", "\u202eevil\u202c", "zero\u200bwidth", "x" * 200,
]  # fmt: skip
PIECES = [
    *"<>&\"'`$\\{}[]()|*_#~^%!-= ",
    "<b>",
    "</td>",
    "&#60;",
    "$$",
    "{value}`",
    "](",
    "é",
    "ש",
    "日本",
    "😀",
    "1e5",
    "\\$",
]


def made_up(count: int) -> list[str]:
    """Words of random pieces, none of them blank at an end."""
    draw = random.Random(7)
    words = ("".join(draw.choices(PIECES, k=draw.randint(2, 9))).strip() for _ in range(10 * count))
    return sorted({unicodedata.normalize("NFC", word) for word in words if word})[:count]


WORDS = [unicodedata.normalize("NFC", word) for word in [*HOSTILE, *made_up(25)]]
LETTERS = ["apple", "pear", "kiwi", "fig", "plum", "lime"]  # all that TreeHist and Bitstogram take as words


def counted(words: list[str]) -> pd.DataFrame:
    """A reader's file, in which each word is rarer than the one before."""
    return pd.DataFrame({"word": words, "count": [400_000 // (1 + place) for place in range(len(words))]})
