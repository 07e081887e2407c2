"""What Python has compiled, where a full disk cut it: CPython 3.11 keeps such a file, and ends in EOFError ever after."""

from __future__ import annotations

import marshal
import os
import sysconfig
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path


def mended() -> str:
    """One line if a compiled file of the library, the notebooks or a package had been cut, all of which are removed."""
    places = {sysconfig.get_path(kind) for kind in ("purelib", "platlib", "stdlib")} | {str(Path(__file__).parents[1])}
    places |= {os.environ.get("EVOLVINGDP_NOTEBOOKS") or str(Path(__file__).parents[3] / "notebooks")}
    cut = sorted({one for place in places for source in Path(place).rglob("*.py") if _is_cut(one := _compiled(source))})
    if not cut:
        return ""
    for one in cut:
        with suppress(OSError):
            one.unlink()
    more = f" and {len(cut) - 1} more" if len(cut) > 1 else ""
    return f"Python's compiled file {cut[0]}{more} had been cut short, as where a disk is full; removed: try the same again"


def _compiled(source: Path) -> Path:
    return Path(cache_from_source(source))


def _is_cut(compiled: Path) -> bool:
    try:
        marshal.loads(compiled.read_bytes()[16:])  # behind the header
    except OSError:  # there is none
        return False
    except (EOFError, ValueError, TypeError):
        return True
    return False
