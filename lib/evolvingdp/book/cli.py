"""The command line `evolvingdp`: run or sweep a notebook, show its parameters, build the book, check the data.

A command imports what it needs when it runs, so that help and a refused parameter come at once.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from evolvingdp.book import bytecode
from evolvingdp.book.files import FAILED, REFUSED, Command, Failed, Refused, alone, in_checkout, listen, one_line, scratch


class _Ends(click.Group):
    command_class = Command

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the command line calls, and nobody who uses the commands within Python."""
        listen()
        return super().__call__(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """An EOFError is none of a terminal, for which click takes it, and would end in silence."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            if line := bytecode.mended():
                raise Failed(line) from None
            raise RuntimeError(f"EOFError: {error}") from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """One line where something is refused, and 1 for a verdict alone: click and Python end with 1 for more."""
        try:
            Path.cwd()
        except FileNotFoundError:
            click.echo(
                "Error: the folder in which this was started exists no longer; cd to another one, and again", err=True
            )
            sys.exit(REFUSED)
        try:
            code = super().main(*args, **kwargs | {"standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            code = REFUSED
        except click.ClickException as error:
            click.echo(f"Error: {_told(error)}", err=True)
            code = error.exit_code
        except click.Abort:
            code = 130
        except SystemExit:  # click's own, when nobody reads what is printed
            code = FAILED
        except Exception:
            traceback.print_exc()
            code = FAILED
        sys.exit(code)


def _told(error: click.ClickException) -> str:
    """What click refuses in one line, with the example of the command; what a notebook raised as it is."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    if command is None:
        return error.format_message()
    said, example = error.format_message().removesuffix("."), (command.help or "").partition("Example: ")[2]
    return f"{' '.join(said.split())}; example: {' '.join(example.split())}"


@click.group(cls=_Ends, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="evolvingdp")
def main() -> None:
    """Evolving Privacy: rerun the book's notebooks, or the book.

    Example: evolvingdp run heavy_hitters/frequency_oracle -p epsilon 1
    """


@main.command()
@click.argument("notebook")
@click.option(
    "-p", "overrides", type=(str, str), multiple=True, metavar="NAME VALUE", help="Set a parameter; may be repeated."
)
@click.option("--preset", default="quick", show_default=True, help="quick (seconds) or paper (the paper's scale).")
@click.option("--seed", show_default="0", help="Master seed of all random streams, an integer >= 0.")
@click.option("--out", metavar="FOLDER", help="Folder for the results  [default: runs/NOTEBOOK/KEY]")
@in_checkout()
def run(notebook: str, overrides: tuple[tuple[str, str], ...], preset: str, seed: str | None, out: str | None) -> None:
    """Execute NOTEBOOK with checked parameters; write the notebook, results.csv, claims.json and the figures.

    Example: evolvingdp run heavy_hitters/frequency_oracle --preset paper -p epsilon 1 --seed 7 --out my-run
    """
    from evolvingdp.book import running
    from evolvingdp.book.checkout import Project
    from evolvingdp.book.running import Job, check_same_run, check_writable, named
    from evolvingdp.core.checks import ParameterError

    project = Project()
    names = [name for name, _ in overrides]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or ("seed" in names and seed is not None):
        raise ParameterError(f"each parameter may be set once, {', '.join(twice) or 'seed'} is set twice")
    job = Job.make(project, notebook, preset, dict(overrides), 0 if seed is None else seed)
    folder = project.root / "runs" / job.notebook / job.key[:12] if out is None else named(out, "my-run")
    check_writable(folder, name=job.name, sources=project.root)
    check_same_run(job, folder)
    from evolvingdp.book.executed import read_alone

    with scratch(project.cache, "running-"):  # what stands in its way is said before anything else
        pass
    click.echo(f"{job.notebook}: {'already computed' if job.cached else 'running'}")
    seconds = running.run(job)
    values = job.store / job.name / "values.json"
    running.export(job, folder, finish=lambda executed: read_alone(executed, job.notebook, values))
    click.echo(f"{job.notebook}: done in {seconds:.1f} s, see {folder / job.name}.ipynb and {folder / job.name}/")
    if released := json.loads((folder / job.name / "values.json").read_text()).get("released"):
        click.echo(released)


@main.command()
@click.argument("notebook")
@in_checkout()
def params(notebook: str) -> None:
    """Show the parameters of NOTEBOOK: name, symbol, type, range, unit, default, preset paper, meaning.

    Example: evolvingdp params heavy_hitters/frequency_oracle
    """
    from tabulate import tabulate

    from evolvingdp.book.checkout import Project, params_of

    rows, widths = params_of(Project().notebook(notebook)).describe(), [None] * 5 + [16, 16, 44]
    click.echo(tabulate(rows, headers="keys", tablefmt="simple", maxcolwidths=widths, disable_numparse=True))


@main.command()
@click.option("--preset", default="paper", show_default=True, help="quick, paper, or a YAML file of your own.")
@click.option("--workers", type=click.IntRange(min=1), help="Notebooks at a time  [default: one per core]")
@alone()
def book(preset: str, workers: int | None) -> None:
    """Execute what has changed and render the book to _build/html.

    With a file such as mine.yaml, run only what it names: _build/yours/mine/html shows its results beside ours; see
    Reproduce in the book.

    Example: evolvingdp book --preset quick
    """
    from evolvingdp.book.checkout import Project
    from evolvingdp.book.rendering import build, comparing

    if comparing.is_file(preset):
        page = comparing.build(Project(), Path(preset), click.echo, workers=workers)
        click.echo(f"yours beside ours: {page}")
    else:
        build.build(Project(), preset, click.echo, workers=workers)


@main.command()
@click.argument("notebook")
@click.option(
    "--grid", multiple=True, required=True, metavar="NAME=VALUE,...", help="Values to run with; lists are separated by ';'."
)
@click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Seeds of each point of the grid.")
@click.option(
    "-p", "overrides", type=(str, str), multiple=True, metavar="NAME VALUE", help="Set a parameter; may be repeated."
)
@click.option("--preset", default="quick", show_default=True, help="quick (seconds) or paper (the paper's scale).")
@click.option("--seed", default="0", show_default=True, help="The first seed, an integer >= 0; the others follow it.")
@click.option(
    "--scheduler", metavar="ADDRESS", help="Run on an existing dask cluster: tcp://HOST:PORT or its scheduler file (.json)."
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes of this machine  [default: one per core]")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="For a cluster to answer, for its first worker, and for the next one when all are gone  [default: 30].",
)
@click.option("--out", metavar="FOLDER", required=True, help="Folder for the results.")
@in_checkout()
def sweep(out: str, scheduler: str | None, workers: int | None, **what: Any) -> None:
    """Run the experiment of NOTEBOOK over a grid of parameters and seeds; write sweep.parquet and a summary.

    The same command continues a sweep that was stopped, and a larger grid keeps what is finished.

    Example: evolvingdp sweep evolving/thresh --grid epsilon=1,2 --grid horizon=64,256 --repeat 5 --out my-sweep
    """
    from evolvingdp.book import sweeping
    from evolvingdp.book.checkout import Project
    from evolvingdp.book.running import named

    folder = named(out, "my-sweep")
    sweeping.run(
        Project(), folder, scheduler=scheduler, workers=workers, say=lambda line: click.echo(line, err=True), **what
    )
    click.echo(f"done, see {folder / 'summary.svg'} and {folder / 'sweep.parquet'}")


@main.command()
@alone()
def pdf() -> None:
    """Print the rendered book to _build/evolving-privacy.pdf; needs chromium (CHROMIUM names it where PATH does not).

    Example: evolvingdp pdf
    """
    from evolvingdp.book.checkout import Project
    from evolvingdp.book.rendering import pdf

    click.echo(f"printed: {pdf.build(Project())}")


@main.command("zip")
@alone()
def archive() -> None:
    """Pack the rendered book into _build/evolving-privacy.zip, which reads from disk without a server.

    Example: evolvingdp zip
    """
    from evolvingdp.book.checkout import Project
    from evolvingdp.book.rendering import offline

    click.echo(f"packed: {offline.archive(Project())}")


@main.command()
@click.argument("mechanism")
@click.option("--inputs", help="Neighbours as Python literals, such as '0, 1', or one set of data: '[(3, 1, 4)]'.")
@click.option(
    "--domain", help="Instead of --inputs: inputs among which neighbours are searched, such as '(0, 0), (0, 1), (1, 1)'."
)
@click.option("--epsilon", type=click.FloatRange(min=0), help="The promise: exit with 1 where it is refuted.")
@click.option("--delta", default=0.0, show_default=True, help="The promise's delta.")
@click.option("--statistic", metavar="MODULE:FUNCTION", help="What events are made of, a function of an output.")
@click.option("--floating-point", is_flag=True, help="Also: can the digits tell the inputs apart? A verdict of its own.")
@click.option("--runs", default=20_000, show_default=True, help="Runs an input: as many again decide.")
@click.option("--confidence", default=0.95, show_default=True, help="Of each bound.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the runs.")
@click.option(
    "--json", "report", type=click.Path(path_type=Path, allow_dash=True), help="A report for machines; - is stdout."
)
@one_line()
def audit(**options: Any) -> None:
    """Bound epsilon of MECHANISM from below: module:function or file.py:function, a function (input, rng) -> output, or
    one of the input alone that has its own randomness.

    To raise counts as an output. A bound below the promise proves nothing. Exit codes: 0 not refuted, 1 refuted, 2 wrong
    use, 3 the mechanism fails in every run, or the audit does.

    Example: evolvingdp audit my_mechanism.py:release --inputs "0, 1" --epsilon 1
    """
    from evolvingdp.audit.empirical import command

    try:
        lines, code = command.run(**options)
    except ValueError as error:
        raise Refused(" ".join(str(error).split())) from None
    for line in lines:
        click.echo(line, err=code == FAILED and line is lines[-1])
    if code:
        raise click.exceptions.Exit(code)


@main.command()
@click.argument("tables", required=False, type=click.Choice(["brown", "addresses"]))
@click.option("--out", metavar="FOLDER", help="Folder for the tables  [default: data/]")
@in_checkout()
def data(tables: str | None, out: str | None) -> None:
    """Check the shipped tables against the checksums in data/README.md; or, with a name, count a corpus again.

    brown: the Brown corpus; addresses: presidents' addresses, by year. NLTK finds the corpora (NLTK_DATA), or downloads
    them where there is a network.

    Example: NLTK_DATA=~/nltk_data evolvingdp data brown
    """
    from evolvingdp.book import data as datasets
    from evolvingdp.book.checkout import Project
    from evolvingdp.book.running import check_writable, named
    from evolvingdp.core.checks import ParameterError

    folder = Project().root / "data"
    if tables is None:
        if out is not None:
            raise ParameterError(f"out is for tables that are counted again: evolvingdp data brown --out {out}; got none")
        for name in datasets.check(folder):
            click.echo(f"{name}: as listed in data/README.md")
        return
    into = folder if out is None else named(out, "my-tables")
    check_writable(into)
    for path in datasets.REBUILD[tables](into):
        click.echo(f"{path.name}: sha256 {datasets.checksum(path)}")


@main.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def plan(words: tuple[str, ...]) -> None:
    """Which method for my problem: the methods that can serve, with the error to expect.

    Example: evolvingdp plan mean --users 500_000 --periods 365 --epsilon 1 --trust nobody
    """
    from evolvingdp.book.planned import plan  # asks all chapters, for which no other command waits

    plan.main(list(words), prog_name="evolvingdp plan", help_option_names=["-h", "--help"], standalone_mode=False)
