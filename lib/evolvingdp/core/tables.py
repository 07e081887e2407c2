"""Where the shipped tables lie, in a checkout and in an installed package, and how they are written."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who only reads needs no pandas
    import pandas as pd

_PACKAGE = Path(__file__).parents[1]
DATA = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _PACKAGE.parents[1] / "data"  # installed, or in a checkout


def table_bytes(table: pd.DataFrame) -> bytes:
    """`table`, without its index, as gzipped CSV, byte for byte the same each time."""
    text = table.to_csv(index=False, lineterminator="\n").encode()
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(text)
    return buffer.getvalue()
