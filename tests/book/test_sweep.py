"""Sweeps: every point checked before the first runs; killed, continued, grown, on one worker or several, the same table."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import distributed
import pandas as pd
import pytest
import toy
from serial import TABLES, Serial, alone
from serial import sweep as serial_sweep

from evolvingdp.book import sweeping
from evolvingdp.book.params import Metric
from evolvingdp.core.checks import ParameterError
from support import REPOSITORY
from support import TOY as NOTEBOOK

TINY = ["-p", "n_users", "2e3", "-p", "widths", "2,3"]
SMALL = ["--grid", "epsilon=1,2", "--grid", "rows=4,8", "--repeat", "2", *TINY]
EVOLVINGDP = (sys.executable, "-m", "evolvingdp")


@pytest.fixture(scope="module", autouse=True)
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout with the toy."""
    made = toy.write(tmp_path_factory.mktemp("checkout"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        toy.enter(made, monkeypatch)
        yield made


def sweep(*arguments: str | Path, notebook: str = NOTEBOOK):
    return serial_sweep(notebook, *arguments)


@pytest.fixture
def serial(monkeypatch: pytest.MonkeyPatch) -> Serial:
    return alone(monkeypatch)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("once") / "out"
    with pytest.MonkeyPatch.context() as monkeypatch:
        alone(monkeypatch)
        assert sweep(*SMALL, "--out", out).exit_code == 0
    return out


@pytest.fixture
def finished(once: Path, tmp_path: Path) -> Path:
    """A folder that holds the sweep `SMALL`."""
    shutil.copytree(once, tmp_path / "finished")
    return tmp_path / "finished"


BAD = {
    "unknown name": (["--grid", "epsilom=1,2"], "unknown parameter 'epsilom'; did you mean 'epsilon'?"),
    "unknown -p": (["--grid", "epsilon=1", "-p", "row", "3"], "unknown parameter 'row'"),
    "no values": (["--grid", "epsilon"], "grid must be NAME=VALUE,VALUE,..., got 'epsilon'"),
    "empty value": (["--grid", "epsilon=1,,2"], "grid has an empty value for epsilon, got 'epsilon=1,,2'"),
    "nothing": (["--grid", "epsilon="], "grid has an empty value for epsilon, got 'epsilon='"),
    "twice": (["--grid", "epsilon=1", "--grid", "epsilon=2"], "grid names epsilon twice"),
    "same value": (["--grid", "epsilon=1,1.0"], "the points epsilon=1 and epsilon=1.0 are the same"),
    "same text": (["--grid", "epsilon=1,1"], "the points epsilon=1 and epsilon=1 are the same"),
    "both": (["--grid", "epsilon=1", "-p", "epsilon", "2"], "epsilon is set by -p and swept by --grid"),
    "-p twice": (["--grid", "epsilon=1", "-p", "width", "1", "-p", "width", "2"], "width is set twice"),
    "seed": (["--grid", "seed=1,2"], "seed cannot be in the grid; --seed sets the first seed"),
    "-p seed": (["--grid", "epsilon=1", "-p", "seed", "2"], "seed is set by --seed"),
    "range": (
        ["--grid", "epsilon=1,-1", "--grid", "rows=64"],
        "point epsilon=-1, rows=64: epsilon must be >= 1e-06, got '-1'",
    ),
    "many bad": (["--grid", "epsilon=1,-1,-2"], "epsilon must be >= 1e-06, got '-1' (and 1 other points)"),
    "word": (["--grid", "rows=64,many"], "point rows=many: rows must be an integer, got 'many'"),
    "one list": (["--grid", "widths=2,3"], "widths needs lists separated by ';'"),
    "too many": (["--grid", "epsilon=1,2", "--repeat", "5001"], "the sweep has 10002 points, at most 10000 may be"),
    "bad seed": (["--grid", "epsilon=1", "--seed", "-1"], "seed must be an integer >= 0, got -1"),
    "preset": (["--grid", "epsilon=1", "--preset", "huge"], "preset must be one of quick, paper, got 'huge'"),
    "both engines": (["--grid", "epsilon=1", "--scheduler", "tcp://h:1", "--workers", "2"], "leave --workers away"),
    "no address": (["--grid", "epsilon=1", "--scheduler", ""], "such as tcp://127.0.0.1:8786, got '' (no address)"),
    "half an address": (["--grid", "epsilon=1", "--scheduler", "tcp://"], "got 'tcp://' (no address)"),
    "a long name": (["--grid", "epsilon=1", "--out", "a" * 300], "File name too long: "),
    "no file": (["--grid", "epsilon=1", "--scheduler", "no_file.json"], "got 'no_file.json' ([Errno 2] No such file"),
    "no folder": (["--grid", "epsilon=1", "--scheduler", "nowhere/x.json"], "got 'nowhere/x.json' ([Errno 2] No such file"),
    "sources": (["--grid", "epsilon=1", "--out", "notebooks/mine"], "out must lie outside the book's own sources"),
    "file": (["--grid", "epsilon=1", "--out", "file/inside"], "out must be a folder that can be written"),
    "foreign": (["--grid", "epsilon=1", "--out", "runs"], "which no sweep wrote; choose another folder"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_sweep_refuses_bad_input_with_one_line_before_anything_runs(kind, root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    (root / "runs").mkdir(exist_ok=True)
    (root / "runs" / "mine.txt").touch()
    (root / "file").touch()
    monkeypatch.setattr(sweeping, "connected", lambda *_: pytest.fail("it ran"))
    monkeypatch.setattr(sweeping, "ANSWER", 0.2)  # seconds to wait for a scheduler's file
    arguments, message = BAD[kind]
    done = sweep("--out", tmp_path / "out", *arguments)
    assert done.exit_code == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_rule_about_several_parameters_names_the_point_that_breaks_it(tmp_path, serial):
    grid = ["--grid", "rows=3,1e2", "--grid", "width=16,16384"]
    done = sweep(*grid, "--out", tmp_path / "out")
    assert done.stderr.startswith("Error: point rows=1e2, width=16384: ")
    assert "fit here: lower rows or width" in done.stderr
    assert serial.ran == []


def test_a_table_has_each_point_s_rows_parameters_seed_and_provenance(tmp_path, serial):
    out = tmp_path / "out"
    done = sweep(*SMALL, "--seed", "5", "--out", out)
    assert done.exit_code == 0, done.output
    table, values, claims = (pd.read_parquet(out / name) for name in TABLES)
    points = table.drop_duplicates("point")
    assert sorted(zip(points.param_epsilon, points.param_rows, points.seed, strict=True)) == [
        (epsilon, rows, seed) for epsilon in (1.0, 2.0) for rows in (4, 8) for seed in (5, 6)
    ]
    assert set(table.param_widths) == {"2,3"}
    assert (
        not table[["commit", "version", "library_sha256", "data_sha256", "sweep_sha256", "python", "packages"]]
        .isna()
        .any(axis=None)
    )
    assert list(values.point) == list(points.point) == list(claims.point.unique())
    assert len(pd.read_csv(out / "timing.csv")) == 8
    assert not [name for name in table if "second" in name], "seconds differ between two runs of the same"


def test_finished_points_are_never_run_again_and_a_larger_grid_keeps_them(tmp_path, serial, finished):
    out = finished
    before = {name: (out / name).read_bytes() for name in (*TABLES, "summary.csv", "summary.svg")}
    assert "8 points, all finished before" in sweep(*SMALL, "--out", out).stderr
    assert len(serial.ran) == 0
    assert {name: (out / name).read_bytes() for name in before} == before
    larger = ["--grid", "epsilon=1,2,4", "--grid", "rows=4,8", "--repeat", "3", *TINY, "--out", out]
    assert "18 points, 8 finished before" in sweep(*larger).stderr
    assert len(set(serial.ran)) == len(serial.ran) == 10
    assert pd.read_parquet(out / "sweep.parquet").point.nunique() == 18
    whole = tmp_path / "whole"
    sweep(*larger[:-1], whole)
    assert same(out, whole)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"notebook": 1, "command": "", "settings": [], "seeds": []}', '{"seeds": ["a"]}']
)
def test_a_damaged_manifest_is_one_line_and_nothing_is_lost(finished, serial, text):
    (finished / "sweep.json").write_text(text)
    done = sweep(*SMALL, "--out", finished)
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert "which no sweep wrote; choose another folder" in done.stderr
    assert len(list((finished / "points").iterdir())) == 8


class Dying(Serial):
    """Workers die of seed 1; or they are gone, or the scheduler is, from the fourth point on."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def submit(self, function, notebook, model, params, seed, *rest, pure):
        done = super().submit(function, notebook, model, params, seed, *rest, pure=pure)
        if self.what == "point" and seed == 1:
            done.result = self._killed
        return done

    def _killed(self):
        raise distributed.KilledWorker("point", None, 3)

    def nthreads(self) -> dict[str, int]:
        return {} if self.what == "workers" and len(self.ran) >= 4 else {"here": 1}


@pytest.fixture
def dying(serial, monkeypatch):
    def make(what: str) -> Dying:
        client = Dying(what)
        monkeypatch.setattr(sweeping, "connected", lambda *_: nullcontext(client))

        def wait(futures, **_):
            if what == "scheduler" and len(client.ran) >= 4:
                raise CancelledError
            if what == "workers" and len(client.ran) >= 4:
                raise TimeoutError
            return SimpleNamespace(done=futures[:1])

        monkeypatch.setattr(distributed, "wait", wait)
        monkeypatch.setattr(sweeping, "PATIENCE", 0.0)
        monkeypatch.setattr(sweeping, "LOOK", 0.0)
        return client

    return make


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("scheduler", "the scheduler went away; all finished points are kept"),
        ("workers", "the cluster has had no worker for"),
    ],
)
def test_a_sweep_that_nobody_runs_any_more_says_so_in_one_line_and_goes_on_later(tmp_path, dying, what, said, serial):
    dying(what)
    done = sweep(*SMALL, "--out", tmp_path)
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].startswith(f"Error: {said}")
    assert done.stderr.count("\n") <= 3
    kept = len(list((tmp_path / "points").iterdir()))
    again = dying("nothing")
    assert f"{kept} finished before" in sweep(*SMALL, "--out", tmp_path).stderr
    assert len(again.ran) == 8 - kept


def test_a_point_that_kills_its_workers_is_tried_once_more_alone_and_reported(tmp_path, dying):
    client = dying("point")
    done = sweep(*SMALL, "--out", tmp_path)
    assert "4 of 8 points failed" in done.stderr
    assert done.stderr.count("each worker that ran it died") == 4
    assert [seed for _, seed in client.ran[-4:]] == [1] * 4
    assert len(client.ran) == 12


def test_only_a_few_points_a_core_are_under_way(tmp_path, serial, monkeypatch):
    under_way = []
    monkeypatch.setattr(
        distributed, "wait", lambda futures, **_: under_way.append(len(futures)) or SimpleNamespace(done=futures[:1])
    )
    sweep(*SMALL, "--out", tmp_path)
    assert max(under_way) == sweeping.AHEAD


@pytest.mark.parametrize("step", [0, 1, 2, 4, 8])
def test_whatever_write_finds_the_disk_full_nothing_is_half_and_the_end_is_the_same(step, tmp_path, serial, monkeypatch):
    """sweep.json, two points, tables and the summary, one of which cannot be put in its place."""
    grid = ["--grid", "epsilon=1,2", "-p", "rows", "64", *TINY]
    real, left = os.replace, step

    def full(source, target, **options):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        real(source, target, **options)

    with monkeypatch.context() as disk:
        disk.setattr(os, "replace", full)
        done = sweep(*grid, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].startswith("Error: No space left on device: ")
    points = list((tmp_path / "out" / "points").glob("*"))
    assert len(points) == min(max(step - 1, 0), 2)
    assert not list((tmp_path / "out").rglob(".writing-*"))
    done = sweep(*grid, "--out", tmp_path / "out")
    assert f"{len(points)} finished before" in done.stderr or "all finished before" in done.stderr
    assert sweep(*grid, "--out", tmp_path / "whole").exit_code == 0
    for name in (*TABLES, "summary.csv", "ro-crate-metadata.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.parametrize("damage", ["cut", "gone", "empty"])
def test_a_damaged_point_is_run_again(finished, serial, damage):
    path = sorted((finished / "points").iterdir())[0]
    before = pd.read_parquet(path)
    {"cut": lambda: path.write_bytes(path.read_bytes()[:-50]), "gone": path.unlink, "empty": lambda: path.write_bytes(b"")}[
        damage
    ]()
    sweep(*SMALL, "--out", finished)
    assert len(serial.ran) == 1
    assert pd.read_parquet(path).equals(before)


def test_points_of_other_sources_are_not_mixed_in(finished, serial, monkeypatch):
    others = sweeping.sources(NOTEBOOK) | {"library": "other"}
    monkeypatch.setattr(sweeping, "sources", lambda notebook: others)
    sweep(*SMALL, "--out", finished)
    assert len(serial.ran) == 8
    assert set(pd.read_parquet(finished / "sweep.parquet").library_sha256) == {"other"}
    assert len(list((finished / "points").iterdir())) == 16


@pytest.mark.parametrize(
    ("notebook", "arguments", "message"),
    [
        ("toy/other", ["--grid", "epsilon=1,2"], "holds a sweep of toy/line"),
        (NOTEBOOK, ["--grid", "epsilon=1,2", "--grid", "rows=4", "--repeat", "2", *TINY], "does not have"),
        (NOTEBOOK, [*SMALL, "--seed", "1"], "does not have (evolvingdp sweep toy/line --preset quick"),
        (NOTEBOOK, [*SMALL, "-p", "width", "4"], "choose another folder, or a grid that holds all of them"),
    ],
)
def test_the_folder_of_another_sweep_is_refused_without_loss(root, finished, serial, notebook, arguments, message):
    for kind in ("ipynb", "py"):
        shutil.copyfile(root / "notebooks" / "toy" / f"line.{kind}", root / "notebooks" / "toy" / f"other.{kind}")
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    done = sweep(*arguments, "--out", finished, notebook=notebook)
    assert done.exit_code == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before
    assert serial.ran == []


def test_failed_points_are_reported_at_the_end_lose_nothing_and_are_tried_again(tmp_path, serial):
    serial.broken = {1}
    done = sweep(*SMALL, "--out", tmp_path)
    assert done.exit_code == 1
    assert "4 of 8 points failed, the others are in" in done.stderr
    assert done.stderr.count("the third term diverged") == 4
    assert "--seed 1 -p epsilon 1.0 -p n_users 2000 -p rows 4" in done.stderr
    assert set(pd.read_parquet(tmp_path / "sweep.parquet").seed) == {0}
    serial.broken = set()
    assert sweep(*SMALL, "--out", tmp_path).exit_code == 0
    assert len(serial.ran) == 12


def test_a_sweep_of_which_every_point_fails_says_so(tmp_path, serial):
    serial.broken = {0, 1}
    done = sweep(*SMALL, "--out", tmp_path)
    assert done.exit_code == 1
    assert "8 of 8 points failed" in done.stderr
    assert not (tmp_path / "sweep.parquet").exists()


def test_the_summary_has_the_metric_s_mean_at_each_point_with_its_band(finished):
    frame = pd.read_csv(finished / "summary.csv").set_index(["epsilon", "rows"])
    noise = pd.read_parquet(finished / "values.parquet").groupby(["param_epsilon", "param_rows"]).noise
    assert frame["mean"].to_dict() == pytest.approx(noise.mean().to_dict())
    assert frame.half.to_list() == pytest.approx((12.7062 * noise.std() / 2**0.5).to_list(), rel=1e-5)  # t of one degree
    assert (frame.runs == 2).all()
    assert (finished / "summary.svg").read_text().count("epsilon") >= 1


@pytest.mark.parametrize(
    ("grid", "axes"),
    [
        (["widths=2,3;4,5"], ["widths"]),
        (["epsilon=1", "rows=64"], ["epsilon", "rows"]),
        (["widths=2,3;4,5;6,7", "epsilon=1,2", "rows=4,8"], ["epsilon", "rows", "widths"]),
        (["epsilon=1,2,3,4,5,6,7,8,9", "rows=64,70,80,90,99,128,200,220,230"], ["epsilon", "rows"]),
    ],
)
def test_any_grid_can_be_drawn(grid, axes):
    names = {text.split("=")[0]: text.split("=")[1].split(";" if ";" in text else ",") for text in grid}
    frame = pd.MultiIndex.from_product(names.values(), names=names).to_frame(index=False)
    frame = frame.astype({name: float for name in names if name != "widths"})
    frame = frame.assign(mean=range(1, len(frame) + 1), half=float("nan"), sd=float("nan"), runs=1)
    drawn = sweeping.figure(frame, names, Metric("error", "an error")).decode()
    assert "<svg" in drawn
    for name in axes[:2]:
        assert f"<!-- {name}" in drawn


def test_the_time_left_is_estimated_from_this_session_s_points_once_they_are_many():
    """The first two, one a worker, waited 20 s for their workers; from then on a point takes a second."""
    said: list[str] = []
    clock = iter([0.0, *range(20, 60)])
    progress = sweeping.Progress(60, 40, said.append, warm=2, clock=lambda: next(clock))
    for _ in range(20):
        progress()
    assert said == [
        "41 of 60 points, 20 s",
        "46 of 60 points, 25 s",
        "51 of 60 points, 30 s",
        "56 of 60 points, 35 s, about 4 s left",
        "60 of 60 points, 39 s",
    ]


# What follows starts processes: a scheduler and workers apart from the client, as on a cluster.


def environ(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


def test_the_page_s_commands_do_what_it_says(tmp_path):
    section = (REPOSITORY / "book" / "reproduce.md").read_text().split("## Sweep over parameters")[1].split("\n## ")[0]
    blocks = re.findall(r"```(bash|python)\n(.*?)```", section, re.DOTALL)
    assert [language for language, _ in blocks] == ["bash", "python", "bash"]
    environment = environ(PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", EVOLVINGDP_NOTEBOOKS="")

    def run(language: str, text: str) -> subprocess.CompletedProcess[str]:
        program = {"bash": ["bash", "-e"], "python": [sys.executable]}[language]
        return subprocess.run(
            [*program, "-c", text], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600
        )

    said = [run(*block) for block in blocks]
    assert "12 points, 0 finished before; running on 2 workers" in said[0].stderr
    assert re.search(r"^1\.0 +64 .*\n +256 +\d", said[1].stdout, re.MULTILINE)
    assert "18 points, 12 finished before; running on cluster.json" in said[2].stderr
    named = set(re.findall(r"^- (.*?):", section, re.MULTILINE))
    named = {name for line in named for name in re.findall(r"`([^`]+)`", line)}
    assert named == {"summary.csv", "summary.svg", *TABLES, "timing.csv", "points/"}
    assert all((tmp_path / "my-sweep" / name).exists() for name in named)
    assert set(pd.read_parquet(tmp_path / "my-sweep" / "values.parquet").param_epsilon) == {0.5, 1, 2}


class Cluster:
    """A scheduler and workers, each a process of its own, on free ports."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.environment = environ(**environment)
        self.file, self.log, self.processes = folder / "scheduler.json", (folder / "log").open("w"), []
        self.start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        wait_for(self.file.exists)
        self.address = json.loads(self.file.read_text())["address"]

    def start(self, program: str, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", str(self.file), *options]
        process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=self.environment, cwd=self.file.parent)
        self.processes.append(process)
        return process

    def worker(self) -> subprocess.Popen:
        return self.start("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        self.log.close()


def wait_for(condition, seconds: float = 600) -> None:
    """Until `condition()`; looks often, since what it waits for may be over soon."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.workers = [started.worker(), started.worker()]
        yield started
    finally:
        started.close()


def client(*arguments: str | Path, program: tuple[str, ...] = EVOLVINGDP, **options) -> subprocess.Popen:
    command = [*program, "sweep", NOTEBOOK, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ(), **options)


def same(one: Path, other: Path) -> bool:
    """The three tables are the same, byte for byte, though their points were computed at other times and places."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in TABLES)


SIXTY = ["--grid", "epsilon=0.5,1,2,3,4,5", "--grid", "rows=4,8", "--repeat", "5", *TINY]


def test_sixty_points_over_two_workers_killed_twice_give_the_undisturbed_table(two_workers, serial, tmp_path):
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    remote = [*SIXTY, "--scheduler", two_workers.address, "--out", disturbed]

    def finished() -> set[Path]:
        return {path for path in disturbed.glob("points/*.parquet") if not path.name.startswith(".")}

    with client(*remote) as first:
        wait_for(lambda: len(finished()) >= 8 or first.poll() is not None)
        two_workers.workers[0].send_signal(signal.SIGKILL)
        at_worker_s_death = len(finished())
        wait_for(lambda: len(finished()) >= at_worker_s_death + 8 or first.poll() is not None)
        first.send_signal(signal.SIGKILL)
        said = first.communicate()[1]
    assert first.returncode == -signal.SIGKILL, said
    assert 8 <= at_worker_s_death < 40, "the worker must have been killed half-way"
    kept = {path: path.stat().st_mtime_ns for path in finished()}
    assert 16 <= len(kept) < 60, "the client must have been killed half-way"
    assert not (disturbed / "sweep.parquet").exists()
    two_workers.workers[0] = two_workers.worker()
    with client(*remote) as second:
        assert f"60 points, {len(kept)} finished before" in second.communicate()[1]
    assert second.returncode == 0
    assert "60 of 60 points" in sweep(*SIXTY, "--out", undisturbed).stderr
    assert len(serial.ran) == 60
    assert len(finished()) == 60
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "finished points are never run again"
    assert same(disturbed, undisturbed), "neither kills nor how many processes compute may change the table"
    assert len(pd.read_parquet(disturbed / "values.parquet")) == 60


def test_a_notebook_s_repetitions_are_the_same_rows_on_workers(two_workers):
    """In a process of its own: a client's threads outlive it."""
    script = """
import os, sys
from evolvingdp.book import engine
from evolvingdp.notebooks.toy import line
from evolvingdp.book.checkout import params_of
params = params_of("toy/line").make()
alone = line.run(params, 3)
os.environ[engine.SCHEDULER] = sys.argv[1]
assert line.run(params, 3).equals(alone)
where = engine.rows([(eval, "[{'process': __import__('os').getpid()}]")])
assert where[0]["process"] != os.getpid(), "the calls must have left this process"
print(len(alone), "rows")
"""
    command = [sys.executable, "-c", script, two_workers.address]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True)
    assert done.stdout == "3 rows\n", done.stderr


def test_workers_that_have_the_library_and_no_notebooks_are_sent_the_modules(tmp_path, serial):
    """A copy of the library stands where no notebooks are, as a wheel's does; both the sweep and a run deal to it."""
    shutil.copytree(REPOSITORY / "lib" / "evolvingdp", tmp_path / "site" / "evolvingdp")
    shutil.copytree(REPOSITORY / "data", tmp_path / "site" / "evolvingdp" / "data")
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster", PYTHONPATH=str(tmp_path / "site"), EVOLVINGDP_NOTEBOOKS="")
    try:
        cluster.worker()
        with client(*SMALL, "--scheduler", cluster.address, "--out", tmp_path / "remote") as remote:
            said = remote.communicate()[1]
        assert remote.returncode == 0, said
        command = [*EVOLVINGDP, "run", NOTEBOOK, "--scheduler", cluster.address, "--out", str(tmp_path / "run")]
        done = subprocess.run(command, env=environ(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    finally:
        cluster.close()
    assert sweep(*SMALL, "--out", tmp_path / "here").exit_code == 0
    assert same(tmp_path / "remote", tmp_path / "here")


@pytest.fixture(scope="module")
def changed_copy(tmp_path_factory) -> Path:
    """A checkout whose streams are others, and whose toy raises at epsilon = 3."""
    copy = tmp_path_factory.mktemp("copy")
    for part in ("lib", "data"):
        shutil.copytree(REPOSITORY / part, copy / part, ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("requirements.lock", "CITATION.cff"):
        shutil.copy(REPOSITORY / name, copy)
    raising = "def run(params, seed):\n    if params.epsilon == 3:\n        raise ValueError(seed)\n"
    toy.write(copy, module=toy.MODULE.replace("def run(params, seed):\n", raising))
    with (copy / "lib" / "evolvingdp" / "core" / "seeds.py").open("a") as file:
        file.write("\nOTHER = True\n")
    return copy


def from_copy(copy: Path, *arguments: str | Path) -> tuple[int, str]:
    command = [*EVOLVINGDP, "sweep", NOTEBOOK, *map(str, arguments)]
    environment = environ(PYTHONPATH=str(copy / "lib"), EVOLVINGDP_NOTEBOOKS=str(copy / "notebooks"))
    done = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_workers_that_run_other_code_are_refused_before_anything_runs(two_workers, changed_copy, tmp_path):
    code, said = from_copy(changed_copy, *SMALL, "--scheduler", two_workers.address, "--out", tmp_path / "out")
    assert code == 1
    assert re.search(
        r"Error: worker tcp://\S+ would compute something else, it differs in library \(\w+, here \w+\)\n", said
    )
    assert not (tmp_path / "out").exists()


def test_a_point_that_raises_on_a_worker_comes_back_with_its_traceback(changed_copy, tmp_path):
    command = ["--grid", "epsilon=1,3", "-p", "rows", "64", *TINY, "--workers", "1", "--out", tmp_path / "out"]
    code, said = from_copy(changed_copy, *command)
    assert code == 1
    assert "1 of 2 points failed" in said
    assert "toy/line.py" in said
    assert "ValueError: 0" in said
    assert set(pd.read_parquet(tmp_path / "out" / "values.parquet").param_epsilon) == {1.0}


@pytest.mark.parametrize("text", ["[]", "{}", "{", '"tcp://h:1"'])
def test_a_file_that_is_no_scheduler_s_is_refused(tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(ParameterError, match=r"must be the address or the scheduler file .*file.json' \("):
        sweeping.address_of(str(tmp_path / "file.json"))


def test_a_scheduler_that_goes_away_while_its_workers_are_looked_at_is_one_line(tmp_path, monkeypatch):
    class Gone:
        """A client that connects, and then the scheduler dies."""

        def __init__(self, *_, **__):
            self.wait_for_workers = self.register_plugin = lambda *_, **__: None

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def run(self, *_, **__):
            raise distributed.comm.CommClosedError("Stream is closed")

    monkeypatch.setattr(distributed, "Client", Gone)
    done = sweep("--grid", "epsilon=1", "--scheduler", "tcp://127.0.0.1:1", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].endswith("got 'tcp://127.0.0.1:1' (it went away: Stream is closed)")
    assert done.stderr.count("\n") == 2


def test_a_scheduler_that_does_not_answer_is_one_clear_line(tmp_path):
    addresses = ["tcp://127.0.0.1:1", "nowhere", "missing.json", "tls://127.0.0.1:1"]
    asked = [["sweep", NOTEBOOK, *SMALL, "--scheduler", address, "--out", str(tmp_path / "out")] for address in addresses]
    script = (
        "from click.testing import CliRunner; from evolvingdp.book import cli, sweeping\n"
        "sweeping.ANSWER = 1\n"
        f"for command in {asked!r}: print(CliRunner().invoke(cli.main, command).stderr, end='')"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environ(), cwd=tmp_path, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 4, done
    for address, line in zip(addresses, lines, strict=True):
        assert "must be the address or the scheduler file of a running dask scheduler, such as tcp://127.0.0.1:8786" in line
        assert f"got '{address}'" in line
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()
