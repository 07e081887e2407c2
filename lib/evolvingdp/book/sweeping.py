"""Sweeps: a notebook's experiment over a grid of parameters and seeds, validated first, resumable, dealt out by dask.

The points of a grid share their seeds, so they are compared on the same noise, and each is what
`evolvingdp run NOTEBOOK -p ... --seed S` computes: all randomness comes from named streams, and nothing depends on where or
in which order points run.  Workers need the library and no notebooks: the client sends the modules.  The folder:

sweep.json          what it belongs to
points/KEY.parquet  a finished point with all that is known of it, written whole or not at all
sweep.parquet       the notebook's own rows of all points, with point, seed, parameters (param_NAME) and provenance
values.parquet      a row per point: its values;  claims.parquet: a row per point and claim
timing.csv          seconds per point: apart, since they differ between two runs of the same sweep
summary.csv, .svg   the notebook's main metric over the grid
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import json
import logging
import math
import os
import platform
import re
import shlex
import time
import traceback
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError as Cancelled
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

from evolvingdp.book import cell, checkout, engine, provenance
from evolvingdp.book.checkout import Project, metric_of, params_of, run_of
from evolvingdp.book.files import HELD, WRITING, SweepError, clear, environment, held, replacing, starting
from evolvingdp.book.labels import Label
from evolvingdp.book.params import Params
from evolvingdp.book.running import ONE_CORE, check_writable, seed_of
from evolvingdp.core.checks import ParameterError

if TYPE_CHECKING:  # a refused parameter need not wait for them
    import pandas as pd
    from distributed import Client

MOST_POINTS = 10_000
ABOUT = b"evolvingdp"  # the metadata of a point's file: parameters, seed, values, claims, provenance, seconds
ANSWER = 30  # seconds that a scheduler and its first worker may take to answer
AHEAD = 4  # points a core under way: no worker waits for its next one, and neither side holds many
LOOK = 2.0  # seconds between two looks at the workers
EVERY = 5.0  # seconds between two lines of progress
CURVES, PANELS = 8, 6  # as many as a reader can tell apart; the table has all
_ADDRESS = re.compile(r"([a-z]+://)?[\w.\-\[\]:]+")
Say = Callable[[str], None]


def run(
    project: Project,
    out: Path,
    *,
    say: Say,
    scheduler: str | None = None,
    workers: int | None = None,
    wait: float = ANSWER,
    **what: Any,
) -> None:
    """Compute the points that `out` lacks and write its tables; `what` goes to `make`, `wait` is for workers.

    Raises ParameterError before anything runs, SweepError at the end where points failed.
    """
    check_one_engine(scheduler, workers)
    sweep, store = make(project, **what), Store(out)
    store.check(sweep.manifest, project.root)
    points = sweep.points
    left = [point for point in points if not store.has(point.key)]
    before, failures = len(points) - len(left), dict[str, str]()
    with ExitStack() as opened:
        if left:
            if scheduler is not None:
                address_of(scheduler)  # before anything is said or written
            count = None if scheduler is not None else min(workers or os.cpu_count() or 1, len(left))
            where = scheduler if count is None else f"{count} worker{'s' if count != 1 else ''}"
            say(f"{sweep.notebook}: {len(points)} points, {before} finished before; running on {where}")
            client = opened.enter_context(connected(scheduler, count, sweep.notebook, wait))
        else:
            say(f"{sweep.notebook}: {len(points)} points, all finished before")
        opened.enter_context(held(out))
        store.open(sweep.manifest)
        if left:
            failures = compute(sweep, store, client, left, progress(len(points), before, say), wait)
        keys = [point.key for point in points if point.key not in failures]
        if keys:
            store.tabulate(keys, sweep)
    if failures:
        told = "\n".join(failures.values())
        raise SweepError(
            f"{len(failures)} of {len(points)} points failed, the others are in {out}; the same command tries again\n{told}"
        )


def progress(total: int, before: int, say: Say, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Says at each step, at most every `EVERY` seconds, how many points are done, what one costs and what is left: at
    first too much, as workers start and import."""
    started = said = clock()
    for done in range(before + 1, total + 1):
        now = clock()
        if now - said >= EVERY or done == total:
            each = (now - started) / (done - before)
            told = f", about {_duration(each * (total - done))} left" if done < total else ""
            say(f"{done} of {total} points, {_duration(now - started)}, {each:.2g} s a point{told}")
            said = now
        yield


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


# The grid


@dataclass(frozen=True)
class Point:
    """One run: `key` is a digest of all that decides it."""

    params: Params
    seed: int
    key: str


@dataclass(frozen=True)
class Sweep:
    """Every point of `grid` with every one of `seeds`, seed after seed: the first seed already covers the grid."""

    notebook: str
    grid: dict[str, list[Any]]
    settings: list[Params]
    seeds: range
    command: str

    @property
    def points(self) -> list[Point]:
        made_of = sources(self.notebook)
        return [
            Point(params, seed, _key(self.notebook, params, seed, made_of))
            for seed in self.seeds
            for params in self.settings
        ]

    @property
    def manifest(self) -> dict[str, Any]:
        """What the folder of this sweep says of it."""
        told = {"notebook": self.notebook, "command": self.command, "grid": self.grid, "seeds": list(self.seeds)}
        return told | {"settings": [params.model_dump(mode="json") for params in self.settings]}


def _key(notebook: str, params: Params, seed: int, made_of: dict[str, str]) -> str:
    values = params.model_dump(mode="json")
    parts = {"notebook": notebook, "params": values, "seed": seed, "sources": made_of | checkout.of_files(values)}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def make(
    project: Project,
    notebook: str,
    grid: Iterable[str],
    *,
    preset: str = "quick",
    overrides: Iterable[tuple[str, str]] = (),
    seed: Any = 0,
    repeat: int = 1,
) -> Sweep:
    """The sweep of `notebook` over `grid`, texts NAME=VALUE,VALUE,...; validated point by point: ParameterError."""
    notebook = project.notebook(notebook)
    model, fixed = params_of(notebook), dict[str, str]()
    for name, value in overrides:
        if name in fixed:
            raise ParameterError(f"each parameter may be set once, {name} is set twice")
        if name == "seed":
            raise ParameterError("seed is set by --seed, the number of seeds by --repeat")
        fixed[name] = value
    axes = _axes(model, grid)
    both = sorted(set(fixed) & set(axes))
    if both:
        raise ParameterError(f"{both[0]} is set by -p and swept by --grid; leave one away")
    first = seed_of(seed)
    count = math.prod(len(values) for values in axes.values()) * repeat
    if count > MOST_POINTS:
        raise ParameterError(f"the sweep has {count} points, at most {MOST_POINTS} may be: take fewer values or repeats")
    settings = _validated(model, preset, fixed, axes)
    words = ["evolvingdp", "sweep", notebook, "--preset", preset]
    words += [word for name, values in axes.items() for word in ("--grid", f"{name}={_separator(model, name).join(values)}")]
    words += [word for pair in fixed.items() for word in ("-p", *pair)] + ["--seed", str(first), "--repeat", str(repeat)]
    dumps = [params.model_dump(mode="json") for params in settings]
    swept = {name: list({json.dumps(dump[name]): dump[name] for dump in dumps}.values()) for name in axes}
    return Sweep(notebook, swept, settings, range(first, first + repeat), shlex.join(words))


def _axes(model: type[Params], grid: Iterable[str]) -> dict[str, list[str]]:
    """The texts of the values per swept parameter."""
    axes: dict[str, list[str]] = {}
    for text in grid:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise ParameterError(f"grid must be NAME=VALUE,VALUE,..., got {text!r}")
        if name == "seed":
            raise ParameterError("seed cannot be in the grid; --seed sets the first seed, --repeat the number of seeds")
        if name in axes:
            raise ParameterError(f"grid names {name} twice; write all its values into one --grid")
        if name not in model.model_fields:
            model.make(overrides={name: values})  # raises, and names the nearest parameter
        separator = _separator(model, name)
        axes[name] = [value.strip() for value in values.split(separator)]
        if not all(axes[name]):
            raise ParameterError(f"grid has an empty value for {name}, got {text!r}")
        if separator == ";" and len(axes[name]) == 1:
            raise ParameterError(
                f"grid over the list {name} needs lists separated by ';', as in {name}={values};{values}, got {text!r}; "
                f"for one list use -p {name} {values}"
            )
    if not axes:
        raise ParameterError("grid must name a parameter and its values, such as --grid epsilon=0.5,1")
    return axes


def _separator(model: type[Params], name: str) -> str:
    """Between the values of a parameter in a grid: a list has commas of its own."""
    return ";" if get_origin(model.model_fields[name].annotation) is tuple else ","


def _validated(model: type[Params], preset: str, fixed: dict[str, str], axes: dict[str, list[str]]) -> list[Params]:
    """The parameters of every combination; a rule may concern several parameters, so each is checked as a whole."""
    model.check_preset(preset)
    made, refused = dict[str, tuple[str, Params]](), []
    for values in itertools.product(*axes.values()):
        point = dict(zip(axes, values, strict=True))
        name = ", ".join(f"{key}={value}" for key, value in point.items())
        try:
            params = model.make(preset, fixed | point)
        except ParameterError as error:
            refused.append(f"point {name}: {error}")
            continue
        twin, _ = made.setdefault(params.model_dump_json(), (name, params))
        if twin is not name:
            raise ParameterError(f"the points {twin} and {name} are the same; give each value once")
    if refused:
        raise ParameterError(refused[0] + (f" (and {len(refused) - 1} other points)" if len(refused) > 1 else ""))
    return [params for _, params in made.values()]


# One point, where it is computed


@dataclass(frozen=True)
class Outcome:
    """The file of a point that was computed, or the traceback of one that failed."""

    file: bytes = b""
    traceback: str = ""


@cache
def sources(notebook: str) -> dict[str, str]:
    """What decides the numbers of `notebook` in this process besides parameters and seed: digests and versions."""
    made_of = checkout.made_of(notebook)  # once: what this process imports decides, not what stands on the disk later
    packages: dict[str, str] = made_of.pop("packages")
    return made_of | {"python": platform.python_version()} | packages | {"pyarrow": version("pyarrow")}


def one(notebook: str, made_of: Any, params: dict[str, Any], seed: int, record: dict[str, str], wanted: Any) -> Outcome:
    """Run the experiment of `notebook` once: its rows as a Parquet file that carries all else in its metadata.

    `made_of` makes the model of the parameters, where they are in the notebook.  An error comes back as text: a client
    cannot import all that a worker can.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = sources(notebook) | checkout.of_files(params)
        differing = [part for part in {**found, **wanted} if found.get(part) != wanted.get(part)]
        if differing:
            raise RuntimeError(f"this worker differs from the sweep in: {', '.join(differing)}")
        os.environ.pop(engine.SCHEDULER, None)  # points run side by side already
        model: type[Params] = cell.model(*made_of) if made_of else params_of(notebook)
        started = time.perf_counter()
        result = run_of(notebook)(model.make(overrides=params), seed)
        about = {
            "params": result.params.model_dump(mode="json"),
            "seed": result.seed,
            "values": result.values,
            "claims": [claim.as_dict() for claim in result.claims],
            "record": {"command": provenance.command(result), **record},
            "seconds": round(time.perf_counter() - started, 3),
        }
        table = pa.Table.from_pandas(result.table, preserve_index=False)
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(about).encode()}), sink)
        return Outcome(file=sink.getvalue().to_pybytes())
    except Exception:
        return Outcome(traceback=traceback.format_exc())


# The folder


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

    def check(self, manifest: dict[str, Any], own: Path) -> None:
        """Raise ParameterError unless the folder is free, or holds a part of `manifest`'s sweep: nothing may be lost."""
        check_writable(self.folder, sources=own)
        there = self.manifest
        if not there:
            entries = self.folder.iterdir() if self.folder.is_dir() else ()
            foreign = [path for path in entries if not path.name.startswith((WRITING, HELD))]
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

    def tabulate(self, keys: list[str], sweep: Sweep) -> None:
        """Write the tables of the points `keys`, in that order, and the summary."""
        import pandas as pd
        import pyarrow as pa
        import pyarrow.parquet as pq

        abouts = {key: json.loads(pq.read_schema(self.path(key)).metadata[ABOUT]) for key in keys}
        values = pd.DataFrame([_point(key, about) | about["values"] for key, about in abouts.items()])
        claims = [_point(key, about) | _bounds(claim) for key, about in abouts.items() for claim in about["claims"]]
        with replacing(self.folder / "values.parquet") as file:
            values.to_parquet(file, index=False)
        with replacing(self.folder / "claims.parquet") as file:
            pd.DataFrame(claims).astype({"bound": float, "low": float, "high": float}).to_parquet(file, index=False)
        timing = pd.DataFrame([{"point": key, "seconds": about["seconds"]} for key, about in abouts.items()])
        self.write("timing.csv", timing.to_csv(index=False, lineterminator="\n").encode())

        def widened(key: str) -> pa.Table:
            rows = pq.read_table(self.path(key)).replace_schema_metadata(None)
            for place, (name, value) in enumerate(_point(key, abouts[key]).items()):
                rows = rows.add_column(place, name, pa.array([value] * len(rows), pa.scalar(value).type))
            for name, value in abouts[key]["record"].items():
                rows = rows.append_column(name, pa.array([value] * len(rows), pa.string()))
            return rows

        schema = pa.unify_schemas([widened(key).schema for key in keys], promote_options="permissive")
        with replacing(self.folder / "sweep.parquet") as file, pq.ParquetWriter(file, schema) as writer:
            for key in keys:  # a point in memory at a time; a column that some points lack is null there
                rows = widened(key)
                for lacking in [each for each in schema if each.name not in rows.column_names]:
                    rows = rows.append_column(lacking, pa.nulls(len(rows), lacking.type))
                writer.write_table(rows.select(schema.names).cast(schema))
        frame = summary(sweep.grid, values, metric_of(sweep.notebook).name)
        self.write("summary.csv", frame.to_csv(index=False, lineterminator="\n").encode())
        self.write("summary.svg", figure(values, sweep.grid, metric_of(sweep.notebook)))


def _point(key: str, about: dict[str, Any]) -> dict[str, Any]:
    """The columns that say which point a row belongs to; a list is written as `run -p` takes it."""
    params = {f"param_{name}": provenance.typed(value) for name, value in about["params"].items()}
    return {"point": key, "seed": about["seed"], **params}


def _bounds(claim: dict[str, Any]) -> dict[str, Any]:
    low, high = claim["bound"] if isinstance(claim["bound"], list) else (None, None)
    return {**claim, "bound": None if isinstance(claim["bound"], list) else claim["bound"], "low": low, "high": high}


def record(notebook: str) -> dict[str, str]:
    """Provenance that all points of one go share."""
    packages = dict(sources(notebook))
    digests = {f"{part}_sha256": packages.pop(part) for part in ("library", "data")}
    python = packages.pop("python")
    told = ", ".join(f"{name} {installed}" for name, installed in packages.items())
    return {"commit": provenance.commit(), "version": version("evolvingdp"), **digests, "python": python, "packages": told}


def summary(grid: dict[str, list[Any]], values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A row per point of the grid: mean of the metric over its seeds, half the width of the 95% interval, sd, runs."""
    import numpy as np
    import pandas as pd
    from scipy import special

    grouped = values.groupby([f"param_{name}" for name in grid], sort=False)[metric]
    runs = grouped.count()
    half = special.stdtrit(np.maximum(runs - 1, 1), 0.975) * grouped.std() / np.sqrt(runs)  # nan for a single run
    frame = pd.DataFrame({"mean": grouped.mean(), "half": half, "sd": grouped.std(), "runs": runs}).reset_index()
    return frame.rename(columns=lambda name: str(name).removeprefix("param_"))


def figure(values: pd.DataFrame, grid: dict[str, list[Any]], metric: Any) -> bytes:
    """The metric over the grid as SVG: x the longest numeric axis, curves the next one, panels the others."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    from evolvingdp.book import bundle, style

    def text(value: Any) -> str:
        return f"{value:g}" if isinstance(value, float) else Label(str(value)).mathtext

    swept = values[[f"param_{name}" for name in grid]].set_axis([*grid], axis=1)
    x, *others = sorted(grid, key=lambda name: (not is_numeric_dtype(swept[name]), -len(grid[name])))
    numeric, shown = is_numeric_dtype(swept[x]), swept.map(text)
    rows = pd.DataFrame(
        {"x": swept[x] if numeric else shown[x], "y": values[metric.name], "panel": "", "curve": metric.name}
    )
    if others:
        rows["curve"] = f"{others[0]} = " + shown[others[0]]
        rows["panel"] = [
            ", ".join(f"{name} = {value}" for name, value in row.items()) for row in shown[others[1:]].to_dict("records")
        ]

    @style.house
    def draw() -> bytes:
        panels = list(rows.groupby("panel", sort=False))[:PANELS]
        canvas, axes = style.canvas(5.0, 0.6 + 2.8 * len(panels), rows=len(panels), squeeze=False)
        for ax, (title, panel) in zip(axes[:, 0], panels, strict=True):
            marks = zip(panel["curve"].unique(), style.PALETTE[:CURVES], style.MARKERS, strict=False)
            looks = {name: {"color": color, "marker": marker} for name, color, marker in marks}
            style.lines(panel, "x", "y", ax, looks=looks, by="curve", xlabel=x, ylabel=metric.unit or metric.name)
            ax.set_xscale("log" if numeric and 0 < panel.x.min() < panel.x.max() / 20 else "linear")
            ax.set_yscale("log" if 0 < panel.y.min() < panel.y.max() / 30 else "linear")
            ax.set_title(title)
            if others:
                ax.legend()
        return bundle.image(canvas, "svg")

    return draw()


# The workers


@contextmanager
def connected(scheduler: str | None, workers: int | None, notebook: str, wait: float = ANSWER) -> Iterator[Client]:
    """A client of the cluster at the address `scheduler`, or of `workers` processes (None: one per core) of this machine,
    which no other process can use: they know each other by certificates made for this once.

    Raises ParameterError where no scheduler answers, no worker comes within `wait` seconds, or one would not compute what
    this process would.
    """
    from distributed import LocalCluster
    from distributed.security import Security

    if scheduler is not None:
        with _existing(scheduler, notebook, wait) as client:
            yield client
        return
    with starting():
        local = LocalCluster(
            n_workers=workers or os.cpu_count() or 1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # no port that another sweep holds, and not for other machines
            host="127.0.0.1",
            memory_limit=None,  # Params check what a run needs against the machine's memory
            silence_logs=logging.CRITICAL,  # a worker that died is started again; points that fail are reported at the end
            env=ONE_CORE,
            security=Security.temporary(),
        )
    with local, local.get_client() as client:
        yield client


@contextmanager
def shared(scheduler: str | None, workers: int | None, notebook: str, wait: float = ANSWER) -> Iterator[None]:
    """While it is open, a notebook's repetitions are shared over the cluster (`book.engine`); neither given: one core."""
    check_one_engine(scheduler, workers)
    if scheduler is None and workers is None:
        yield
        return
    with connected(scheduler, workers, notebook, wait) as client:
        known = {"CA_FILE": "tls_ca_file", "CLIENT__KEY": "tls_client_key", "CLIENT__CERT": "tls_client_cert"}
        held = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": getattr(client.security, part) for name, part in known.items()}
        with environment({name: text for name, text in held.items() if text} | {engine.SCHEDULER: client.scheduler.address}):
            yield


def check_one_engine(scheduler: str | None, workers: int | None) -> None:
    if scheduler is not None and workers is not None:
        raise ParameterError(f"workers are those of the scheduler {scheduler}; leave --workers away")


@contextmanager
def _existing(scheduler: str, notebook: str, wait: float) -> Iterator[Client]:
    from distributed import Client

    for name in ("distributed", "distributed.client", "asyncio", "tornado", "tornado.application"):  # each has its level
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they would say of a lost scheduler, one line says
    client, reason = None, ""
    try:
        client = Client(address_of(scheduler), timeout=ANSWER)
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:  # TypeError: tls:// without certificates
        reason = str(error) or "no answer"
    if client is None:
        gc.collect()  # what is left of it closes now, and not with a traceback when the interpreter ends
        raise _no_scheduler(scheduler, reason)
    with client:
        try:
            client.wait_for_workers(1, timeout=wait)
            client.register_plugin(_sender(notebook))
            ours = sources(notebook)
            for worker, theirs in client.run(sources, notebook, on_error="return").items():
                _check(worker, theirs, ours)
        except TimeoutError:
            raise ParameterError(
                f"scheduler {scheduler} has no workers; start some: dask worker {scheduler}, or give a queue --wait SECONDS"
            ) from None
        except OSError as error:
            raise _no_scheduler(scheduler, f"it went away: {error}") from None
        yield client


def _check(worker: str, theirs: Any, ours: dict[str, str]) -> None:
    """Raise ParameterError unless a worker has the sources, data, versions that this process has."""
    if not isinstance(theirs, dict):
        raise ParameterError(f"worker {worker} cannot run this version of evolvingdp: {' '.join(str(theirs).split())}")
    differing = [f"{part} ({theirs.get(part)}, here {ours[part]})" for part in ours if theirs.get(part) != ours[part]]
    if differing:
        raise ParameterError(f"worker {worker} would compute something else, it differs in {'; '.join(differing)}")


def _sender(notebook: str) -> Any:
    """What gives the modules beside `notebook` to each worker there is and that comes later."""
    from distributed import WorkerPlugin

    modules = cell.beside(notebook)

    class Sender(WorkerPlugin):  # type: ignore[misc]
        name = "evolvingdp"

        def setup(self, worker: Any) -> None:
            from evolvingdp.book import cell, sweeping

            cell.install(modules)
            sweeping.sources.cache_clear()

    return Sender()


def address_of(scheduler: str) -> str:
    """`scheduler`, or the address that stands in it where it is a file that `dask scheduler --scheduler-file` writes.

    Waits for the file, as both may have been started by one script.  Raises ParameterError for what is no address or file.
    """
    if not scheduler.endswith(".json"):
        if not _ADDRESS.fullmatch(scheduler):
            raise _no_scheduler(scheduler, "no address")
        return scheduler
    end = time.monotonic() + ANSWER
    while not Path(scheduler).is_file() and Path(scheduler).parent.is_dir() and time.monotonic() < end:
        time.sleep(0.1)
    try:
        return str(json.loads(Path(scheduler).read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _no_scheduler(scheduler, str(error)) from None


def _no_scheduler(scheduler: str, why: str) -> ParameterError:
    return ParameterError(
        "scheduler must be the address or the scheduler file of a running dask scheduler, such as tcp://127.0.0.1:8786, "
        f"got {scheduler!r} ({' '.join(why.split())})"
    )


# Dealing


def compute(
    sweep: Sweep, store: Store, client: Client, left: list[Point], done: Iterator[None], patience: float = ANSWER
) -> dict[str, str]:
    """Run the points `left` on the workers of `client`; each is kept here as it arrives, since workers may share no disk.

    A point whose worker dies is given to another one, a few times (dask's allowed-failures).  Steps `done` after each point.
    Returns, by the key of each point that failed, its command and why.  Raises SweepError where the scheduler or all workers
    are gone.
    """
    made_of, told = sources(sweep.notebook), record(sweep.notebook)

    def submit(each: Point) -> Any:
        values, model = each.params.model_dump(mode="json"), getattr(each.params, "made_of", None)
        wanted = made_of | checkout.of_files(values)
        return client.submit(one, sweep.notebook, model, values, each.seed, told, wanted, pure=False)

    failures = {}
    for each, outcome in _dealt(client, submit, left, patience):
        if outcome.file:
            store.write(f"points/{each.key}.parquet", outcome.file)
        else:
            command = provenance.command_of(sweep.notebook, each.params, each.seed)
            failures[each.key] = f"{command}\n{outcome.traceback}"
        next(done, None)
    return failures


def _dealt(
    client: Client, submit: Callable[[Point], Any], points: Iterable[Point], patience: float
) -> Iterator[tuple[Point, Outcome]]:
    """Each of `points` with its outcome, `AHEAD` under way for each core; gives up after `patience` seconds without one."""
    from distributed import wait

    waiting, running, seen = deque(points), dict[Any, Point](), time.monotonic()
    try:
        while waiting or running:
            cores = sum(client.nthreads().values())
            seen = time.monotonic() if cores else seen
            if time.monotonic() - seen > patience:
                raise SweepError(
                    f"the cluster has had no worker for {patience:.0f} s (--wait); {_KEPT}: start workers, then {_AGAIN}"
                )
            while waiting and len(running) < max(AHEAD * cores, 1):
                each = waiting.popleft()
                running[submit(each)] = each
            try:
                ended = wait(list(running), timeout=LOOK, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                ended = set()
            for future in ended:
                each = running.pop(future)
                yield each, _outcome(future)
                future.release()
    except (Cancelled, CancelledError, OSError) as error:
        if isinstance(error, OSError) and client.status == "running":
            raise  # it is ours: a full disk
        raise SweepError(f"the scheduler went away; {_KEPT}, {_AGAIN}") from None


_KEPT, _AGAIN = "all finished points are kept", "the same command continues"


def _outcome(future: Any) -> Outcome:
    from distributed import KilledWorker

    try:
        outcome: Outcome = future.result()
    except KilledWorker:
        return Outcome(traceback="each worker that ran it died, perhaps for want of memory\n")
    except OSError:
        raise
    except Exception as error:
        return Outcome(traceback=f"{type(error).__name__}: {error}\n")
    return outcome
