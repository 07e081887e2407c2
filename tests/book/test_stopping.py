"""Stopping and dying: everything ends at once, nothing half done is kept, who holds a folder is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import psutil
import pytest
import toy

from evolvingdp.book import files
from evolvingdp.book.checkout import Project
from evolvingdp.book.files import HELD, LINE, NotebookError, PublishError, clear, held, replacing, scratch
from evolvingdp.book.running import Job, run
from support import TOY

AT_WORK = "from pathlib import Path\nimport time\nPath({!r}).touch()\ntime.sleep(99)"  # until it is stopped


def test_what_the_machine_refuses_a_notebook_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "cache"))
    project = Project(toy.write(tmp_path, "raise OSError(28, 'No space left on device')"))
    with pytest.raises(NotebookError, match=r"stopped in cell 3: \[Errno 28\] No space left on device$"):
        run(Job.make(project, TOY, "quick"))


@pytest.mark.parametrize(
    ("launcher", "said"),
    [
        ("raise OSError(28, 'No space left on device')", r"OSError: \[Errno 28\] No space left on device"),
        ("import none_of_ours", "ModuleNotFoundError: No module named 'none_of_ours'"),
        ("import os; os._exit(1)", "it said nothing, as where memory is short"),
    ],
)
def test_a_kernel_that_cannot_start_says_its_last_line(launcher, said, tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "ipykernel_launcher.py").write_text(launcher)
    project = Project(toy.write(tmp_path, "1"))
    line = rf"^{TOY} could not be executed: its kernel did not start \({said}\); where that is mended, .* goes on$"
    with pytest.raises(NotebookError, match=line):
        run(Job.make(project, TOY, "quick"))
    assert (*capfd.readouterr(), caplog.text) == ("", "", "")


def cut(prefix: Path, *sources: str) -> list[Path]:
    """The compiled files of these modules, which end in their middle, as a full disk leaves them."""
    found = [
        path for path in sorted(prefix.rglob("*.pyc")) if path.name.split(".")[0] in sources and "evolvingdp" in str(path)
    ]
    for path in found:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return found


def test_compiled_files_that_a_full_disk_cut_are_said_in_a_line_and_removed(tmp_path):
    """The command line's own, before there is one; and two that a command imports. CPython 3.11 keeps them."""
    command = [sys.executable, "-m", "evolvingdp", "params", "heavy_hitters/treehist"]
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    whole = subprocess.run(command, env=environment, capture_output=True, text=True)
    for sources, more in ((("cli",), ""), (("checkout", "params"), " and 1 more")):
        left = cut(tmp_path, *sources)
        assert len(left) == len(sources)
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        line = f"Error: Python's compiled file {left[0]}{more} had been cut short, as where a disk is full; removed: try"
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
        assert done.stderr.startswith(line)
        again = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (again.returncode, again.stdout) == (0, whole.stdout)


def test_a_compiled_file_that_is_cut_where_a_kernel_reads_it_is_one_line_too(tmp_path, monkeypatch):
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    project = Project(toy.write(tmp_path, "raise EOFError('marshal data too short')"))
    with pytest.raises(NotebookError, match="failed in cell 3:\n"):  # nothing is cut: it is the notebook's own
        run(Job.make(project, TOY, "quick"))
    compiled = Path(cache_from_source(files.__file__))
    compiled.parent.mkdir(parents=True)
    compiled.write_bytes(bytes(20))
    with pytest.raises(NotebookError, match=rf"stopped: Python's compiled file {compiled} had been cut short, .*[^\n]$"):
        run(Job.make(project, TOY, "quick"))
    assert not compiled.exists()


def ended_unheard(process: psutil.Process) -> bool:
    """Whether it has ended, and nobody has asked how: where nobody waits for orphans, as in some containers."""
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


def ended(root: Path, how: signal.Signals) -> str:
    """What `evolvingdp book` writes to stderr, which is sent this signal when something below it touches at-work."""
    environment = os.environ | {"EVOLVINGDP_NOTEBOOKS": str(root / "notebooks"), "EVOLVINGDP_CACHE": str(root / ".cache")}
    (root / "at-work").unlink(missing_ok=True)
    command = [sys.executable, "-m", "evolvingdp", "book", "--preset", "quick", "--workers", "1"]
    given = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=root, start_new_session=True, **given) as started:
        end = time.monotonic() + 120
        while not (root / "at-work").exists() and time.monotonic() < end and started.poll() is None:
            time.sleep(0.05)
        below = psutil.Process(started.pid).children(recursive=True)
        assert below, started.communicate()
        (os.killpg if how == signal.SIGINT else os.kill)(started.pid, how)
        _, left = psutil.wait_procs(below, timeout=5)
        assert [process for process in left if not ended_unheard(process)] == []
        assert started.wait(5) == -how
        return started.stderr.read()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_renderer_ends_with_the_command_that_started_it(tmp_path, how):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "index.md").write_text("# A book\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (tmp_path / "slow.py").write_text("import pathlib, time\npathlib.Path('at-work').touch()\ntime.sleep(99)\n")
    (tmp_path / "_config.yml").write_text("sphinx:\n  local_extensions: {slow: .}\n")
    ended(tmp_path, how)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_all_processes_of_a_command_end_within_five_seconds_of_a_signal(small_book, how):
    """Its kernel, too.  Ctrl-C goes to every process of the terminal, kill to the one that was started."""
    toy.write(small_book.root, AT_WORK.format(str(small_book.root / "at-work")))
    said = ended(small_book.root, how)
    if how != signal.SIGKILL:
        assert said == LINE
    assert all(left.name.startswith("running-") for left in small_book.cache.iterdir())
    assert not Job.make(small_book, TOY, "quick").cached


def test_nothing_is_said_after_the_line():
    script = (
        "import os; from evolvingdp.book import files\n"
        "files.end_descendants = lambda: os.write(2, b'KeyError: of a thread that lives')\n"
        "files.listen(); os.kill(os.getpid(), 15)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, LINE)


def test_ctrl_c_says_nothing_while_the_command_line_is_imported(tmp_path):
    (tmp_path / "click.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n")
    command = [sys.executable, "-m", "evolvingdp", "--version"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_whoever_died_holds_nothing_and_what_it_left_goes_after_a_day(tmp_path):
    """And what a process writes that lives does not; meanwhile nobody else may write there."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from evolvingdp.book.files import held, replacing, scratch\n"
        "folder = Path(sys.argv[1])\n"
        "with held(folder), scratch(folder, 'running-') as work, replacing(folder / 'a.zip') as file:\n"
        "    (work / 'half').touch(); file.touch(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)]).returncode == -signal.SIGKILL
    left = [path for path in tmp_path.iterdir() if path.name != HELD]
    assert len(left) == 2
    for path in left:
        os.utime(path, (0, 0))
    with held(tmp_path), replacing(tmp_path / "b.zip") as mine, scratch(tmp_path, "running-") as work:
        mine.touch()
        with (
            pytest.raises(PublishError, match=r"another process writes in .*: wait until it ends, or stop it"),
            held(tmp_path),
        ):
            pytest.fail("two hold it")
        clear(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {HELD, mine.name, work.name}
