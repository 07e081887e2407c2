"""The library in the book: what each room exports, first what a reader chooses.

    ```{library} heavy_hitters
    FreqOracle TreeHist
    ```

shows these names of evolvingdp.heavy_hitters whole: what their file says (what is computed, guarantee, error, source), their
arguments, and a line for each method.  Without names it has a line for each name that the page has not shown, file by file.
Docstrings are plain words with `code` and $formulas$: `_as_rst` writes them as Sphinx reads them.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

LIBRARY = "evolvingdp"
RUNNERS = ("start", "step", "run", "draw", "collect", "simulate", "release", "snapshot", "snapshots")  # of a file's settings
ASKED = re.compile(r"^```\{library\} (\w+)\n((?:.*\n)*?)```$", re.MULTILINE)
_WHOLE: set[str] = set()  # the full names that a page shows whole, and of the modules that define them
_CODE = re.compile(r"(`[^`]+`|\$[^$]+\$|\*\*[^*]+\*\*)")
_FIELD = re.compile(r"^    (\w+): [^#\n]*#\s*(.+)$", re.MULTILINE)


def chosen(text: str) -> dict[str, list[str]]:
    """The names that the page in `text` shows whole, by room."""
    names: dict[str, list[str]] = {}
    for room, block in ASKED.findall(text):
        names.setdefault(room, []).extend(block.split())
    return names


def page(text: str) -> str:
    """`text` with its blocks as autodoc's directives; ValueError for a name that its room does not export."""
    told: set[str] = set()  # files that have said what they compute
    whole = chosen(text)
    for room, names in whole.items():
        public = importlib.import_module(f"{LIBRARY}.{room}").__all__
        wrong = [name for name in names if name not in public or names.count(name) > 1]
        if wrong:
            raise ValueError(f"evolvingdp.{room} has no {', '.join(wrong)}, or the page names it twice")
        _WHOLE.update(*((f"{LIBRARY}.{room}.{name}", _home(room, name).__name__) for name in names))

    def written(block: re.Match[str]) -> str:
        room, names = block[1], block[2].split()
        left = [name for name in importlib.import_module(f"{LIBRARY}.{room}").__all__ if name not in whole[room]]
        lines = [
            line for file, name in _by_file(room, names or left, every=not names) for line in _asked(room, file, name, told)
        ]
        return "```{eval-rst}\n" + "\n".join(lines) + "\n```"

    return ASKED.sub(written, text)


def _by_file(room: str, names: Sequence[str], *, every: bool) -> list[tuple[str, str]]:
    """Names with the modules that define them; if `every`, sorted, and modules that only run settings, too."""
    found = [(_home(room, name).__name__, name) for name in names]
    if not every:
        return found
    folder = Path(str(importlib.import_module(f"{LIBRARY}.{room}").__file__)).parent
    files = {f"{LIBRARY}.{room}.{_dotted(folder, file)}": file for file in folder.rglob("*.py") if file.stem != "__init__"}
    running = [name for name, file in files.items() if re.search(rf"^def ({'|'.join(RUNNERS)})\(", file.read_text(), re.M)]
    return sorted([*found, *((module, "") for module in running)])


def _asked(room: str, file: str, name: str, told: set[str]) -> Iterator[str]:
    """Once for each file what it says and its runners, and the name."""
    package, module = importlib.import_module(f"{LIBRARY}.{room}"), importlib.import_module(file)
    if file not in told:
        told.add(file)
        own = [runner for runner in RUNNERS if getattr(getattr(module, runner, None), "__module__", "") == file]
        runners = [runner for runner in own if getattr(package, runner, None) is not getattr(module, runner)]
        yield f".. automodule:: {file}\n   {_listed(runners)}\n"
    if not name:
        return
    thing, full = getattr(package, name), f"{package.__name__}.{name}"
    kind = "class" if inspect.isclass(thing) else "function" if inspect.isroutine(thing) else "data"
    if kind != "class" or issubclass(thing, Exception):
        yield f".. auto{'exception' if kind == 'class' else kind}:: {full}\n"
        return
    bases = [each for each in thing.__mro__ if each is thing or each.__name__.startswith("_")]  # others have their own entry
    defined = {member for each in bases for member in vars(each)} if full in _WHOLE else set()
    members = [member for member in _members(thing) if member in defined and _summary(getattr(thing, member).__doc__)]
    left = sorted({*_members(thing), *getattr(thing, "__dataclass_fields__", ())} - {*members})
    marks = "".join(f'<span id="{full}.{member}"></span>' for member in left if not member.startswith("_"))
    anchors = f"\n   .. raw:: html\n\n      {marks}\n" if marks else ""  # old addresses lead somewhere
    yield f".. autoclass:: {full}\n   {_listed(members)}\n{anchors}"


def _listed(members: Sequence[str]) -> str:
    return f":members: {', '.join(members)}" if members else ":no-members:"


def _home(room: str, name: str) -> ModuleType:
    """The module that defines a public name; an alias of types says that it is of Python's own, and is looked for."""
    package = importlib.import_module(f"{LIBRARY}.{room}")
    said = str(getattr(getattr(package, name), "__module__", ""))
    if said.startswith(LIBRARY):
        return importlib.import_module(said)
    folder = Path(str(package.__file__)).parent
    file = next(path for path in sorted(folder.rglob("*.py")) if re.search(rf"^{name} = ", path.read_text(), re.MULTILINE))
    return importlib.import_module(f"{LIBRARY}.{room}.{_dotted(folder, file)}")


def _dotted(folder: Path, file: Path) -> str:
    return ".".join(file.relative_to(folder).with_suffix("").parts)


def _members(thing: type) -> list[str]:
    """Public methods and properties, in the order of the source, those of bases of the library's own last."""
    names = [name for each in thing.__mro__ if each.__module__.startswith(LIBRARY) for name in vars(each)]
    kinds: Any = (property, cached_property, classmethod, staticmethod)
    return [
        name
        for name in dict.fromkeys(names)
        if not name.startswith("_")
        and (isinstance(held := inspect.getattr_static(thing, name), kinds) or inspect.isroutine(held))
    ]


def _summary(doc: str | None) -> str:
    """The first sentence of a docstring."""
    first = " ".join((doc or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.:])(?<!e\.g\.)(?<!i\.e\.) +(?=[A-Z`$\"])", first)[0].rstrip(":")


def _promises(doc: str) -> str:
    """A file's title and the first paragraph of each part that is named in bold; what else it explains is one click away."""
    title, *more = doc.strip().split("\n\n")
    named = (_summary(part) if part.startswith("**Source") else part for part in more if part.startswith("**"))
    return "\n\n".join([title, *named])


def _read(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """All of a docstring that the page shows whole, with the comments beside its fields; of others one sentence."""
    said = "" if lines and lines[0].startswith(f"{name.split('.')[-1]}(") else "\n".join(lines)  # a dataclass's own
    if what == "module":
        said = _promises(said) if name in _WHOLE else _summary(said)
    elif name not in _WHOLE:
        said = _summary(said)
    elif inspect.isclass(thing):
        fields = [f"- `{field}`: {told}" for field, told in _FIELD.findall(_source(thing)) if not field.startswith("_")]
        bases = [each.__name__ for each in thing.__mro__[1:] if each.__module__.startswith(LIBRARY)]
        others = [f"`{name}`" for name in bases if not name.startswith("_")]
        said = "\n".join(
            [said.rstrip(), "", *fields, *(["", f"Has what {' and '.join(others)} has, too."] if others else [])]
        )
    lines[:] = _as_rst(said).split("\n")


def _plain(app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None) -> Any:
    """Names and defaults; an entry of one sentence has none, but for what runs the settings of a file shown whole."""
    owner = name.rpartition(".")[0]  # a method's class, a runner's file; of an exported name the room, which is never whole
    brief = not {name, owner} & _WHOLE
    return "" if brief else re.sub(r"<factory>|<[^>]*>|mappingproxy\(.*?\)", "...", signature or ""), ""


def _source(thing: type) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return ""


def _as_rst(doc: str) -> str:
    return "\n\n".join(map(_block, re.split(r"\n\s*\n", doc))).strip("\n")


def _block(block: str) -> str:
    if block.startswith("|"):
        return _table(block)
    return f"::\n\n{block}" if block.startswith("    ") else _escaped(block)


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


def _write(app: Sphinx, docname: str, source: list[str]) -> None:
    if ASKED.search(source[0]):
        app.env.note_reread()  # the library's files are none of the page's
        source[0] = page(source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", _write)
    app.connect("autodoc-process-docstring", _read)
    app.connect("autodoc-process-signature", _plain)
