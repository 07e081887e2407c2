"""BibTeX of a paper, of this book, of a chapter's experiments and of one figure, from the sources that hold the facts.

Papers stand in book/references.bib; the book's title, authors, version and date in CITATION.cff; the commit that computed
a result in its provenance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from evolvingdp.book.files import REPOSITORY

KEY = "evolving-privacy"


def citation(root: Path = REPOSITORY) -> dict[str, Any]:
    """What CITATION.cff says."""
    content: dict[str, Any] = yaml.safe_load((root / "CITATION.cff").read_text())
    return content


def paper(key: str, root: Path = REPOSITORY) -> str:
    """The entry `key` of references.bib, as it stands there; raises KeyError where there is none."""
    found = re.search(rf"^@\w+\{{{re.escape(key)},.*?^\}}\n", (root / "book" / "references.bib").read_text(), re.M | re.S)
    if not found:
        raise KeyError(key)
    return found[0]


def address(fields: Mapping[str, str]) -> str:
    """Where a paper is; raises KeyError where its entry has neither doi nor url."""
    return f"https://doi.org/{fields['doi']}" if "doi" in fields else fields["url"]


def book(root: Path = REPOSITORY) -> str:
    """The whole book as BibTeX."""
    return _entry("software", KEY, citation(root))


def chapter(name: str, title: str, records: Iterable[Mapping[str, Any]], root: Path = REPOSITORY) -> str:
    """The experiments of the chapter `name` as BibTeX, with the version and the commits of their provenance `records`."""
    records = list(records)
    version = ", ".join(sorted({record["version"] for record in records}))
    told = {"title": f"{title}: experiments of ", "version": version, "note": commits(records)}
    return _entry("software", f"{KEY}-{name.replace('_', '-')}", citation(root), **told)


def figure(figure_id: str, record: Mapping[str, Any], root: Path = REPOSITORY) -> str:
    """One figure as BibTeX, with the version and commit of its provenance `record`."""
    made = f"Version {record['version']}, commit {record['commit']}"
    told = {"title": f"Figure {figure_id} of ", "version": "", "howpublished": made}
    return _entry("misc", f"{KEY}-{figure_id}", citation(root), **told)


def commits(records: Iterable[Mapping[str, Any]]) -> str:
    """Which commit computed which notebook: one, or a list where there are several."""
    by_commit: dict[str, list[str]] = {}
    for record in records:
        by_commit.setdefault(record["commit"], []).append(record["notebook"].split("/")[-1])
    if len(by_commit) == 1:
        return f"Results computed at commit {next(iter(by_commit))}"
    each = (f"{', '.join(sorted(names))} at commit {commit}" for commit, names in sorted(by_commit.items()))
    return f"Results computed: {'; '.join(each)}"


def _entry(kind: str, key: str, facts: Mapping[str, Any], title: str = "", **more: str) -> str:
    """BibTeX of the book by CITATION.cff's `facts`, its title behind the words of `title`; an empty field is left out."""
    names = (
        f"{{{one['name']}}}" if "name" in one else f"{one['family-names']}, {one['given-names']}" for one in facts["authors"]
    )
    released = str(facts["date-released"])
    fields = {"author": " and ".join(names), "title": f"{title}{{{facts['title']}}}", "version": str(facts["version"])}
    fields |= {"year": released[:4], "date": released, "url": facts.get("url", "")} | more
    lines = (f"  {name} = {{{value if name == 'url' else _escaped(value)}}}" for name, value in fields.items() if value)
    return f"@{kind}{{{key},\n" + ",\n".join(lines) + "\n}\n"


def _escaped(text: str) -> str:
    return re.sub(r"([&%#_])", r"\\\1", text)
