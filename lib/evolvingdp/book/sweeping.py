"""Sweeps: a notebook's experiment over a grid of parameters and seeds, validated first, resumable, dealt out by dask.

The points of a grid share their seeds, so they are compared on the same noise, and each is what
`evolvingdp run NOTEBOOK -p ... --seed S` computes: all randomness comes from named streams, and nothing depends on where or
in which order points run.  Workers need the library and no notebooks: the client sends the modules.  The folder:

points/KEY.parquet  a finished point's rows of sweep.parquet, written whole or not at all; KEY is what decides it
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
import queue
import re
import sys
import tempfile
import time
import traceback
import warnings
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError as Cancelled
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evolvingdp.book import cell, checkout, provenance
from evolvingdp.book.checkout import Project, params_of, run_of
from evolvingdp.book.files import HELD, WRITING, PublishError, clear, held, replacing, starting
from evolvingdp.book.labels import Label
from evolvingdp.book.params import Metric, Params
from evolvingdp.book.running import ONE_CORE, Say, check_writable, seed_of
from evolvingdp.core.checks import ParameterError

if TYPE_CHECKING:  # a refused parameter need not wait for them
    import pandas as pd
    from distributed import Client
    from tqdm import tqdm

MOST_POINTS = 10_000
ABOUT = b"evolvingdp"  # the metadata of a point's file: which point, values, claims, seconds
ANSWER = 30  # seconds that a scheduler and its first worker may take to answer
LOOK = 2.0  # seconds between two looks at the workers
EVERY = 5.0  # seconds between two lines of progress
DEALT = 500  # points that the scheduler has at a time: a busy machine loses its connection where it gets thousands at once
_ADDRESS = re.compile(r"([a-z]+://)?[\w.\-\[\]:]+")


def run(
    project: Project,
    out: Path,
    *,
    say: Say,
    scheduler: str | None = None,
    workers: int | None = None,
    wait: float | None = None,
    **what: Any,
) -> None:
    """Compute the points that `out` lacks and write its tables; `what` goes to `make`, `wait` is for workers.

    Raises ParameterError before anything runs, PublishError at the end where points failed.
    """
    if wait is not None and scheduler is None:
        raise ParameterError(f"wait is for the workers of a --scheduler, of which there is none; leave --wait {wait:g} away")
    wait = ANSWER if wait is None else wait
    if not wait < math.inf:
        raise ParameterError(f"wait must be a number of seconds, such as 3600, got {wait}")
    if scheduler is not None and workers is not None:
        raise ParameterError(f"workers are those of the scheduler {scheduler}; leave --workers away")
    sweep = make(project, **what)
    check_folder(out, sweep, project.root)
    left = [point for point in sweep.points if not finished(out, point.key)]
    before, failures = len(sweep.points) - len(left), dict[str, str]()
    with ExitStack() as opened:
        if left:
            if scheduler is not None:
                scheduler = address_of(scheduler, min(wait, ANSWER))
            count = None if scheduler is not None else min(workers or os.cpu_count() or 1, len(left))
            client = opened.enter_context(connected(scheduler, count, sweep.notebook, wait, say))
            where = scheduler if count is None else f"{count} worker{'s' if count != 1 else ''}"
            say(f"{sweep.notebook}: {len(sweep.points)} points, {before} finished before; running on {where}")
        else:
            say(f"{sweep.notebook}: {len(sweep.points)} points, all finished before")
        age = opened.enter_context(held(out))
        for folder in (out, _points(out)):
            clear(folder, age=age)
        if left:
            done = opened.enter_context(progress(len(sweep.points), before))
            failures = compute(sweep.notebook, out, client, left, done.update, wait)
        keys = [point.key for point in sweep.points if point.key not in failures]
        if keys:
            tabulate(out, keys, sweep)
    if failures:
        told = "\n".join(failures.values())
        raise PublishError(
            f"{len(failures)} of {len(sweep.points)} points failed, the others are in {out}; the same command tries again\n"
            f"{told}"
        )


def progress(total: int, before: int) -> tqdm[NoReturn]:
    """Says on stderr, at most every `EVERY` seconds, how many points are done, what one costs and what is left: at first too
    much, as workers start and import."""
    from tqdm import tqdm

    told = "{n} of {total} points in {elapsed}, {rate_inv_fmt}, about {remaining} left"
    return tqdm(total=total, initial=before, bar_format=told, unit="point", mininterval=EVERY, smoothing=0, file=sys.stderr)


# The grid


@dataclass(frozen=True)
class Point:
    """One run: `key` is a digest of all that decides it."""

    params: Params
    seed: int
    key: str


@dataclass(frozen=True)
class Sweep:
    """Every point of `grid` with every seed, seed after seed: the first seed already covers the grid."""

    notebook: str
    grid: list[str]  # the swept parameters
    points: list[Point]


def _key(notebook: str, params: Params, seed: int, made_of: dict[str, str]) -> str:
    values = params.as_json()
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
    made_of, seeds = sources(notebook), range(first, first + repeat)
    points = [Point(params, seed, _key(notebook, params, seed, made_of)) for seed in seeds for params in settings]
    return Sweep(notebook, list(axes), points)


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
        if name not in model.lines:
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
    return ";" if model.lines[name].listed else ","


def _validated(model: type[Params], preset: str, fixed: dict[str, str], axes: dict[str, list[str]]) -> list[Params]:
    """The parameters of every combination; a rule may concern several parameters, so each is checked as a whole."""
    model.check_preset(preset)
    made, refused = dict[Params, str](), []
    for values in itertools.product(*axes.values()):
        point = dict(zip(axes, values, strict=True))
        name = ", ".join(f"{key}={value}" for key, value in point.items())
        try:
            params = model.make(preset, fixed | point)
        except ParameterError as error:
            refused.append(f"point {name}: {error}")
            continue
        if (twin := made.setdefault(params, name)) is not name:
            raise ParameterError(f"the points {twin} and {name} are the same; give each value once")
    if refused:
        raise ParameterError(refused[0] + (f" (and {len(refused) - 1} other points)" if len(refused) > 1 else ""))
    return list(made)


# One point, where it is computed


@cache
def sources(notebook: str) -> dict[str, str]:
    """What decides the numbers of `notebook` in this process besides parameters and seed: digests and versions."""
    made_of = checkout.made_of(notebook)  # once: what this process imports decides, not what stands on the disk later
    packages: dict[str, str] = made_of.pop("packages")
    return made_of | {"python": platform.python_version()} | packages | {"pyarrow": version("pyarrow")}


def one(notebook: str, params: dict[str, Any], seed: int, key: str, record: dict[str, str], wanted: Any) -> bytes | str:
    """Run the experiment of `notebook` once: its rows, and which point they are of, as a Parquet file that carries all else
    in its metadata.  A list is written as `run -p` takes it.

    An error comes back as its traceback: a client cannot import all that a worker can.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = sources(notebook) | checkout.of_files(params)
        differing = [part for part in {**found, **wanted} if found.get(part) != wanted.get(part)]
        if differing:
            raise RuntimeError(f"this worker differs from the sweep in: {', '.join(differing)}")
        started = time.perf_counter()
        result = run_of(notebook)(params_of(notebook).make(overrides=params), seed)
        typed = {f"param_{name}": provenance.typed(value) for name, value in result.params.as_json().items()}
        about: dict[str, Any] = {
            "point": {"point": key, "seed": seed, **typed},
            "values": result.values,
            "claims": [claim.as_dict() for claim in result.claims],
            "seconds": round(time.perf_counter() - started, 3),
        }
        record = {"command": provenance.command(notebook, result.params, seed), **record}
        before, after = (pd.DataFrame(told, index=result.table.index) for told in (about["point"], record))
        table = pa.Table.from_pandas(pd.concat([before, result.table, after], axis=1), preserve_index=False)
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(about).encode()}), sink)
        return bytes(sink.getvalue())
    except Exception:
        return traceback.format_exc()


# The folder


def _points(folder: Path) -> Path:
    return folder / "points"


def check_folder(folder: Path, sweep: Sweep, own: Path) -> None:
    """Raise ParameterError unless the folder is free, or holds points of this sweep alone: nothing may be lost."""
    check_writable(folder, sources=own)
    keys = {point.key for point in sweep.points}
    others = [path for path in _points(folder).glob("*.parquet") if path.stem not in keys and not path.name.startswith(".")]
    if others:
        raise ParameterError(
            f"out {str(folder)!r} holds {len(others)} points that this sweep does not have, of another grid, notebook or "
            "version; choose another folder, or a grid that holds all of them"
        )
    if not any(_points(folder).glob("*.parquet")):  # no point is finished: what else is there is not a sweep's
        found = [path for part in (folder, _points(folder)) if part.is_dir() for path in sorted(part.iterdir())]
        foreign = [path for path in found if not path.name.startswith((WRITING, HELD)) and path != _points(folder)]
        if foreign:
            raise ParameterError(f"out holds {str(foreign[0])!r}, which no sweep wrote; choose another folder")


def finished(folder: Path, key: str) -> bool:
    """Whether the point `key` is there and can be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return ABOUT in (pq.read_table(_points(folder) / f"{key}.parquet").schema.metadata or {})
    except (OSError, pa.ArrowInvalid):
        return False


def tabulate(folder: Path, keys: list[str], sweep: Sweep) -> None:
    """Write the tables of the points `keys`, in that order, and the summary."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [_points(folder) / f"{key}.parquet" for key in keys]
    schemas = [pq.read_schema(path) for path in paths]
    abouts = [json.loads(schema.metadata[ABOUT]) for schema in schemas]
    schema = pa.unify_schemas([each.remove_metadata() for each in schemas], promote_options="permissive")
    with replacing(folder / "sweep.parquet") as file, pq.ParquetWriter(file, schema) as writer:
        for path in paths:  # a point in memory at a time; what some points lack is null there
            writer.write_table(pq.read_table(path, schema=schema))
    values = pd.DataFrame([about["point"] | about["values"] for about in abouts])
    claims = pd.DataFrame([about["point"] | _bounds(claim) for about in abouts for claim in about["claims"]])
    for name, table in {"values": values, "claims": claims.astype({"bound": float, "low": float, "high": float})}.items():
        with replacing(folder / f"{name}.parquet") as file:
            table.to_parquet(file, index=False)
    timing = pd.DataFrame([{"point": about["point"]["point"], "seconds": about["seconds"]} for about in abouts])
    metric: Metric = cell.module_of(sweep.notebook).METRIC
    for name, frame in {"timing": timing, "summary": summary(sweep.grid, values, metric.name)}.items():
        with replacing(folder / f"{name}.csv") as file:
            frame.to_csv(file, index=False, lineterminator="\n")
    with replacing(folder / "summary.svg") as file:
        file.write_bytes(figure(values, sweep.grid, metric))


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


def summary(grid: list[str], values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A row per point of the grid: mean of the metric over its seeds, half the width of the 95% interval, sd, runs."""
    import numpy as np
    import pandas as pd
    from scipy import special

    grouped = values.groupby([f"param_{name}" for name in grid], sort=False)[metric]
    runs = grouped.count()
    half = special.stdtrit(np.maximum(runs - 1, 1), 0.975) * grouped.std() / np.sqrt(runs)  # nan for a single run
    frame = pd.DataFrame({"mean": grouped.mean(), "half": half, "sd": grouped.std(), "runs": runs}).reset_index()
    return frame.rename(columns=lambda name: str(name).removeprefix("param_"))


def figure(values: pd.DataFrame, grid: list[str], metric: Any) -> bytes:
    """The metric over the grid as SVG: x the longest numeric axis, a curve for each combination of the others."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    from evolvingdp.book import bundle, style

    def text(value: Any) -> str:
        return f"{value:g}" if isinstance(value, float) else Label(str(value)).mathtext

    swept = values[[f"param_{name}" for name in grid]].set_axis([*grid], axis=1)
    x, *others = sorted(grid, key=lambda name: (not is_numeric_dtype(swept[name]), -swept[name].nunique()))
    numeric, shown = is_numeric_dtype(swept[x]), swept.map(text)
    curves = [", ".join(f"{name} = {value}" for name, value in row.items()) for row in shown[others].to_dict("records")]
    rows = pd.DataFrame({"x": swept[x] if numeric else shown[x], "y": values[metric.name], "curve": curves})

    @style.house
    def draw() -> bytes:
        canvas, ax = style.canvas(6.0, 4.0)
        named = rows["curve"].unique()
        marks = zip(named, style.PALETTE, style.MARKERS, strict=False)  # as many as one can tell apart
        looks = {name: {"color": color, "marker": marker} for name, color, marker in marks}
        if len(looks) < len(named):
            ax.set_title(f"{len(looks)} of {len(named)} curves; summary.csv has all")
        style.lines(rows, "x", "y", ax, looks=looks, by="curve", xlabel=x, ylabel=metric.unit or metric.name)
        ax.set_xscale("log" if numeric and 0 < rows.x.min() < rows.x.max() / 20 else "linear")
        ax.set_yscale("log" if 0 < rows.y.min() < rows.y.max() / 30 else "linear")
        if others:
            ax.legend()
        return bundle.image(canvas, "svg")

    return draw()


# The workers


@contextmanager
def connected(
    scheduler: str | None, workers: int | None, notebook: str, wait: float = ANSWER, say: Say = print
) -> Iterator[Client]:
    """A client of the cluster at the address `scheduler`, or of `workers` processes (None: one per core) of this machine,
    which no other process can use: they know each other by certificates made for this once.

    Raises ParameterError where no scheduler answers, no worker comes within `wait` seconds, or one would not compute what
    this process would.
    """
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)  # dask's own, where one is stopped
    if scheduler is None:
        dask.config.set({f"distributed.comm.timeouts.{each}": "1h" for each in ("connect", "tcp")})  # nothing is lost here
        try:
            with starting():
                local = LocalCluster(
                    n_workers=workers or os.cpu_count() or 1,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",  # no port that another sweep holds, and not for other machines
                    host="127.0.0.1",
                    memory_limit=None,  # Params check what a run needs against the machine's memory
                    silence_logs=logging.CRITICAL,  # a worker that died is started again; failures are told at the end
                    env=ONE_CORE | {f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{each}": "1h" for each in ("CONNECT", "TCP")},
                    security=Security.temporary(),
                )
        except RuntimeError as error:  # one of them was killed before it could compute
            raise PublishError(f"no worker starts ({error}); all finished points are kept, try again") from None
        with local, local.get_client() as client:
            yield client
        return
    for name in ("distributed", "distributed.client", "asyncio", "tornado", "tornado.application"):  # each has its level
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they would say of a lost scheduler, one line says
    client, reason = None, ""
    try:
        client = Client(scheduler, timeout=max(2, min(wait, ANSWER)))
    except (OSError, ValueError, TypeError, RuntimeError, ImportError, MemoryError) as error:
        # TypeError: tls:// without certificates; MemoryError: something else answers, whose words are read as lengths
        reason = str(error) or "no answer"
    if client is None:
        gc.collect()  # what is left of it closes now, and not with a traceback when the interpreter ends
        raise _no_scheduler(scheduler, reason)
    with client:
        try:
            if wait > ANSWER and not client.nthreads():  # a queue, that may need hours
                say(f"waiting {wait:g} s for a worker of {scheduler}")
            client.wait_for_workers(1, timeout=wait)
            client.register_plugin(_sender(notebook))
            found, ours = client.run(sources, notebook, on_error="return"), sources(notebook)
        except TimeoutError:
            raise ParameterError(
                f"scheduler {scheduler} has no workers; start some: dask worker {scheduler}, or give a queue --wait SECONDS"
            ) from None
        except OSError as error:
            raise _no_scheduler(scheduler, f"it went away: {error}") from None
        for worker, theirs in found.items():
            if not isinstance(theirs, dict):
                raise ParameterError(f"worker {worker} cannot run this evolvingdp: {' '.join(str(theirs).split())}")
            differing = [
                f"{part} ({theirs.get(part)}, here {ours[part]})" for part in ours if theirs.get(part) != ours[part]
            ]
            if differing:
                raise ParameterError(f"worker {worker} would compute something else, it differs in {'; '.join(differing)}")
        yield client


def _sender(notebook: str) -> Any:
    """What gives the files of `notebook` to each worker there is and that comes later."""
    from distributed import WorkerPlugin

    files = cell.beside(notebook)

    class Sender(WorkerPlugin):  # type: ignore[misc]
        name = "evolvingdp"

        def setup(self, worker: Any) -> None:
            from evolvingdp.book import cell, sweeping

            cell.install(files, Path(tempfile.mkdtemp(dir=worker.local_directory)) / "notebooks")
            sweeping.sources.cache_clear()

    return Sender()


def address_of(scheduler: str, wait: float = ANSWER) -> str:
    """`scheduler`, or the address that stands in it where it is a file that `dask scheduler --scheduler-file` writes.

    Waits so many seconds for the file, as both may have been started by one script.  Raises ParameterError for what is no
    address or file.
    """
    if not scheduler.endswith(".json"):
        if not _ADDRESS.fullmatch(scheduler):
            raise _no_scheduler(scheduler, "no address")
        return scheduler
    end = time.monotonic() + wait
    while not Path(scheduler).is_file() and Path(scheduler).parent.is_dir() and time.monotonic() < end:
        time.sleep(0.1)
    if Path(scheduler).exists() and not Path(scheduler).is_file():  # a pipe would be waited for
        raise _no_scheduler(scheduler, "no file")
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
    notebook: str, folder: Path, client: Client, left: list[Point], done: Callable[[], Any], patience: float = ANSWER
) -> dict[str, str]:
    """Run the points `left` on the workers of `client`; each is kept here as it arrives, since workers may share no disk.

    A point whose worker dies is given to another one, a few times (dask's allowed-failures).  Calls `done` after each point.
    Returns, by the key of each point that failed, its command and why.  Raises PublishError where the scheduler is gone, or
    all workers for `patience` seconds.
    """
    made_of, told = sources(notebook), record(notebook)
    waiting, running, ended = deque(left), dict[Any, Point](), queue.SimpleQueue[Any]()
    failures, seen = dict[str, str](), time.monotonic()
    _points(folder).mkdir(exist_ok=True)
    try:
        while waiting or running:
            while waiting and len(running) < DEALT:
                each = waiting.popleft()
                values = each.params.as_json()
                wanted = made_of | checkout.of_files(values)
                future = client.submit(one, notebook, values, each.seed, each.key, told, wanted, pure=False)
                running[future] = each
                future.add_done_callback(ended.put)
            future = outcome = None
            with suppress(queue.Empty, TimeoutError):
                future = ended.get(timeout=LOOK)
                outcome = None if future.status in ("lost", "pending") else _outcome(future)
            if outcome is None:
                if future is not None:  # its worker died before it was fetched: another one computes it again
                    ended.put(future)
                    time.sleep(0.05)
                seen = time.monotonic() if client.nthreads() else seen
                if time.monotonic() - seen > patience:
                    raise PublishError(
                        f"the cluster has had no worker for {patience:.0f} s (--wait); all finished points are kept: start "
                        "workers, then the same command continues"
                    )
                continue
            each, seen = running.pop(future), time.monotonic()
            if isinstance(outcome, bytes):
                with replacing(_points(folder) / f"{each.key}.parquet") as file:
                    file.write_bytes(outcome)
            else:
                command = provenance.command(notebook, each.params, each.seed)
                failures[each.key] = f"{command}\n{outcome}"
            future.release()
            done()
    except (Cancelled, CancelledError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
            raise  # it is ours: a full disk; dask's own have no number
        raise PublishError("the scheduler went away; all finished points are kept, the same command continues") from None
    return failures


def _outcome(future: Any) -> bytes | str:
    from distributed import KilledWorker

    try:
        outcome: bytes | str = future.result(timeout=LOOK)
    except KilledWorker:
        return "each worker that ran it died, perhaps for want of memory\n"
    except (OSError, Cancelled, CancelledError):
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}\n"
    return outcome
