"""The shipped tables: their checksums, and how to make them again from the corpus."""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path

import pandas as pd

from evolvingdp.book.files import PublishError, replacing
from evolvingdp.core import brown
from evolvingdp.core.tables import table_bytes
from evolvingdp.streams import addresses
from evolvingdp.streams.addresses import SHIPPED

NAMES = {"brown": "Brown corpus", "inaugural": "inaugural corpus", "state_union": "state of the union corpus"}


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(folder: Path) -> list[str]:
    """The names of the tables, all of which agree with the checksums in README.md; raises PublishError."""
    listed = dict(re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})` \|$", (folder / "README.md").read_text(), re.MULTILINE))
    present = {path.name for path in folder.glob("*.csv*")}
    if set(listed) != present:
        raise PublishError(
            f"data/ and its README.md must list the same tables; in one only: {sorted(set(listed) ^ present)}"
        )
    for name, expected in listed.items():
        if checksum(folder / name) != expected:
            raise PublishError(f"{name} has sha256 {checksum(folder / name)}, data/README.md says {expected}")
    return sorted(listed)


def needed(*corpora: str) -> None:
    """Download the NLTK corpora that NLTK does not find; raises PublishError that says what to do."""
    import nltk

    for corpus in corpora:
        try:
            getattr(nltk.corpus, corpus).fileids()
        except LookupError:
            if not nltk.download(corpus, quiet=True, print_error_to=io.StringIO()):
                raise PublishError(
                    f"the {NAMES[corpus]} was not found and could not be downloaded; set NLTK_DATA to a folder that holds "
                    f"corpora/{corpus}.zip, or run `python -m nltk.downloader {corpus}` where there is a network"
                ) from None


def rebuild_brown(folder: Path) -> list[Path]:
    """Write the Brown tables to `folder`, each at once; returns their paths."""
    needed("brown")
    documents = brown.document_tokens()
    tokens = brown.together(documents)
    by_category = brown.count_by_category(brown.by_category(documents))
    return _write(
        folder,
        {
            "brown_words.csv.gz": table_bytes(brown.count_words(tokens)),
            "brown_categories.csv.gz": table_bytes(by_category.reset_index()),
            "brown_readings.csv": _plain_bytes(brown.compare_readings(tokens)),
        },
    )


def rebuild_addresses(folder: Path) -> list[Path]:
    """Write the tables of presidents' addresses to `folder`, each at once; returns their paths."""
    needed(*SHIPPED, "brown")
    table = addresses.count_table(addresses.corpus_counts())
    words = addresses.tagged_function_words(set(table["word"]))
    return _write(folder, {"address_words.csv.gz": table_bytes(table), "address_function_words.csv": _plain_bytes(words)})


REBUILD = {"brown": rebuild_brown, "addresses": rebuild_addresses}


def _plain_bytes(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def _write(folder: Path, contents: dict[str, bytes]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with replacing(folder / name) as file:
            file.write_bytes(content)
    return [folder / name for name in contents]
