"""CITATION.cff: valid under the Citation File Format 1.2.0, and in agreement with references.bib and pyproject.toml."""

from __future__ import annotations

import copy
import tomllib
from datetime import date

import pytest
import yaml
from pybtex.database import parse_file

from evolvingdp.book import citing
from support import REPOSITORY

PAPERS = ("bassily2020", "joseph2018", "george2022", "kaplan2021")
LICENSES = {"MIT", "Apache-2.0", "BSD-3-Clause", "GPL-3.0-only"}  # of SPDX, those that could be ours


def _words(text: str) -> set[str]:
    return set(text.split())


TOP = _words("""
    abstract authors cff-version commit contact date-released doi identifiers keywords license license-url message
    preferred-citation references repository repository-artifact repository-code title type url version
""")
PERSON = _words("""
    address affiliation alias city country email family-names fax given-names name-particle name-suffix orcid
    post-code region tel website
""")
ENTITY = _words("""
    address alias city country date-end date-start email fax location name orcid post-code region tel website
""")
REFERENCE = _words("""
    abbreviation abstract authors collection-doi collection-title collection-type commit conference contact copyright
    data-type database database-provider date-accessed date-downloaded date-published date-released department doi
    edition editors editors-series end entry filename format identifiers institution isbn issn issue issue-date
    issue-title journal keywords languages license license-url loc-end loc-start location medium month nihmsid notes
    number number-volumes pages patent-states pmcid publisher recipients repository repository-artifact
    repository-code scope section senders start status term thesis-type title translators type url version volume
    volume-title year year-original
""")
KINDS = _words("""
    art article audiovisual bill blog book catalogue conference conference-paper data database dataset dictionary
    edited-work encyclopedia film-broadcast generic government-document grant hearing historical-work legal-case
    legal-rule magazine-article manual map multimedia music newspaper-article pamphlet patent personal-communication
    proceedings report serial slides software software-code software-container software-executable
    software-virtual-machine sound-recording standard statute thesis unpublished video website
""")


def faults(cff: dict) -> list[str]:
    """What breaks the rules of the format 1.2.0; the file's values as YAML reads them, dates as text."""
    found = [f"{key} is required" for key in ("authors", "cff-version", "message", "title") if not cff.get(key)]
    found += [f"{key} is no key of the file" for key in set(cff) - TOP]
    found += [f"{key} must be text" for key in ("cff-version", "message", "title") if not isinstance(cff.get(key), str)]
    if cff.get("cff-version") != "1.2.0":
        found.append("cff-version must be 1.2.0")
    if cff.get("type", "software") not in ("software", "dataset"):
        found.append("type must be software or dataset")
    if not _is_date(cff.get("date-released", "2026-01-01")):
        found.append("date-released must be YYYY-MM-DD")
    if "version" in cff and not isinstance(cff["version"], str | int | float):
        found.append("version must be text or a number")
    if "license" in cff and cff["license"] not in LICENSES:
        found.append("license must be an SPDX id")
    found += _authors(cff, "the file")
    words = cff.get("keywords", ["-"])
    if (
        not isinstance(words, list)
        or not words
        or not all(isinstance(word, str) for word in words)
        or len(words) > len({*words})
    ):
        found.append("keywords must be texts, each once")
    references = cff.get("references", [])
    for reference in references:
        found += [f"a reference must have {key}" for key in ("authors", "title", "type") if not reference.get(key)]
        found += [f"{key} is no key of a reference" for key in set(reference) - REFERENCE]
        if reference.get("type") not in KINDS:
            found.append("no such type of reference")
        for key in ("volume", "issue", "start", "end", "year"):
            if not isinstance(reference.get(key, 1), int | str):
                found.append(f"{key} must be a number or text")
        for key in ("title", "journal", "collection-title"):
            if not isinstance(reference.get(key, ""), str):
                found.append(f"{key} must be text")
        found += _authors(reference, "a reference")
    if len({str(reference) for reference in references}) < len(references):
        found.append("a reference stands twice")
    return found


def _is_date(text: object) -> bool:
    try:
        return isinstance(text, str) and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _authors(item: dict, of: str) -> list[str]:
    authors = item.get("authors")
    if not isinstance(authors, list) or not authors:
        return [f"authors of {of} must be a list"]
    found = [f"an author of {of} stands twice"] if len({str(author) for author in authors}) < len(authors) else []
    for author in authors:
        allowed = ENTITY if "name" in author else PERSON
        if set(author) - allowed or not author or not all(isinstance(value, str) and value for value in author.values()):
            found.append(f"an author of {of} must be a person or an entity, got {author}")
    return found


@pytest.fixture(scope="module")
def cff() -> dict:
    class Text(yaml.SafeLoader):
        """Dates stay text, or 2026-2-3 would pass."""

    Text.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if not pair[0].endswith("timestamp")]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return yaml.load((REPOSITORY / "CITATION.cff").read_text(), Text)


def test_the_citation_file_keeps_the_rules_of_its_format(cff):
    assert faults(cff) == []


def _without(key):
    return lambda cff: cff.pop(key)


def _with(**values):
    return lambda cff: cff.update({key.replace("_", "-"): value for key, value in values.items()})


BROKEN = {
    "authors of the file must be": _without("authors"),
    "message is required": _without("message"),
    "title must be text": _with(title=1),
    "cff-version must be": _with(cff_version="1.1.0"),
    "year is no key of the file": _with(year=2026),
    "date-released must": _with(date_released="2026-02-30"),
    "license must": _with(license="The MIT"),
    "type must": _with(type="book"),
    "keywords must": _with(keywords=["a", "a"]),
    "an author of the file must": _with(authors=[{"name": "A", "given-names": "B"}]),
    "an author of the file stands twice": _with(authors=[{"name": "A"}, {"name": "A"}]),
    "booktitle is no key of a reference": lambda cff: cff["references"][1].update(booktitle="x"),
    "no such type of reference": lambda cff: cff["references"][1].update(type="inproceedings"),
    "a reference must have title": lambda cff: cff["references"][1].pop("title"),
    "a reference stands twice": lambda cff: cff["references"].append(cff["references"][0]),
    "volume must be a number": lambda cff: cff["references"][1].update(volume=[31]),
    "an author of a reference must": lambda cff: cff["references"][0]["authors"].append({"family": "A"}),
}


@pytest.mark.parametrize("message", BROKEN)
def test_the_rules_catch_a_broken_citation_file(cff, message):
    broken = copy.deepcopy(cff)
    BROKEN[message](broken)
    assert any(fault.startswith(message) for fault in faults(broken))


def test_version_and_license_are_those_of_the_package(cff):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert (cff["version"], cff["license"]) == (project["version"], project["license"])
    assert cff["title"] == project["description"]
    assert [author["name"] for author in cff["authors"]] == [author["name"] for author in project["authors"]]
    assert citing.citation()["version"] == project["version"]


def test_the_references_are_the_papers_of_references_bib(cff):
    entries = parse_file(REPOSITORY / "book" / "references.bib").entries
    assert len(cff["references"]) == len(PAPERS)
    names = {"journal": "journal", "booktitle": "collection-title", "volume": "volume", "number": "issue", "year": "year"}
    for key, reference in zip(PAPERS, cff["references"], strict=True):
        entry = entries[key]
        expected = {
            "type": {"article": "article", "inproceedings": "conference-paper"}[entry.type],
            "title": entry.fields["title"],
        }
        expected |= {names[name]: value for name, value in entry.fields.items() if name in names}
        if "pages" in entry.fields:
            expected["start"], expected["end"] = entry.fields["pages"].split("--")
        authors = [f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]]
        assert authors == [str(person) for person in entry.persons["author"]]
        assert {name: str(value) for name, value in reference.items() if name != "authors"} == expected
