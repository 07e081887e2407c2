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
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import toy
from distributed.comm import CommClosedError
from serial import TABLES, Done, Serial, alone, refused
from serial import sweep as serial_sweep

from evolvingdp.book import sweeping
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
    "no values": (["--grid", "epsilon"], "grid must be NAME=VALUE,VALUE,..., got 'epsilon'"),
    "empty value": (["--grid", "epsilon=1,,2"], "grid has an empty value for epsilon, got 'epsilon=1,,2'"),
    "twice": (["--grid", "epsilon=1", "--grid", "epsilon=2"], "grid names epsilon twice"),
    "same value": (["--grid", "epsilon=1,1.0"], "the points epsilon=1 and epsilon=1.0 are the same"),
    "both": (["--grid", "epsilon=1", "-p", "epsilon", "2"], "epsilon is set by -p and swept by --grid"),
    "-p twice": (["--grid", "epsilon=1", "-p", "width", "1", "-p", "width", "2"], "width is set twice"),
    "seed": (["--grid", "seed=1,2"], "seed cannot be in the grid; --seed sets the first seed"),
    "-p seed": (["--grid", "epsilon=1", "-p", "seed", "2"], "seed is set by --seed"),
    "many bad": (
        ["--grid", "epsilon=1,-1,-2", "--grid", "rows=4"],
        "point epsilon=-1, rows=4: epsilon must be >= 1e-06, got '-1' (and 1 o",
    ),
    "one list": (["--grid", "widths=2,3"], "widths needs lists separated by ';'"),
    "too many": (["--grid", "epsilon=1,2", "--repeat", "5001"], "the sweep has 10002 points, at most 10000 may be"),
    "bad seed": (["--grid", "epsilon=1", "--seed", "-1"], "seed must be an integer >= 0, got -1"),
    "both engines": (["--grid", "epsilon=1", "--scheduler", "tcp://h:1", "--workers", "2"], "leave --workers away"),
    "no time": (["--grid", "epsilon=1", "--scheduler", "h:1", "--wait", "nan"], "wait must be a number of seconds, such as"),
    "nobody to wait for": (["--grid", "epsilon=1", "--wait", "5"], "there is none; leave --wait 5 away"),
    "a pipe": (["--grid", "epsilon=1", "--scheduler", "pipe.json"], "got 'pipe.json' (no file)"),
    "a loop of links": (["--grid", "epsilon=1", "--out", "loop"], "out must be a folder that can be written"),
    "half an address": (["--grid", "epsilon=1", "--scheduler", "tcp://"], "got 'tcp://' (no address)"),
    "no file": (["--grid", "epsilon=1", "--scheduler", "no_file.json"], "got 'no_file.json' ([Errno 2] No such file"),
    "sources": (["--grid", "epsilon=1", "--out", "notebooks/mine"], "out must lie outside the book's own sources"),
    "file": (["--grid", "epsilon=1", "--out", "file/inside"], "out must be a folder that can be written"),
    "foreign": (["--grid", "epsilon=1", "--out", "runs"], "which no sweep wrote; choose another folder"),
    "foreign points": (["--grid", "epsilon=1", "--out", "trips"], "points/gps.csv', which no sweep wrote"),
    "foreign tables": (["--grid", "epsilon=1", "--out", "tables"], "tables/summary.csv', which no sweep wrote"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_sweep_refuses_bad_input_with_one_line_before_anything_runs(kind, root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    (root / "runs").mkdir(exist_ok=True)
    (root / "runs" / "mine.txt").touch()
    for name in ("trips", "tables"):
        (root / name / "points").mkdir(parents=True, exist_ok=True)
    (root / "trips" / "points" / "gps.csv").touch()
    (root / "tables" / "summary.csv").touch()
    (root / "file").touch()
    if not (root / "pipe.json").exists():
        os.mkfifo(root / "pipe.json")
        (root / "loop").symlink_to("loop")
    monkeypatch.setattr(sweeping, "connected", lambda *_: pytest.fail("it ran"))
    monkeypatch.setattr(sweeping, "ANSWER", 0.2)  # seconds to wait for a scheduler's file
    arguments, message = BAD[kind]
    assert message in refused("sweep", NOTEBOOK, *([] if "--out" in arguments else ["--out", tmp_path / "out"]), *arguments)
    assert not (tmp_path / "out").exists()


def test_a_table_has_each_point_s_rows_parameters_seed_and_provenance(tmp_path, serial, monkeypatch):
    monkeypatch.setattr(sweeping, "DEALT", 2)
    out = tmp_path / "out"
    done = sweep(*SMALL, "--seed", "5", "--out", out)
    assert done.exit_code == 0, done.output
    table, values, claims = (pd.read_parquet(out / name) for name in TABLES)
    points = table.drop_duplicates("point")
    assert sorted(zip(points.param_epsilon, points.param_rows, points.seed, strict=True)) == [
        (epsilon, rows, seed) for epsilon in (1.0, 2.0) for rows in (4, 8) for seed in (5, 6)
    ]
    assert set(table.param_widths) == {"2,3"}
    assert not table[["commit", "version", "library_sha256", "data_sha256", "python", "packages"]].isna().any(axis=None)
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


def test_damaged_points_are_run_again_and_what_a_killed_sweep_wrote_goes(finished, serial):
    halves = [finished / ".writing-5483bddb7db8.parquet", finished / "points" / ".writing-0c4b1b5a2e6f.parquet"]
    for half in halves:
        half.touch()
    cut, gone, empty = sorted((finished / "points").glob("[!.]*"))[:3]
    before = [pd.read_parquet(path) for path in (cut, gone, empty)]
    cut.write_bytes(cut.read_bytes()[:-50])
    gone.unlink()
    empty.write_bytes(b"")
    sweep(*SMALL, "--out", finished)
    assert len(serial.ran) == 3
    assert all(pd.read_parquet(path).equals(was) for path, was in zip((cut, gone, empty), before, strict=True))
    assert not [half for half in halves if half.exists()]


def test_workers_that_do_not_start_are_one_line(tmp_path, monkeypatch):
    """One that is killed at once, say."""

    def cluster(**_: object) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", cluster)
    said = refused("sweep", NOTEBOOK, "--grid", "epsilon=1", *TINY, "--out", tmp_path / "out", code=3)
    assert "no worker starts (Nanny failed to start.); all finished points are kept, try again" in said


@pytest.mark.parametrize("other", [["--seed", "1"], ["-p", "width", "4"]])
def test_the_folder_of_another_sweep_is_refused_without_loss(finished, serial, other):
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    said = refused("sweep", NOTEBOOK, *SMALL, *other, "--out", finished)
    assert re.search(r"holds \d points that this sweep does not have, .*; choose another folder, or a grid that", said)
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before
    assert serial.ran == []


def test_failed_points_are_reported_at_the_end_lose_nothing_and_are_tried_again(tmp_path, serial):
    serial.broken = {1}
    done = sweep(*SMALL, "--out", tmp_path)
    assert done.exit_code == 3
    assert "4 of 8 points failed, the others are in" in done.stderr
    assert done.stderr.count("the third term diverged") == 4
    assert "--seed 1 -p epsilon 1.0 -p n_users 2000 -p rows 4" in done.stderr
    assert set(pd.read_parquet(tmp_path / "sweep.parquet").seed) == {0}
    serial.broken = set()
    assert sweep(*SMALL, "--out", tmp_path).exit_code == 0
    assert len(serial.ran) == 12


LOST = {
    "the scheduler went away; all finished points are kept": CommClosedError("in <TCP>: Stream is closed"),
    "No space left on device": OSError(errno.ENOSPC, "No space left on device"),
}


@pytest.mark.parametrize("said", LOST)
def test_a_scheduler_that_goes_away_is_told_apart_from_what_is_ours(said, tmp_path, serial, monkeypatch):
    def result(*_, **__):
        raise LOST[said]

    monkeypatch.setattr(Done, "result", result)
    done = sweep("--grid", "epsilon=1", *TINY, "--out", tmp_path / "out")
    assert (done.exit_code, done.stderr.count("Error: ")) == (3, 1)
    assert said in done.stderr


def test_the_summary_has_the_metric_s_mean_at_each_point_with_its_band(finished):
    frame = pd.read_csv(finished / "summary.csv").set_index(["epsilon", "rows"])
    noise = pd.read_parquet(finished / "values.parquet").groupby(["param_epsilon", "param_rows"]).noise
    assert frame["mean"].to_dict() == pytest.approx(noise.mean().to_dict())
    assert frame.half.to_list() == pytest.approx((12.7062 * noise.std() / 2**0.5).to_list(), rel=1e-5)  # t of one degree
    assert (frame.runs == 2).all()
    assert (finished / "summary.svg").read_text().count("epsilon") >= 1


# What follows starts processes: a scheduler and workers apart from the client, as on a cluster.


def environ(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


class Cluster:
    """A scheduler and workers, each a process of its own, on free ports."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.environment = environ(**environment)
        self.file, self.log, self.processes = folder / "scheduler.json", (folder / "log").open("w"), []
        self.start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        wait_for(lambda: self.file.exists() and self.file.read_text().rstrip().endswith("}"))  # and not only begun
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
    with client(*remote[:-1], disturbed.name, cwd=tmp_path) as second:  # typed elsewhere
        assert f"60 points, {len(kept)} finished before" in second.communicate()[1]
    assert second.returncode == 0
    assert "60 of 60 points" in sweep(*SIXTY, "--out", undisturbed).stderr
    assert len(serial.ran) == 60
    assert len(finished()) == 60
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "finished points are never run again"
    assert same(disturbed, undisturbed), "neither kills nor how many processes compute may change the table"
    assert len(pd.read_parquet(disturbed / "values.parquet")) == 60


def run(script: str, *arguments: str | Path, **options) -> subprocess.CompletedProcess:
    """In a process of its own: a client's threads outlive it."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, env=environ(), capture_output=True, text=True, **options)


def test_nobody_else_can_use_the_scheduler_that_a_sweep_starts():
    """Neither plainly nor with a certificate of its own."""
    done = run(r"""
from distributed import Client
from distributed.security import Security
from evolvingdp.book import sweeping
if __name__ == "__main__":
    with sweeping.connected(None, 1, "toy/line") as client:
        address, refused = client.scheduler.address, []
        for known, where in ((None, address.replace("tls:", "tcp:")), (Security.temporary(), address)):
            try:
                Client(where, security=known, timeout=3)
            except (OSError, TypeError, ValueError) as error:
                refused.append(type(error).__name__)
        print(address.partition(":")[0], len(refused), client.submit(abs, -3).result())
""")
    assert done.stdout == "tls 2 3\n", done.stdout + done.stderr


def test_progress_tells_what_a_point_costs_and_what_is_left(capsys):
    """Of this go: what was finished before costs nothing."""
    with sweeping.progress(10, 6) as progress:
        for _ in range(4):
            time.sleep(0.25)
            progress.update()
    said = capsys.readouterr().err.split("\r")[-1].rstrip("\n")
    assert re.fullmatch(r"10 of 10 points in 00:0[12], +0\.(2[5-9]|3\d)s/point, about 00:00 left", said), said


def test_workers_of_a_queue_are_waited_for_and_sent_the_modules_that_they_do_not_have(tmp_path, serial):
    """A copy of the library stands where no notebooks are, as a wheel's does."""
    shutil.copytree(REPOSITORY / "lib" / "evolvingdp", tmp_path / "site" / "evolvingdp")
    shutil.copytree(REPOSITORY / "data", tmp_path / "site" / "evolvingdp" / "data")
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster", PYTHONPATH=str(tmp_path / "site"), EVOLVINGDP_NOTEBOOKS="")
    try:
        asked = [*SMALL, "--scheduler", cluster.address, "--out", tmp_path / "remote", "--wait"]
        with client(*asked, "5") as hasty:  # which it also gives the scheduler
            said = hasty.communicate()[1]
        assert "has no workers; start some: dask worker" in said
        assert "or give a queue --wait SECONDS" in said
        with client(*asked, "300") as patient:
            time.sleep(1)
            worker = cluster.worker()
            said = patient.communicate()[1]
        assert patient.returncode == 0, said
        many = ["--grid", "epsilon=1,2", "--repeat", "200", *TINY, "--scheduler", cluster.address, "--wait", "1"]
        with client(*many, "--out", tmp_path / "lost") as lost:
            wait_for(lambda: [*tmp_path.glob("lost/points/*")] or lost.poll() is not None)
            worker.kill()
            said = lost.communicate()[1]
        assert "no worker for 1 s (--wait); all finished points are kept: start workers, then the same command" in said
    finally:
        cluster.close()
    assert sweep(*SMALL, "--out", tmp_path / "here").exit_code == 0
    assert same(tmp_path / "remote", tmp_path / "here")


def test_workers_that_run_other_code_are_refused_before_anything_runs(two_workers, tmp_path):
    other = """
import sys
from evolvingdp.book import checkout, cli
real = checkout.made_of
checkout.made_of = lambda *given, **more: {**real(*given, **more), "library": "another"}
cli.main(sys.argv[1:])
"""
    done = run(other, "sweep", NOTEBOOK, *SMALL, "--scheduler", two_workers.address, "--out", tmp_path / "out")
    assert done.returncode == 2
    said = r"Error: worker tcp://\S+ would compute something else, it differs in library \(\w+, here another\)\n"
    assert re.search(said, done.stderr), done.stderr
    assert not (tmp_path / "out").exists()


def test_a_scheduler_that_does_not_answer_is_one_clear_line(tmp_path):
    addresses = ["tcp://127.0.0.1:1", "nowhere", "missing.json", "tls://127.0.0.1:1"]
    asked = [["sweep", NOTEBOOK, *SMALL, "--scheduler", address, "--out", str(tmp_path / "out")] for address in addresses]
    script = (
        "from click.testing import CliRunner; from evolvingdp.book import cli, sweeping\n"
        "sweeping.ANSWER = 1\n"
        f"for command in {asked!r}: print(CliRunner().invoke(cli.main, command).stderr, end='')"
    )
    done = run(script, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done
    for address, line in zip(addresses, lines, strict=True):
        assert line.count("scheduler must be the address or the scheduler file of a running dask scheduler, such as") == 1
        assert f"got '{address}'" in line
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()
