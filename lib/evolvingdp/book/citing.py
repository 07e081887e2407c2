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
from pybtex.database import BibliographyData, Entry, parse_file

from evolvingdp.book.files import REPOSITORY

KEY = "evolving-privacy"


def citation(root: Path = REPOSITORY) -> dict[str, Any]:
    """What CITATION.cff says."""
    content: dict[str, Any] = yaml.safe_load((root / "CITATION.cff").read_text())
    return content


def paper(key: str, root: Path = REPOSITORY) -> str:
    """The entry `key` of references.bib as BibTeX; raises KeyError where there is none."""
    return _bibtex(key, parse_file(root / "book" / "references.bib").entries[key])


def address(fields: Mapping[str, str]) -> str:
    """Where a paper is; raises KeyError where its entry has neither doi nor url."""
    return f"https://doi.org/{fields['doi']}" if "doi" in fields else fields["url"]


def book(root: Path = REPOSITORY) -> str:
    """The whole book as BibTeX."""
    return _bibtex(KEY, _software(citation(root)))


def chapter(name: str, title: str, records: Iterable[Mapping[str, Any]], root: Path = REPOSITORY) -> str:
    """The experiments of the chapter `name` as BibTeX, with the version and the commits of their provenance `records`."""
    records = list(records)
    entry = _software(citation(root), f"{title}: experiments of ")
    entry.fields["version"] = ", ".join(sorted({record["version"] for record in records}))
    entry.fields["note"] = commits(records)
    return _bibtex(f"{KEY}-{name.replace('_', '-')}", entry)


def figure(figure_id: str, record: Mapping[str, Any], root: Path = REPOSITORY) -> str:
    """One figure as BibTeX, with the version and commit of its provenance `record`."""
    entry = _software(citation(root), f"Figure {figure_id} of ")
    entry.type = "misc"
    entry.fields.pop("version")
    entry.fields["howpublished"] = f"Version {record['version']}, commit {record['commit']}"
    return _bibtex(f"{KEY}-{figure_id}", entry)


def commits(records: Iterable[Mapping[str, Any]]) -> str:
    """Which commit computed which notebook: one, or a list where there are several."""
    by_commit: dict[str, list[str]] = {}
    for record in records:
        by_commit.setdefault(record["commit"], []).append(record["notebook"].split("/")[-1])
    if len(by_commit) == 1:
        return f"Results computed at commit {next(iter(by_commit))}"
    each = (f"{', '.join(sorted(names))} at commit {commit}" for commit, names in sorted(by_commit.items()))
    return f"Results computed: {'; '.join(each)}"


def _software(facts: Mapping[str, Any], before_title: str = "") -> Entry:
    released = str(facts["date-released"])
    fields = {
        "author": " and ".join(_author(author) for author in facts["authors"]),
        "title": f"{before_title}{{{facts['title']}}}",
        "version": str(facts["version"]),
        "year": released[:4],
        "date": released,
    }
    return Entry("software", fields=fields | {"url": facts["url"]} if "url" in facts else fields)


def _author(author: Mapping[str, str]) -> str:
    """A person, or an entity, whose name BibTeX must not take apart."""
    return f"{{{author['name']}}}" if "name" in author else f"{author['family-names']}, {author['given-names']}"


def _bibtex(key: str, entry: Entry) -> str:
    """`entry` as BibTeX text of its own, indented by two spaces."""
    persons = {role: " and ".join(map(str, people)) for role, people in entry.persons.items()}
    whole = Entry(entry.type, fields={**persons, **dict(entry.fields.items())})
    text: str = BibliographyData(entries={key: whole}).to_string("bibtex", encoding=None)
    text = re.sub(r"^ +(doi|url) = .*", lambda line: line[0].replace("\\", ""), text, flags=re.MULTILINE)
    return text.replace("    ", "  ").strip() + "\n"
