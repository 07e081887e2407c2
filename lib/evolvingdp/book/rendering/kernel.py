"""Run the snippets of a page, one after the other with shared names: JSON of their texts in, JSON of what they show out.

A program of its own, so that a page's names are those that its reader has typed, and nothing else.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import traceback
import warnings
from contextlib import redirect_stdout
from typing import Any


def number(value: float) -> str:
    """Four digits, or all before the point."""
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def shown(value: Any) -> dict[str, str]:
    """How a page shows what an expression gives: a frame as a table, a figure as a drawing, all else in words."""
    if hasattr(value, "to_html"):
        named = value.reset_index() if value.index.name else value
        return {"html": named.to_html(border=0, index=False, float_format=number)}
    if hasattr(value, "savefig"):
        drawn = io.StringIO()
        value.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
        return {"html": f"<svg{drawn.getvalue().partition('<svg')[2]}"}
    return {} if value is None else {"text": repr(value)}


def run(code: str, names: dict[str, Any]) -> dict[str, str]:
    """What `code` prints and shows, `text` and `html`; `error` is the traceback of the one that failed."""
    printed = io.StringIO()
    try:
        body = ast.parse(code).body
        last = None
        if body and isinstance(end := body[-1], ast.Expr):
            last = ast.Expression(end.value)
            body.pop()
        with redirect_stdout(printed):
            exec(compile(ast.Module(body, []), "snippet", "exec"), names)
            made = shown(eval(compile(last, "snippet", "eval"), names)) if last else {}
    except Exception:
        return {"error": traceback.format_exc()}
    return made | {"text": printed.getvalue() + made.get("text", "")}


if __name__ == "__main__":
    warnings.simplefilter("error")
    together: dict[str, Any] = {"__name__": "snippet"}
    json.dump([run(code, together) for code in json.load(sys.stdin)], sys.stdout)
