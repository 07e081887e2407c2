"""What every runner shares: jobs come in on stdin, a line each; their cost and their answer go out on stdout.

A runner is a script that knows one package and runs in that package's own environment, so this file uses numpy and the
standard library only. Each method prepares (imports, compilation, reading the data: not measured) and returns the work.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Work = Callable[[], Any]
Prepare = Callable[["Job"], Work]


@dataclass(frozen=True)
class Job:
    """One run of one method; `data` is a .npy file that all packages read."""

    task: str
    method: str
    n: int
    seed: int
    epsilon: float
    data: str = ""
    delta: float = 0.0
    domain: int = 0
    top: int = 0

    def load(self) -> Any:
        return np.load(self.data)


Methods = dict[tuple[str, str], Prepare]  # by task and name


def serve(methods: Methods) -> None:
    """For each line: do the job; print CPU seconds, peak memory (MB), numpy's version and the answer as JSON."""
    out, sys.stdout = sys.stdout, sys.stderr  # some packages print
    for line in sys.stdin:
        json.dump(run(methods, Job(**json.loads(line))), out)
        out.write("\n")
        out.flush()


def run(methods: Methods, job: Job) -> dict[str, Any]:
    random.seed(job.seed)
    np.random.seed(job.seed)  # noqa: NPY002 - the peers draw from the global generator
    work = methods[job.task, job.method](job)
    started = time.process_time()
    answer = work()
    spent = time.process_time() - started
    return {"cpu": spent, "memory": peak(), "numpy": np.__version__, "answer": plain(answer)}


def peak() -> float:
    """This process's peak memory in MB.  The kernel's VmHWM where it exists: ru_maxrss starts at the parent's peak."""
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.is_file() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def plain(answer: Any) -> Any:
    """Arrays as lists."""
    if isinstance(answer, dict):
        return {key: plain(value) for key, value in answer.items()}
    return np.asarray(answer).tolist() if isinstance(answer, np.ndarray | list | tuple) else answer
