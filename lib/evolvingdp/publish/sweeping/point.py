"""One point of a sweep, where it is computed: the notebook's `run` on a worker, without figures, as the bytes of its file.

A point's file is a Parquet table, the same rows as `evolvingdp run` writes to results.csv, which carries everything else
about the point (parameters, seed, values, claims, provenance, seconds) in its metadata: one file, whole or not there.
"""

from __future__ import annotations

import json
import os
import platform
import time
import traceback
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evolvingdp.experiment import Params, Result, engine
from evolvingdp.publish.sources import digest, provenance
from evolvingdp.publish.sources.project import params_of, run_of

ABOUT = b"evolvingdp"  # the metadata's name
_LIBRARY = digest.Library()  # what this process has imported decides its numbers, not what stands on the disk later


@dataclass(frozen=True)
class Outcome:
    """The file of a point that was computed, or the traceback of one that failed, or that killed its workers."""

    file: bytes = b""
    traceback: str = ""
    killed: bool = False


@cache
def sources(notebook: str) -> dict[str, str]:
    """What decides the numbers of `notebook` in this process besides parameters and seed: digests and versions."""
    made_of = digest.of_numbers(notebook, _LIBRARY)
    own = digest.digest_files([Path(__file__)], Path(__file__).parent)
    parts: dict[str, str] = {
        "library": made_of["library"],
        "data": made_of["data"],
        "sweep": own,
        "python": platform.python_version(),
    }
    packages: dict[str, str] = made_of["packages"]
    return parts | packages | {"pyarrow": version("pyarrow")}


def compute(notebook: str, params: dict[str, Any], seed: int, record: dict[str, str], wanted: dict[str, str]) -> Outcome:
    """Run the experiment of `notebook` once.  An error comes back as text: a client cannot import all that a worker can."""
    try:
        found = sources(notebook) | digest.of_files(params)
        differing = [part for part in {**found, **wanted} if found.get(part) != wanted.get(part)]
        if differing:
            raise RuntimeError(f"this worker differs from the sweep in: {', '.join(differing)}")
        os.environ.pop(engine.SCHEDULER, None)  # points run side by side already
        model = params_of(notebook)
        run = run_of(notebook)
        started = time.perf_counter()
        result = run(model.make(overrides=params), seed)
        return Outcome(file=_packed(result, record, time.perf_counter() - started))
    except Exception:
        return Outcome(traceback=traceback.format_exc())


def _packed(result: Result[Params], record: dict[str, str], seconds: float) -> bytes:
    import pyarrow as pa  # a refused parameter need not wait for it
    import pyarrow.parquet as pq

    about = {
        "params": result.params.model_dump(mode="json"),
        "seed": result.seed,
        "values": result.values,
        "claims": [claim.as_dict() for claim in result.claims],
        "record": {"command": provenance.command(result), **record},
        "seconds": round(seconds, 3),
    }
    table = pa.Table.from_pandas(result.table, preserve_index=False)
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(about).encode()}), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
