"""The shipped tables: their checksums, and how to make them again from the corpus."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

from evolvingdp.core import brown
from evolvingdp.publish.errors import DataError
from evolvingdp.publish.files import replacing


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(folder: Path) -> list[str]:
    """The names of the tables, all of which agree with the checksums in README.md; raises DataError."""
    listed = dict(re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})` \|$", (folder / "README.md").read_text(), re.MULTILINE))
    present = {path.name for path in folder.glob("*.csv*")}
    if set(listed) != present:
        raise DataError(f"data/ and its README.md must list the same tables; in one only: {sorted(set(listed) ^ present)}")
    for name, expected in listed.items():
        if checksum(folder / name) != expected:
            raise DataError(f"{name} has sha256 {checksum(folder / name)}, data/README.md says {expected}")
    return sorted(listed)


def corpus_tokens() -> Counter[str]:
    """The Brown corpus, downloaded where NLTK does not find it; raises DataError that says what to do."""
    import nltk

    try:
        return brown.corpus_tokens()
    except LookupError:
        pass
    if not nltk.download("brown", quiet=True):
        raise DataError(
            "the Brown corpus was not found and could not be downloaded; set NLTK_DATA to a folder that holds "
            "corpora/brown.zip, or run `python -m nltk.downloader brown` where there is a network"
        )
    return brown.corpus_tokens()


def rebuild_brown(folder: Path) -> list[Path]:
    """Write the Brown tables to `folder`, each at once; returns their paths."""
    tokens = corpus_tokens()
    by_category = brown.count_by_category(brown.category_tokens())
    contents = {
        "brown_words.csv.gz": brown.table_bytes(brown.count_words(tokens)),
        "brown_categories.csv.gz": brown.table_bytes(by_category.reset_index()),
        "brown_documents.csv.gz": brown.table_bytes(brown.holders(brown.document_tokens()).reset_index()),
        "brown_readings.csv": brown.compare_readings(tokens).to_csv(index=False, lineterminator="\n").encode(),
    }
    for name, content in contents.items():
        with replacing(folder / name) as file:
            file.write_bytes(content)
    return [folder / name for name in contents]
