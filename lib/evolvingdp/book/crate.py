"""RO-Crate: the provenance of a folder of results, in the words that archives read.

A crate follows RO-Crate 1.1 and the Process Run profile of the Workflow Run RO-Crate: the command is an action, its
instrument the software, its objects the parameters, its results the files.  The same result gives the same bytes: the date
is the release's, and run times stay away.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from evolvingdp.book import citing

NAME = "ro-crate-metadata.json"
CRATE, PROFILE = "https://w3id.org/ro/crate/1.1", "https://w3id.org/ro/wfrun/process/0.5"
CONTENT = "https://creativecommons.org/licenses/by/4.0/"
_KINDS = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".pdf": "application/pdf",
    ".bib": "application/x-bibtex",
    ".html": "text/html",
    ".txt": "text/plain",
    ".parquet": "application/vnd.apache.parquet",
}


def metadata(title: str, about: str, command: str, record: Mapping[str, Any], files: Iterable[str]) -> bytes:
    """The content of `NAME` for results called `title`, made by `command` with the provenance `record`: `params`, `seed`,
    `commit`, `version`, `python` and digests, as far as it has them."""
    facts, names = citing.citation(), sorted(files)
    inputs = dict(record.get("params", {})) | ({"seed": record["seed"]} if "seed" in record else {})
    digests = {name: value for name, value in record.items() if name.endswith("_sha256")}
    values = {f"#input-{name}": _value(name, value) for name, value in inputs.items()}
    values |= {f"#{name.replace('_', '-')}": _value(name, value) for name, value in digests.items()}
    entities: dict[str, dict[str, Any]] = {
        NAME: {"@type": "CreativeWork", "conformsTo": {"@id": CRATE}, "about": {"@id": "./"}},
        "./": {
            "@type": "Dataset",
            "name": title,
            "description": about,
            "datePublished": str(facts["date-released"]),
            "license": {"@id": CONTENT},
            "conformsTo": {"@id": PROFILE},
            "hasPart": _ids(names),
            "mentions": {"@id": "#run"},
        },
        PROFILE: {"@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        CONTENT: {"@type": "CreativeWork", "name": "Creative Commons Attribution 4.0 International"},
        "#run": {
            "@type": "CreateAction",
            "name": command,
            "description": f"at commit {record['commit']}",
            "instrument": {"@id": "#software"},
            "object": _ids(values),
            "result": _ids(names),
        },
        "#software": {
            "@type": "SoftwareApplication",
            "name": facts["title"],
            "version": record["version"],
            "license": f"https://spdx.org/licenses/{facts['license']}",
            "softwareRequirements": f"Python {record['python']}",
            **({"identifier": facts["doi"]} if facts.get("doi") else {}),
        },
        **values,
        **{name: {"@type": "File", "encodingFormat": _KINDS[PurePosixPath(name).suffix]} for name in names},
    }
    graph = [{"@id": key} | entity for key, entity in entities.items()]
    return (json.dumps({"@context": f"{CRATE}/context", "@graph": graph}, indent=1, allow_nan=False) + "\n").encode()


def _ids(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"@id": name} for name in names]


def _value(name: str, value: Any) -> dict[str, Any]:
    return {"@type": "PropertyValue", "name": name, "value": value if not isinstance(value, list) else json.dumps(value)}
