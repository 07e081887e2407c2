"""What the fields of a public class may be and what they mean, from the lines that declare and check them.

A field's meaning is the comment behind its declaration. What it may be is read off the call of `core.checks` in
`__post_init__` that refuses everything else, so that the page cannot say another range than the code has.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

_CHECKED = {
    "integer_at_least": "whole, at least {}",
    "power_of_two": "a power of two",
    "positive": "above 0",
    "probability": "between 0 and 1",
}


class About(NamedTuple):
    name: str
    allowed: str
    meaning: str


def fields(owner: type) -> list[About]:
    """Of a data class or named tuple, its own fields and inherited ones, in the order of the signature; else none."""
    if not (dataclasses.is_dataclass(owner) or hasattr(owner, "_fields")):
        return []
    declared: dict[str, About] = {}
    allowed: dict[str, str] = {}
    for part in reversed([part for part in owner.__mro__ if part.__module__.startswith("evolvingdp.")]):
        declared |= {each.name: each for each in _declared(part)}
        allowed |= _allowed(part)
    names = (
        [field.name for field in dataclasses.fields(owner) if field.init]
        if dataclasses.is_dataclass(owner)
        else owner._fields
    )
    return [declared[name]._replace(allowed=allowed.get(name, "")) for name in names if name in declared]


@functools.cache
def _parsed(owner: type) -> tuple[list[str], ast.ClassDef]:
    text = textwrap.dedent(inspect.getsource(owner))
    parsed = ast.parse(text).body[0]
    assert isinstance(parsed, ast.ClassDef)
    return text.splitlines(), parsed


def _declared(owner: type) -> Iterator[About]:
    rows, parsed = _parsed(owner)
    for node in parsed.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.end_lineno or node.lineno
            comments = [rows[last - 1][node.end_col_offset or 0 :].strip()]
            for row in rows[last:] if comments[0] else []:
                if not row.strip().startswith("# "):
                    break
                comments.append(row.strip())
            meaning = " ".join(comment.removeprefix("#").strip() for comment in comments)
            yield About(node.target.id, "", meaning)


def _allowed(owner: type) -> dict[str, str]:
    """By field, what the checks of `__post_init__` let pass."""
    found: dict[str, str] = {}
    for node in ast.walk(_parsed(owner)[1]):
        if not (isinstance(node, ast.Call) and re.fullmatch(r"checks\.\w+", ast.unparse(node.func))):
            continue
        check = ast.unparse(node.func).removeprefix("checks.")
        for word in node.keywords:
            if word.arg is None or ast.unparse(word.value) != f"self.{word.arg}":
                continue
            if check == "one_of":
                found[word.arg] = "one of " + ", ".join(f'`"{each}"`' for each in _values(owner, node.args[0]))
            elif check in _CHECKED:
                found[word.arg] = _CHECKED[check].format(*(_values(owner, each) for each in node.args))
    return found


def _values(owner: type, expression: ast.expr) -> Any:
    """A constant of the module, or a number that stands there."""
    return eval(ast.unparse(expression), vars(sys.modules[owner.__module__]))


def told(owner: type) -> str:
    """A Markdown list of the fields of which more is known than the signature says: what each may be, and what it means."""
    rows = [(each.name, "; ".join(filter(None, [each.allowed, each.meaning]))) for each in fields(owner)]
    return "\n".join(f"- `{name}`: {text}" for name, text in rows if text)
