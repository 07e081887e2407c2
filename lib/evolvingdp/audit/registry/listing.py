"""All mechanisms of the registry, and which public functions that take a generator it does not know."""

from __future__ import annotations

import fnmatch
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any

from evolvingdp.audit.registry import continual_mean, core, evolving, heavy_hitters, sparse_vector
from evolvingdp.audit.registry.entry import Mechanism

CHAPTERS = (core, heavy_hitters, evolving, continual_mean, sparse_vector)
ROOMS = ("core", "heavy_hitters", "evolving", "continual_mean", "sparse_vector", "streams", "planning")
_SIMULATED = "draws what all users' reports add up to, from a population: no user runs it; its law is that of the protocol"
EXEMPT = {
    "*.simulate": _SIMULATED,
    "*.simulate_*": _SIMULATED,
    "*_simulation.*": _SIMULATED,
    "*.draw_one": _SIMULATED,
    "*.choosing.follow": _SIMULATED,
    "*.draw_sums": _SIMULATED,
    "*.Projective.draw_reports": _SIMULATED,
    "*.sum_given_counts": _SIMULATED,
    "*.holders": _SIMULATED,
    "*.Lots.split": _SIMULATED,
    "*.CountLaw.*": _SIMULATED,
    "*.sparse_vector.streams.*": _SIMULATED,
    "*.shifting.solve": "`ThresholdMonitorEvolving.step_elements`, step after step",
    "*.run": "a protocol's own `step`, on a stream",
    "*.draw_hashes": "public randomness",
    "*.ProjectiveOracle.draw": "public randomness",
    "*.hashtogram": "public randomness",
    "*.core.hashing.*": "public randomness",
    "*.assign": "public randomness",
    "*.core.noise.Noise.draw": "a protocol of types",
    "*.core.noise.Exponential.draw": "never negative, it hides nothing by itself: `AboveThreshold` states what it is for",
    "*.core.sampling.*": "exact samplers of simulations",
    "*.evolving.streams.sampled": "which of a user's words it reports: the report is randomized after it",
    "*.baselines.within_windows": _SIMULATED,
    "*.core.smoothing.*": "reads what was released",
    "*.Once.smooth": "reads what was released",
    "*.core.exchange.*": "bytes of the report of a round, by `Report.sent`, which `collect` is made of",
    "*.streams.*": "data, and no mechanism",
    "*.planning.*": "data, and no mechanism",
    "*.BitStream.counts": "data, and no mechanism",
}  # what takes a generator and has no entry, and why; patterns of names
STATED = {
    "evolvingdp.continual_mean.choosing": "chooses settings of `UserMean`",
    "evolvingdp.sparse_vector.calibration": "chooses the noise of `ThresholdMonitorEvolving`",
    "evolvingdp.sparse_vector.shifting": "chooses settings of `ThresholdMonitorEvolving`",
    "evolvingdp.core.exchange": "sends the reports of rounds, whose entries are those of `Report`",
}  # modules that state a guarantee which entries of others are about


def mechanisms() -> tuple[Mechanism, ...]:
    return tuple(one for chapter in CHAPTERS for one in chapter.mechanisms())


def _modules() -> Iterator[Any]:
    for room in ROOMS:
        package = importlib.import_module(f"evolvingdp.{room}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not info.ispkg:
                yield importlib.import_module(info.name)


def _functions(module: Any) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            for method, held in vars(value).items():
                function = getattr(held, "__func__", held)
                if inspect.isfunction(function) and not method.startswith("_"):
                    yield f"{name}.{method}", function


def drawing() -> dict[str, Any]:
    """Public functions and methods of the library that take a generator, by their full names."""
    found = {}
    for module in _modules():
        for name, function in _functions(module):
            parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
            if any("Generator" in str(one.annotation) for one in parameters):
                found[f"{module.__name__}.{name}"] = function
    return found


def unknown(known: Iterable[Mechanism] | None = None) -> list[str]:
    """What takes a generator and is neither covered by `known`, the registry if nothing is given, nor exempt; and modules
    that state a guarantee of which nothing is covered."""
    covered = [one for mechanism in (mechanisms() if known is None else known) for one in mechanism.covers]
    names = {f"{one.__module__}.{one.__qualname__}" for one in covered}
    draw = {name for name in drawing() if not any(fnmatch.fnmatchcase(name, pattern) for pattern in EXEMPT)}
    state = {module.__name__ for module in _modules() if "**Guarantee" in (module.__doc__ or "")}
    return sorted((draw - names) | (state - {one.__module__ for one in covered} - set(STATED)))
