"""A fresh clone of this checkout, and what a reader types in it: every command that is printed on a page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from evolvingdp.book.checkout import Project
from evolvingdp.book.cli import main
from support import CACHE, REPOSITORY

ENDED = "trap 'code=$?; kill $(jobs -p) 2>/dev/null || true; wait || true; exit $code' EXIT"  # with all that it started
OURS = {"EVOLVINGDP_NOTEBOOKS", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "MAKEFLAGS"}  # what no reader's shell has


def cloned(root: Path) -> Path:
    """A clone at `root` of this checkout as it is now, with this environment for its own."""
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(root)], check=True)
    listed = ["git", "-C", str(REPOSITORY), "ls-files", "--modified", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines():
        (root / name).unlink(missing_ok=True)
        if (REPOSITORY / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, root / name)
    kept = "git add --all && git -c user.name=x -c user.email=x commit --quiet --allow-empty --message now"
    subprocess.run(kept, shell=True, cwd=root, check=True)
    (root / ".venv").symlink_to(sys.prefix)
    for name in ("requirements.lock", "pyproject.toml"):  # or make would set up anew, which CI does before
        os.utime(root / name, (0, 0))
    return root


def run(root: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`script` in the clone at `root`, in the shell that the README says; what it prints is in `stdout`."""
    root.with_name("typed.sh").write_text(f"set -e\n{ENDED}\n{script}\n")
    here = {"PYTHONPATH": f"{root}/lib", "EVOLVINGDP_CACHE": CACHE, "SHELL": "/bin/bash"} | variables
    environment = {name: value for name, value in (os.environ | here).items() if name not in OURS}
    given = {"cwd": root, "env": environment, "input": "exec bash ../typed.sh", "text": True}
    return subprocess.run(["make", "shell"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **given)


PRINTED = re.compile(
    r"^ *```\{?(?P<kind>bash|python|yaml|plan)\b\}?(?P<words>.*)\n(?P<block>(?:.*\n)*?) *```$"
    r"|`(?P<inline>(?:\.venv/bin/)?evolvingdp \w+ [^`]+|evolvingdp (?:data|pdf|zip)|make [a-z][^`]*)`",
    re.MULTILINE,
)
# What takes long is made smaller (the papers' scale, the seeds of a sweep), and what never ends is stopped; all else runs as
# it stands.
SMALLER = {
    "--preset paper|base: paper": lambda found: found[0].replace("paper", "quick"),
    r"--repeat \d+": "--repeat 1",
    "sweep evolving/thresh": r"\g<0> -p repetitions 2 -p sweep_repetitions 2 -p horizon_sweep 8,16",
    "make pdf && make zip|make pdf": "make -o test release",  # which makes both, and what an archive needs besides
    r"make (book|-o test release)\b(?! PRESET)": r"make \1 PRESET=quick",
    "make serve": "timeout 2 make serve PORT=18765 || test $? = 124",
    "(evolvingdp audit .*)": r"code=0; \1 || code=$?; test $code = 1",  # the page's mechanism is refuted, which it says by 1
}
ELSEWHERE = (
    "make (test|check)",  # this is one of the tests that they run
    "(make|evolvingdp) zip|evolvingdp pdf",  # stand beside `make pdf`, which is `make release` here and runs them
    "make (benchmarks|claims|faults|mutants|peers|planner)",  # test_long_commands.py has their smallest samples
    "sbatch|from dask_(jobqueue|kubernetes)",  # SLURM and Kubernetes, which no test has: the page says so
    r"[^`]*(\.\.\.|ADDRESS)",  # has a gap to fill
)
# The reader's own files, with the columns that the page names.
FILES = {
    "words.csv": "word,count\nkiwi,40000\nfig,30000\n",
    "bits.csv": "period,user,bit\n" + "".join(f"{day},{user},{user % 2}\n" for day in range(4) for user in range(500)),
    "readings.csv": "user,value\n" + "".join(f"{user % 100},{user % 10 / 10}\n" for user in range(1000)),
    "groups.csv": "step,user,group\n" + "".join(f"{step},{user},{user % 3}\n" for step in range(4) for user in range(900)),
    "my_counts.csv": "date,word,count\n" + "".join(f"{year},{word},9000\n" for year in range(1990, 2010) for word in "ab"),
}
HELP = "\n".join(f"`{' '.join((each.help or '').partition('Example: ')[2].split())}`" for each in main.commands.values())


def typed(text: str) -> str:
    """What a reader types, from the top of a page to its end; Python and YAML go into the files that its sentences name."""
    steps = []
    for found in PRINTED.finditer(text):
        kind, step = found["kind"], textwrap.dedent(found["inline"] or found["block"] or "")
        if kind == "plan":
            step = f"evolvingdp plan{found['words']}"
        elif kind == "yaml" or step.startswith('"""'):
            step = f"cat > {'mine.yaml' if kind == 'yaml' else 'my_mechanism.py'} <<'END'\n{step}END"
        elif kind == "python" and not step.startswith((">>>", "from dask")):
            step = f"python - <<'END'\n{step}END"
        elif kind == "python":
            continue
        if kind in (None, "bash"):
            step = re.sub(r"\s*\\\n\s*", " ", step)
        for pattern, smaller in SMALLER.items():
            step = re.sub(pattern, smaller, step)
        steps += [line for line in step.splitlines() if not any(re.match(other, line) for other in ELSEWHERE)]
    return "\n".join(steps)


def once(script: str) -> str:
    """Without lines that stood before, which would do the same again, be it into another folder."""
    seen, left = set[str](), []
    for line in script.splitlines():
        command = re.sub(r"^\.venv/bin/| --out \S+", "", line.partition("  #")[0].strip())
        if not (command in seen and re.match(r"(make|evolvingdp) .*[^\\]$", command)):
            left.append(line)
        seen.add(command)
    return "\n".join(left)


def printed(root: Path) -> str:
    """All that the pages of the clone at `root` print, in their order; with the reader's own files before."""
    pages = [root / f"{name}.md" for name in Project(root).contents()]
    steps = [typed((root / "README.md").read_text())]  # with a release, which wants nothing else in the checkout
    steps += [f"cat > {name} <<'END'\n{text}END" for name, text in FILES.items()]
    steps += [typed(page.read_text()) for page in pages if page.exists()]
    steps += ["mkdir elsewhere", "cp my_mechanism.py elsewhere", "cd elsewhere", typed(HELP)]
    return once("\n".join(steps))
