"""The folder of a sweep: a file per finished point, and the tables that are made of them.

sweep.json        what the folder belongs to
points/KEY.parquet  a finished point, written whole or not at all
sweep.parquet     the notebook's own rows of all points, with point, seed, parameters (param_NAME) and provenance
values.parquet    a row per point: its headline values
claims.parquet    a row per point and claim
timing.csv        seconds per point: apart, since they differ between two runs of the same sweep
index.html        the summary
ro-crate-metadata.json  the provenance, for archives
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evolvingdp.experiment import ParameterError
from evolvingdp.publish.files import HELD, WRITING, clear, replacing
from evolvingdp.publish.running.folders import check_writable
from evolvingdp.publish.sweeping.point import ABOUT

if TYPE_CHECKING:  # a refused parameter need not wait for them
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class Store:
    """The folder `folder` of one sweep."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """What sweep.json says; empty where there is none that can be read, or that says anything else."""
        try:
            manifest = json.loads((self.folder / "sweep.json").read_text())
        except (OSError, ValueError):
            return {}
        kinds = {"notebook": str, "command": str, "settings": list, "seeds": list}
        whole = isinstance(manifest, dict) and all(isinstance(manifest.get(name), kind) for name, kind in kinds.items())
        return manifest if whole and all(isinstance(seed, int) for seed in manifest["seeds"]) else {}

    def check(self, manifest: dict[str, Any], sources: Path) -> None:
        """Raise ParameterError unless the folder is free, or holds a part of `manifest`'s sweep: nothing may be lost."""
        check_writable(self.folder, sources=sources)
        there = self.manifest
        if not there:
            foreign = [path for path in self._entries() if not path.name.startswith((WRITING, HELD))]
            if foreign:
                raise ParameterError(f"out holds {str(foreign[0])!r}, which no sweep wrote; choose another folder")
            return
        if there["notebook"] != manifest["notebook"]:
            raise ParameterError(f"out {str(self.folder)!r} holds a sweep of {there['notebook']}; choose another folder")
        missing = [setting for setting in there["settings"] if setting not in manifest["settings"]]
        if missing or not set(there["seeds"]) <= set(manifest["seeds"]):
            raise ParameterError(
                f"out {str(self.folder)!r} holds a sweep with points that this one does not have ({there['command']}); "
                "choose another folder, or a grid that holds all of them"
            )

    def open(self, manifest: dict[str, Any]) -> None:
        """Make the folder that of `manifest`, and remove what killed sweeps left."""
        clear(self.folder)
        self.write("sweep.json", (json.dumps(manifest, indent=1) + "\n").encode())  # first: points alone would be nobody's
        (self.folder / "points").mkdir(exist_ok=True)
        clear(self.folder / "points")

    def write(self, name: str, content: bytes) -> None:
        """Write the file `name` whole or not at all."""
        with replacing(self.folder / name) as file:
            file.write_bytes(content)

    def path(self, key: str) -> Path:
        return self.folder / "points" / f"{key}.parquet"

    def has(self, key: str) -> bool:
        """Whether the point `key` is finished: its file is there and can be read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return ABOUT in (pq.read_table(self.path(key)).schema.metadata or {})
        except (OSError, pa.ArrowInvalid):
            return False

    def keep(self, key: str, content: bytes) -> None:
        self.write(f"points/{key}.parquet", content)

    def tabulate(self, keys: list[str]) -> pd.DataFrame:
        """Write the tables of the points `keys`, in that order; returns that of the values, a row per point."""
        import pandas as pd
        import pyarrow.parquet as pq

        abouts = {key: json.loads(pq.read_schema(self.path(key)).metadata[ABOUT]) for key in keys}
        values = pd.DataFrame([_point(key, about) | about["values"] for key, about in abouts.items()])
        claims = [_point(key, about) | _claim(claim) for key, about in abouts.items() for claim in about["claims"]]
        timing = [{"point": key, "seconds": about["seconds"]} for key, about in abouts.items()]
        with replacing(self.folder / "values.parquet") as file:
            values.to_parquet(file, index=False)
        with replacing(self.folder / "claims.parquet") as file:
            pd.DataFrame(claims).astype({"bound": float, "low": float, "high": float}).to_parquet(file, index=False)
        with replacing(self.folder / "timing.csv") as file:
            pd.DataFrame(timing).to_csv(file, index=False, lineterminator="\n")
        with replacing(self.folder / "sweep.parquet") as file:
            _concatenate([(self.path(key), _point(key, about), about["record"]) for key, about in abouts.items()], file)
        return values

    def _entries(self) -> Iterator[Path]:
        return self.folder.iterdir() if self.folder.is_dir() else iter(())


def _point(key: str, about: dict[str, Any]) -> dict[str, Any]:
    """The columns that say which point a row belongs to; a list is written as `run -p` takes it."""
    params = {f"param_{name}": _plain(value) for name, value in about["params"].items()}
    return {"point": key, "seed": about["seed"], **params}


def _plain(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _claim(claim: dict[str, Any]) -> dict[str, Any]:
    low, high = claim["bound"] if isinstance(claim["bound"], list) else (None, None)
    bound = None if isinstance(claim["bound"], list) else claim["bound"]
    return {**claim, "bound": bound, "low": low, "high": high}


def _concatenate(points: list[tuple[Path, dict[str, Any], dict[str, Any]]], out: Path) -> None:
    """One table of all points, a point in memory at a time; a column that some points lack is null there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.unify_schemas([_widened(*point).schema for point in points], promote_options="permissive")
    with pq.ParquetWriter(out, schema) as writer:
        for point in points:
            rows = _widened(*point)
            for field in schema:
                if field.name not in rows.column_names:
                    rows = rows.append_column(field, pa.nulls(len(rows), field.type))
            writer.write_table(rows.select(schema.names).cast(schema))


def _widened(path: Path, point: dict[str, Any], record: dict[str, Any]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(path).replace_schema_metadata(None)
    for place, (name, value) in enumerate(point.items()):
        rows = rows.add_column(place, name, pa.array([value] * len(rows), pa.scalar(value).type))
    for name, value in record.items():
        rows = rows.append_column(name, pa.array([value] * len(rows), pa.string()))
    return rows
