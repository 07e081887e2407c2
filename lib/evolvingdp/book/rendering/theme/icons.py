"""The icons that pages show, and no others: the theme would send the drawings of two thousand with every page, 1.5 MB."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

DRAWINGS = "_static/scripts/fontawesome.js"
_NAMED = re.compile(rb"""["' ]fa-([a-z0-9-]+)""")
_ONE = re.compile(  # name:[width,height,[other names],"code",drawing]
    r"""(?<=[{,])(?:"([\w-]+)"|(\w+)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?"""
)


def kept(drawings: str, shown: set[str]) -> str:
    """The script `drawings` with those icons alone whose name, or another name of theirs, is among `shown`."""

    def one(icon: re.Match[str]) -> str:
        called = {icon[1] or icon[2], *re.findall(r'"([^"]+)"', icon[3])}
        return icon[0] if called & shown else ""

    return _ONE.sub(one, drawings)


def _cut(app: Sphinx, exception: Exception | None) -> None:
    drawings = Path(app.outdir) / DRAWINGS
    if exception or not drawings.exists():
        return
    sources = [path for kind in ("html", "js") for path in Path(app.outdir).rglob(f"*.{kind}") if path != drawings]
    shown = {name.decode() for path in sources for name in _NAMED.findall(path.read_bytes())}
    drawings.write_text(kept(drawings.read_text(), shown))


def setup(app: Sphinx) -> None:
    app.connect("build-finished", _cut)
