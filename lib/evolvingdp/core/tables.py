"""Where the shipped tables lie, in a checkout and in an installed package, and how they are written."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evolvingdp.core.checks import ParameterError

if TYPE_CHECKING:  # who only reads needs no pandas
    import pandas as pd

_PACKAGE = Path(__file__).parents[1]
DATA = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _PACKAGE.parents[1] / "data"  # installed, or in a checkout


class TableError(ParameterError):
    """A shipped table is missing or damaged; the message is one line."""


def read(name: str, **options: Any) -> pd.DataFrame:
    """The shipped table `name`, by pandas with `options`; raises TableError."""
    import pandas as pd

    try:
        table: pd.DataFrame = pd.read_csv(DATA / name, keep_default_na=False, **options)
        return table
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise damaged(name, error) from None


def damaged(name: str, error: Exception) -> TableError:
    """What to raise where the shipped table `name` raised `error`."""
    return TableError(
        f"the table {DATA / name} cannot be read ({' '.join(str(error).split())}): `git checkout data` or a new "
        "installation brings it back, `evolvingdp data` checks all"
    )


def table_bytes(table: pd.DataFrame) -> bytes:
    """`table`, without its index, as gzipped CSV, byte for byte the same each time."""
    text = table.to_csv(index=False, lineterminator="\n").encode()
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(text)
    return buffer.getvalue()
