"""The library in the book: autodoc's reference of each room, file by file, and an algorithm's own lines beside its box.

    ```{public-names} heavy_hitters
    ```

becomes a section for each file with what its docstring says (what is computed, guarantee, error, source) and the names that
`evolvingdp.heavy_hitters` exports from it.  Docstrings are plain words with `code` and $formulas$: `_as_rst` writes them as
Sphinx reads them, and adds what the comments beside a class's fields say.

    ```{source} heavy_hitters.sketches.local_rnd LocalRnd.true_bits LocalRnd.report
    sent = client.report(keys, slots, private)
    ```

shows the lines of these objects, folded where they are many, and below them how one calls it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

LIBRARY = "evolvingdp"
RUNNERS = (
    "start",
    "step",
    "run",
    "draw",
    "collect",
    "simulate",
    "release",
    "snapshot",
    "snapshots",
)  # a module's, for its settings
OPEN = 16  # lines; longer code is folded
_CODE = re.compile(r"(`[^`]+`|\$[^$]+\$|\*\*[^*]+\*\*)")
_ARRAY = re.compile(
    r"ndarray\[tuple\[Any, \.\.\.\], dtype\[((?:[^\[\]]|\[[^\]]*\])*)\]\]"
)  # what numpy's NDArray stands for
_FIELD = re.compile(r"^    (\w+): [^#\n]*#\s*(.+)$", re.MULTILINE)


def page(room: str, boxes: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
    """The public names of evolvingdp.`room` as MyST, by the file that defines them; `boxes`: where a module's lines are."""
    package = importlib.import_module(f"{LIBRARY}.{room}")
    public = {name: getattr(package, name) for name in package.__all__}
    files: dict[str, list[str]] = {}
    for name, thing in public.items():
        files.setdefault(_defining(package.__name__, name, thing), []).append(name)
    for file in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
        module = f"{package.__name__}.{'.'.join(file.relative_to(Path(str(package.__file__)).parent).with_suffix('').parts)}"
        if not module.endswith("__init__") and re.search(rf"^def ({'|'.join(RUNNERS)})\(", file.read_text(), re.MULTILINE):
            files.setdefault(module, [])
    parts = []
    for module in sorted(files, key=lambda each: (not each.startswith(package.__name__), each)):
        held = vars(importlib.import_module(module))
        runners = [name for name in RUNNERS if getattr(held.get(name), "__module__", "") == module and name not in public]
        lines = [f".. automodule:: {module}", f"   :members: {', '.join(runners)}" if runners else "   :no-members:", ""]
        for name in files[module]:
            kind = (
                "class" if inspect.isclass(public[name]) else "data" if isinstance(public[name], UnionType) else "function"
            )
            kind = "exception" if inspect.isclass(public[name]) and issubclass(public[name], Exception) else kind
            members = "   :members:\n   :undoc-members:\n   :inherited-members: tuple\n" if kind == "class" else ""
            lines.append(f".. auto{kind}:: {package.__name__}.{name}\n{members}")
        title = module.removeprefix(f"{LIBRARY}.").removeprefix(f"{room}.").replace(".", "/")
        parts.append(f"## {title}.py\n\n```{{eval-rst}}\n" + "\n".join(lines) + "\n```\n")
        shown = (
            f'<a href="../{place}">{place.split(".html")[0].replace("_", " ")}</a>'
            for place in (boxes or {}).get(module, ())
        )
        parts += [f"Beside its algorithm: {', '.join(shown)}.\n"] if module in (boxes or {}) else []
    return "\n".join(parts)


def _defining(package: str, name: str, thing: Any) -> str:
    """The module of a public name; an alias of types says that it is of Python's own, and is looked for."""
    if thing.__module__.startswith(LIBRARY):
        return str(thing.__module__)
    folder = Path(str(importlib.import_module(package).__file__)).parent
    file = next(path for path in sorted(folder.rglob("*.py")) if re.search(rf"^{name} = ", path.read_text(), re.MULTILINE))
    return f"{package}.{'.'.join(file.relative_to(folder).with_suffix('').parts)}"


def _write(app: Sphinx, docname: str, source: list[str]) -> None:
    asked = re.compile(r"^```\{public-names\} (\w+)\n```$", re.MULTILINE)
    if asked.search(source[0]):
        app.env.note_reread()  # the library's files are none of the page's
        source[0] = asked.sub(lambda found: page(found[1], _boxes(Path(app.srcdir))), source[0])


def _boxes(root: Path) -> dict[str, list[str]]:
    """By module, where the chapters show its lines."""
    found: dict[str, list[str]] = {}
    for chapter in sorted((root / "book").glob("*.md")):
        for module, names in re.findall(r"^```\{source\} (\S+) (.+)$", chapter.read_text(), re.MULTILINE):
            found.setdefault(f"{LIBRARY}.{module}", []).append(f"{chapter.stem}.html#{_label(module, names.split())}")
    return found


def _label(module: str, names: Sequence[str]) -> str:
    return "code-" + re.sub(r"[._]", "-", "-".join([module, *names])).lower()


def _as_rst(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    said = [] if lines and lines[0].startswith(f"{name.split('.')[-1]}(") else lines[:]  # what a dataclass says for itself
    text = "\n".join(said)
    if what == "class" and inspect.isclass(thing):
        fields = [
            f"- `{field}`: {comment}" for field, comment in _FIELD.findall(_source(thing)) if not field.startswith("_")
        ]
        text = "\n".join([text.rstrip(), "", *fields])
    blocks = re.split(r"\n\s*\n", text)
    lines[:] = "\n\n".join(map(_block, blocks)).split("\n")


def _short(app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None) -> Any:
    """Shorter: arrays by what they hold, and names alone where Sphinx cannot read a signature, for a default `<factory>`."""
    if signature and "<factory>" in signature:
        signature = re.sub(r"~[\w.]+\.", "", signature)
    return tuple(text and _ARRAY.sub(r"NDArray[\1]", text) for text in (signature, returned))


def _skip(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Fields stand in the signature and in the list below the class."""
    called = inspect.isroutine(thing) or isinstance(thing, property | cached_property | classmethod | staticmethod)
    return None if called or what != "class" else True


def _source(thing: type) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return ""


def _block(block: str) -> str:
    if block.startswith("|"):
        return _table(block)
    return _literal(block) if block.startswith("    ") else _escaped(block)


def _literal(block: str) -> str:
    return f"::\n\n{block}"


def _table(block: str) -> str:
    """Rows between bars, the first of them a head with a rule of dashes below."""
    rows = [line.strip().strip("|").split("|") for line in block.splitlines() if not re.fullmatch(r"[-|: ]+", line)]
    cells = ["\n     - ".join(_escaped(cell.strip()) for cell in row) for row in rows]
    return ".. list-table::\n   :header-rows: 1\n\n" + "\n".join(f"   * - {row}" for row in cells)


def _escaped(block: str) -> str:
    """A paragraph, whose indented lines go on with what stands above them."""
    parts = _CODE.split(block)
    for place, part in enumerate(parts):
        if place % 2:  # a backslash and a blank, which nobody sees, let it stand beside letters
            role = part if part.startswith("**") else f":math:`{part[1:-1]}`" if part[0] == "$" else f"``{part[1:-1]}``"
            parts[place] = f"\\ {role}\\ "
        else:
            parts[place] = re.sub(r"([\\*|_])", r"\\\1", part)
    return re.sub(r"\n +", "\n  " if block.startswith("-") else "\n", "".join(parts))


class Source(SphinxDirective):
    """The lines of objects of one module, how one calls them, and where the whole file and the reference are."""

    required_arguments = 2
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        where, names = self.arguments[0], self.arguments[1].split()
        tags = ModuleAnalyzer.for_module(f"{LIBRARY}.{where}").find_tags()
        lacking = [name for name in names if name not in tags]
        if lacking:
            raise self.error(f"{where} has no {', '.join(lacking)}")
        file, room = f"lib/{LIBRARY}/{where.replace('.', '/')}.py", f"{LIBRARY}.{where.split('.')[0]}"
        unfolded = ":open:\n" if sum(tags[name][2] - tags[name][1] + 1 for name in names) <= OPEN else ""
        shown = "\n".join(f"```{{literalinclude}} /{file}\n:pyobject: {name}\n:dedent:\n```" for name in names)
        whole = f"{'../' * self.env.docname.count('/')}_modules/{LIBRARY}/{where.replace('.', '/')}.html"
        public, owners = importlib.import_module(room).__all__, dict.fromkeys(name.split(".")[0] for name in names)
        reference = "".join(f"; reference of {{py:obj}}`{name} <{room}.{name}>`" for name in owners if name in public)
        called = "\n".join(self.content)
        text = (
            f"::::{{dropdown}} In code: {' and '.join(f'`{name}`' for name in names)}\n{unfolded}\n{shown}\n::::\n\n"
            f'From <a href="{whole}">{file}</a>{reference}.{" Called like this:" if called else ""}\n'
            + (f"\n```python\n{called}\n```\n" if called else "")
        )
        parts = self.parse_text_to_nodes(text)
        return [
            nodes.container(
                "", *parts, ids=[_label(where, names), f"{LIBRARY}.{where}.{names[0]}"], classes=["algorithm-code"]
            )
        ]


def setup(app: Sphinx) -> None:
    app.connect("source-read", _write)
    app.connect("autodoc-process-docstring", _as_rst)
    app.connect("autodoc-process-signature", _short)
    app.connect("autodoc-skip-member", _skip)
    app.add_directive("source", Source)
