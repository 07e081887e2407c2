"""Every command that is printed on a page, run as printed and in the order printed, in a fresh clone, to its end; and a
release."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import textwrap
from pathlib import Path

import pytest

from browsing import chromium
from evolvingdp.book.checkout import Project
from evolvingdp.book.cli import main
from fresh import cloned, run
from support import REPOSITORY

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
    "make pdf && make zip|make pdf": "make -o test release",  # which makes both, and what an archive needs besides
    r"make (book|-o test release)\b(?! PRESET)": r"make \1 PRESET=quick",
    "make serve": "timeout 2 make serve PORT=18765 || test $? = 124",
    "(evolvingdp audit .*)": r"code=0; \1 || code=$?; test $code = 1",  # the page's mechanism is refuted, which it says by 1
}
ELSEWHERE = (
    "make (test|check)",  # this is one of the tests that they run
    "make zip",  # stands beside `make pdf`, which is `make release` here
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
    """Without lines that stood before, which would do the same again."""
    seen, left = set[str](), []
    for line in script.splitlines():
        command = line.partition("  #")[0].strip()
        if not (command in seen and re.match(r"(make|evolvingdp) .*[^\\]$", command)):
            left.append(line)
        seen.add(command)
    return "\n".join(left)


@pytest.fixture(scope="module")
def clone(built_book: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the pages that this session rendered."""
    chromium()
    root = cloned(tmp_path_factory.mktemp("fresh") / "evolving-privacy")
    shutil.copytree(built_book.root / "_build", root / "_build")
    return root


def test_every_printed_command_and_a_release_run_in_the_order_printed_in_a_fresh_clone(clone, built_book):
    """At the quick preset; a release without its tests, of which this is one."""
    pages = [clone / f"{name}.md" for name in built_book.contents()]
    steps = [typed((clone / "README.md").read_text())]  # with a release, which wants nothing else in the checkout
    steps += [f"cat > {name} <<'END'\n{text}END" for name, text in FILES.items()]
    steps += [typed(page.read_text()) for page in pages if page.exists()]
    steps += ["mkdir elsewhere", "cp my_mechanism.py elsewhere", "cd elsewhere", typed(HELP)]
    script = once("\n".join(steps))
    if not os.environ.get("NLTK_DATA"):
        script = re.sub(r"evolvingdp data (brown|addresses)", "", script)  # would be downloaded
    assert set(re.findall(r"evolvingdp (\w+)", script)) >= set(main.commands)
    done = run(clone, f"set -x\n{script}")
    assert done.returncode == 0, done.stdout[-5000:]
    sums = (clone / "_build" / "release" / "SHA256SUMS").read_text()
    assert {".whl", ".pdf", ".zip", ".cff"} <= {Path(line).suffix for line in sums.splitlines()}


def test_the_readme_s_python_prints_what_it_says():
    failed, tried = doctest.testfile(str(REPOSITORY / "README.md"), module_relative=False)
    assert tried >= 4
    assert failed == 0
