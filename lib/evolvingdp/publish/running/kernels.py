"""Kernels that start at once: each is forked from a process that has imported, once, what all notebooks import.

Python and those packages take a kernel 1.4 s of processor time.  Nothing of evolvingdp's papers is imported beforehand, so a
kernel runs the code that stands in the files when it starts.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from evolvingdp.publish import stopping
from evolvingdp.publish.running.environment import environment

NAME = "evolvingdp-forked"  # its entry point
CHOSEN = {"JUPYTER_DEFAULT_PROVISIONER_NAME": NAME}  # where this is set, jupyter_client starts kernels by it
_PRELOADED = "evolvingdp.publish.running.preloaded"
_LAUNCHER = [sys.executable, "-m", "ipykernel_launcher"]


class Forked(LocalProvisioner):
    """A kernel on this machine, as jupyter_client's own, but forked.

    Another kernel than Python's is started by its command, and so is every kernel where a process that has loaded much
    cannot safely be forked (macOS).
    """

    async def launch_kernel(self, cmd: list[str], **settings: Any) -> KernelConnectionInfo:
        if cmd[: len(_LAUNCHER)] != _LAUNCHER or sys.platform != "linux":
            return await super().launch_kernel(cmd, **settings)
        folder = str(settings.get("cwd") or os.getcwd())
        process = _server().Process(target=_serve, args=(cmd[len(_LAUNCHER) :], folder, dict(settings["env"])))
        # nor does the interrupt reach it that jupyter_client sends before it asks a kernel to end
        with stopping.starting(), environment({"PYTHONSAFEPATH": "1"}):  # a numpy.py in the user's folder is none of ours
            process.start()
        self.process = _Child(process)  # type: ignore[assignment]  # all that is asked of a Popen
        self.pid = self.pgid = process.pid  # its own group, as the kernel makes it
        return self.connection_info


class _Child:
    """A forked process, with what jupyter_client asks of one of subprocess.Popen."""

    stdin = stdout = stderr = None

    def __init__(self, process: ForkServerProcess) -> None:
        self.process, self.kill, self.terminate = process, process.kill, process.terminate

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        if self.process.is_alive() and self.process.pid:
            os.kill(self.process.pid, number)


def _server() -> ForkServerContext:
    context = get_context("forkserver")
    context.set_forkserver_preload([_PRELOADED])
    return context


def _serve(arguments: list[str], folder: str, variables: Mapping[str, str]) -> None:
    """Be a kernel."""
    os.setsid()  # what it starts ends with it
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.path[:] = importlib.import_module(_PRELOADED).PATH  # not that of whoever asks
    sys.argv = [*_LAUNCHER[-1:], *arguments]
    stopping.end_with_parent()
    from ipykernel.kernelapp import IPKernelApp

    # its parent is the process that it was forked from, which ends with the command: it then ends, too
    IPKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])
