"""What every command is wrapped in: expected errors are one line, a checkout is asked for, one process builds at a time."""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import click

from evolvingdp.publish.errors import PublishError

# what the machine refuses, and no fault of a program
MACHINE = {getattr(errno, f"E{name}") for name in ("NOSPC", "DQUOT", "ROFS", "ACCES", "PERM", "IO", "NAMETOOLONG", "FBIG")}


def one_line(command: Callable[..., Any]) -> Callable[..., Any]:
    """Expected errors become click's: a line on stderr and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except PublishError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            if error.errno not in MACHINE:
                raise
            raise click.ClickException(f"{error.strerror}: {error.filename or 'the results could not be written'}") from None
        except ValueError as error:
            from evolvingdp.core.checks import ParameterError

            if not isinstance(error, ParameterError):
                raise
            raise click.ClickException(str(error)) from None
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package == "evolvingdp" or find_spec(package):
                raise
            raise click.ClickException(
                f"this command needs {package}, which is not installed: make installs it in the checkout"
            ) from None

    return wrapped


def in_checkout(command: Callable[..., Any]) -> Callable[..., Any]:
    """`one_line`, for a command that an installed package cannot run."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        from evolvingdp.publish.sources.digest import checkout

        checkout()
        return command(*args, **kwargs)

    return one_line(wrapped)


def alone(command: Callable[..., Any]) -> Callable[..., Any]:
    """`in_checkout`, for a command that writes in _build, as one process at a time may."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        from evolvingdp.publish.files import held
        from evolvingdp.publish.sources.project import Project

        with held(Project().root / "_build"):
            return command(*args, **kwargs)

    return in_checkout(wrapped)
