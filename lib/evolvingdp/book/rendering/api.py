"""The library in the book: its public names with signatures and docstrings, and an algorithm's own lines beside its box.

    ```{public-names} heavy_hitters
    ```

lists what `evolvingdp.heavy_hitters` lists, file by file: the file's docstring (what is computed, guarantee, error, source),
then each name.  Names are objects of Sphinx's Python domain: search finds them, and
{py:obj}`evolvingdp.heavy_hitters.OLH` links.

    ```{source} heavy_hitters.sketches.local_rnd LocalRnd.true_bits LocalRnd.report
    sent = client.report(keys, slots, private)
    ```

shows the lines of these objects as they stand in the file, without docstrings, and below them how one calls it; it links the
whole file and the names' reference, which links back.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, cast

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from evolvingdp.book.rendering import api_fields

LIBRARY = "evolvingdp"
RUNNERS = ("start", "step", "run", "collect", "simulate", "release", "snapshot", "snapshots")  # a module's, for its settings
ONLY_RUN = {"evolving": ("thresh_simulation", "heavy_protocol", "heavy_simulation")}  # modules without a name in the room
_QUOTED = re.compile(r"""((?:: |-> ))(['"])(.*?)\2""")  # an annotation
_FORWARD = re.compile(r"ForwardRef\('([^']*)'[^)]*\)")  # how a named tuple keeps the types of its fields


def listed(package: str) -> dict[str, list[str]]:
    """The public names of evolvingdp.`package` by the module that defines them, in the modules' order, its own first."""
    room = importlib.import_module(f"{LIBRARY}.{package}")
    by_module: dict[str, list[str]] = {}
    for name in room.__all__:
        by_module.setdefault(_module(package, name, getattr(room, name)), []).append(name)
    by_module |= {f"{LIBRARY}.{package}.{module}": [] for module in ONLY_RUN.get(package, ())}
    return dict(sorted(by_module.items(), key=lambda each: (f".{package}." not in each[0], each[0])))


def _runners(module: str, public: Sequence[str]) -> list[tuple[str, Any]]:
    """The functions of `module` that run what its room exports, under names that only the module makes clear."""
    held = vars(importlib.import_module(module))
    return [
        (name, held[name]) for name in RUNNERS if name not in public and getattr(held.get(name), "__module__", "") == module
    ]


def _module(package: str, name: str, thing: Any) -> str:
    """Where a name is defined; an alias of types says that it is of Python's own module, and is looked for."""
    if thing.__module__.startswith(LIBRARY):
        return str(thing.__module__)
    files = [module for module in sorted(sys.modules) if module.startswith(f"{LIBRARY}.{package}.")]
    return next(file for file in files if re.search(rf"^{name} = ", inspect.getsource(sys.modules[file]), re.MULTILINE))


def lines(thing: Any) -> str:
    """The source of a class or function without its docstrings."""
    text = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
    rows: list[str | None] = [*text.splitlines()]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None and len(node.body) > 1:
            for row in range(node.body[0].lineno - 1, node.body[0].end_lineno or 0):
                rows[row] = None
    return "\n".join(row for row in rows if row is not None).replace("\n\n\n", "\n\n") + "\n"


def _signature(thing: Any) -> str:
    if getattr(thing, "_is_protocol", False):
        return "()"  # nobody makes one
    try:
        shown = _QUOTED.sub(r"\1\3", _FORWARD.sub(r"\1", str(inspect.signature(thing))))
    except (TypeError, ValueError):
        return "()"
    for field in dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ():
        if field.default_factory is not dataclasses.MISSING:
            shown = shown.replace("<factory>", f"{getattr(field.default_factory, '__name__', '')}()", 1)
    return shown.removesuffix(" -> None").replace("(cls, ", "(").replace("(cls)", "()")


def _said(thing: Any) -> str:
    """A docstring as it was written; the one that a dataclass makes for itself is none. An alias says what it stands for."""
    if isinstance(thing, UnionType):
        return f"Any of {', '.join(f'`{one.__name__}`' for one in thing.__args__)}."
    text = inspect.getdoc(thing) or ""
    return "" if text.startswith(f"{getattr(thing, '__name__', '')}(") else text


def _members(owner: type, public: Sequence[str]) -> list[tuple[str, str, Any]]:
    """Public methods and properties of `owner`, also from bases that no page lists: what Sphinx calls them, name, object."""
    bases = [base for base in owner.__mro__[1:] if base.__module__.startswith(LIBRARY) and base.__name__ not in public]
    found = []
    for name, held in {name: held for part in (*reversed(bases), owner) for name, held in vars(part).items()}.items():
        thing = getattr(held, "__func__", getattr(held, "fget", None) or getattr(held, "func", held))
        if name.startswith("_") or not inspect.isfunction(thing):
            continue
        kind = "method" if inspect.isfunction(held) else "property"
        found.append(("classmethod" if isinstance(held, classmethod) else kind, name, thing))
    return found


def _object(kind: str, name: str, signature: str, said: str, package: str, fence: str) -> str:
    """A name of the Python domain; the signature stands below it as one text, a tenth of the elements of Sphinx's own."""
    shown = f"```{{code-block}} text\n:class: signature\n{name.split('.')[-1]}{signature}\n```\n\n" if signature else ""
    return f"{fence}{{py:{kind}}} {name}\n:module: {LIBRARY}.{package}\n\n{shown}{said}\n{fence}\n"


def page(package: str, boxes: Mapping[str, Sequence[str]] | None = None) -> str:
    """The public names of evolvingdp.`package` as MyST; `boxes`: the labels of where the lines of a module are shown."""
    room = importlib.import_module(f"{LIBRARY}.{package}")
    kinds = [thing for thing in (getattr(room, name) for name in room.__all__) if getattr(thing, "_is_protocol", False)]
    parts = []
    for module, names in listed(package).items():
        file = module.removeprefix(f"{LIBRARY}.").removeprefix(f"{package}.").replace(".", "/") + ".py"
        shown = ", ".join(f"{{ref}}`{label}`" for label in (boxes or {}).get(module, []))
        parts.append(f"## {file}\n\n{_said(importlib.import_module(module))}\n")
        parts += [f"Beside its algorithm: {shown}.\n"] if shown else []
        for name in names:
            thing = getattr(room, name)
            kind = "class" if inspect.isclass(thing) else "data" if isinstance(thing, UnionType) else "function"
            kind = "exception" if inspect.isclass(thing) and issubclass(thing, Exception) else kind
            said = "\n\n".join(filter(None, [_said(thing), api_fields.told(thing) if inspect.isclass(thing) else ""]))
            parts.append(_object(kind, name, "" if kind == "data" else _signature(thing), said, package, "`" * 4))
            for what, member, held in _members(thing, room.__all__) if inspect.isclass(thing) else []:
                arguments = _signature(held).replace("(self, ", "(").replace("(self)", "()")
                if what == "property":
                    arguments = arguments.replace("() ->", ":")
                said = _said(held) or next((_said(vars(kind)[member]) for kind in kinds if member in vars(kind)), "")
                parts.append(_object(what, f"{name}.{member}", arguments, said, package, "`" * 4))
        inside = module.removeprefix(f"{LIBRARY}.")
        parts += [
            _object("function", name, _signature(run), _said(run), inside, "`" * 4)
            for name, run in _runners(module, room.__all__)
        ]
    return "\n".join(parts)


def boxes(root: Path) -> dict[str, list[str]]:
    """The modules whose lines the chapters show, and the label of each place."""
    found: dict[str, list[str]] = {}
    for chapter in sorted((root / "book").glob("*.md")):
        for module, objects in re.findall(r"^```\{source\} (\S+) (.+)$", chapter.read_text(), re.MULTILINE):
            found.setdefault(f"{LIBRARY}.{module}", []).append(_label(module, objects.split()))
    return found


def _keep(env: BuildEnvironment, module: str, name: str, package: str) -> None:
    """See to it that the module's whole file gets a page, whatever else the book documents of it.

    `sphinx.ext.viewcode` looks a name up in its package, and does not find it where a module is called like it.
    """
    analyzer = ModuleAnalyzer.for_module(module)
    analyzer.find_tags()
    modules = vars(env).setdefault("_viewcode_modules", {})
    entry: tuple[str, dict[str, Any], dict[str, str], str] = modules.get(module) or (
        analyzer.code,
        analyzer.tags,
        {},
        package,
    )
    if not entry[2]:
        alias = re.search(rf"^{name} = ", entry[0], re.MULTILINE)
        if name not in entry[1] and alias:
            line = entry[0].count("\n", 0, alias.start()) + 1
            entry[1][name] = ("class", line, line)
        if name in entry[1]:
            entry[2][name] = env.docname
    modules[module] = entry


def _label(module: str, objects: Sequence[str]) -> str:
    return "code-" + "-".join([module, *objects]).replace(".", "-").replace("_", "-").lower()


class PublicNames(SphinxDirective):
    """The public names of a room of the library."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        package, root = self.arguments[0], Path(self.env.srcdir)
        for module, names in listed(package).items():
            self.env.note_dependency(str(importlib.import_module(module).__file__))
            _keep(self.env, module, (names or [name for name, _ in _runners(module, ())])[0], f"{LIBRARY}.{package}")
        for chapter in (root / "book").glob("*.md"):
            self.env.note_dependency(str(chapter))
        node = nodes.section()
        node.document = self.state.document
        text = StringList(page(package, boxes(root)).splitlines(), source=package)
        self.state.nested_parse(text, self.content_offset, node, match_titles=True)
        return list(node.children)


OPEN = 16  # lines; longer code is folded


class Source(SphinxDirective):
    """The lines of objects of one module, how one calls them, and where the whole file and the reference are."""

    required_arguments = 2
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        where, names = self.arguments[0], self.arguments[1].split()
        try:
            module = importlib.import_module(f"{LIBRARY}.{where}")
            text = "\n".join(lines(_reached(module, name)) for name in names)
        except (ImportError, AttributeError, KeyError, OSError, TypeError) as error:
            raise self.error(f"no source {' '.join(self.arguments)!r}: {error!r}") from error
        for file in (str(module.__file__), __file__):
            self.env.note_dependency(file)
        label = _label(where, names)
        _keep(self.env, module.__name__, names[0], module.__name__)
        called = " and ".join(f"`{name}`" for name in names)
        unfolded = ":open:\n" if text.count("\n") <= OPEN else ""
        fold = f"::::{{dropdown}} In code: {called}\n{unfolded}\n```python\n{text}```\n::::\n"
        ids = [label, f"{module.__name__}.{names[0]}"]
        whole = nodes.container("", *self.parse_text_to_nodes(fold), ids=ids, classes=["algorithm-code"])
        call = "\n".join(self.content)
        whole += self._links(module, names, " Called like this:" if call else "")
        if call:
            whole += nodes.literal_block(call, call, language="python")
        standard = cast(StandardDomain, self.env.get_domain("std"))
        standard.note_hyperlink_target(label, self.env.docname, label, f"{names[-1]}, in its chapter")
        return [whole]

    def _links(self, module: ModuleType, names: Sequence[str], then: str) -> nodes.paragraph:
        path = module.__name__.replace(".", "/")
        address = f"{'../' * self.env.docname.count('/')}_modules/{path}.html"
        said = nodes.paragraph("", "From ", nodes.reference("", f"lib/{path}.py", refuri=address), classes=["source-of"])
        package = module.__name__.split(".")[1]
        public = importlib.import_module(f"{LIBRARY}.{package}").__all__
        for name in dict.fromkeys(name.split(".")[0] for name in names):
            if name in public:
                parsed = self.parse_text_to_nodes(f"{{py:obj}}`{name} <{LIBRARY}.{package}.{name}>`")
                said += [nodes.Text("; reference of "), *parsed[0].children]
        said += nodes.Text(f".{then}")
        return said


def _reached(module: ModuleType, name: str) -> Any:
    thing: Any = module
    for part in name.split("."):
        thing = vars(thing)[part] if inspect.isclass(thing) else getattr(thing, part)
    return getattr(thing, "__func__", getattr(thing, "fget", None) or getattr(thing, "func", thing))
