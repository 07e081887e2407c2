"""Whether a simulation has the law of the protocol that it stands for, and what that law tells about a user."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson

from evolvingdp.audit.exact.draws import law_of
from evolvingdp.audit.exact.laws import Law, epsilon_at, rows
from evolvingdp.core import sampling
from evolvingdp.core.olh import OLH
from evolvingdp.heavy_hitters.listing import HeavyHitters

Run = Callable[[Any, Any], Any]  # of an input and a generator
Array = NDArray[np.float64]
_ALIKE = 1e-9


def same_law(protocol: Callable[[Any], Any], simulation: Callable[[Any], Any]) -> bool:
    """Whether both return the same law, handed a generator."""
    return alike(law_of(protocol), law_of(simulation))


def alike(*pair: Law) -> bool:
    """Whether two laws are the same, but for rounding."""
    return bool(np.abs(np.subtract(*rows(pair))).sum() <= _ALIKE)


def simulated_loss(
    protocol: Run, simulation: Run, inputs: Iterable[Any], others: Iterable[Any] = (), follow: Callable[[Any], Any] = law_of
) -> float:
    """The worst loss of `simulation` between any two of `inputs`; infinite where what it returns, by `follow`, has another
    law than what `protocol` returns, for any of these inputs or of `others`."""
    laws = []
    for one in (*inputs, *others):
        pair = [law_of(lambda rng, one=one: protocol(one, rng)), follow(lambda rng, one=one: simulation(one, rng))]  # type: ignore[misc]
        if not alike(*pair):
            return math.inf
        laws.append(pair[1])
    return epsilon_at(laws[: len(laws) - len(tuple(others))], 0.0)


_SIZES = ("_AT_ONCE", "_CHUNK", "_ENTRIES", "_SIGNS_AT_ONCE", "_SUMMED_AT_ONCE")


@contextmanager
def one_at_a_time(*modules: Any) -> Iterator[None]:
    """What these modules draw or add up for many users at a time they do for one."""
    with ExitStack() as stack:
        for module, name in itertools.product(modules, _SIZES):
            if hasattr(module, name):
                stack.enter_context(mock.patch.object(module, name, 1))
        yield


@contextmanager
def tables_once() -> Iterator[None]:
    """A list of the same words with the same estimates is made once: a table takes longer than a small search."""
    made: dict[Any, HeavyHitters] = {}
    real = HeavyHitters.of

    def of(words: list[str], estimates: Array, errors: Array, path: list[dict[str, Any]]) -> HeavyHitters:
        listed = *words, estimates.tobytes(), errors.tobytes()
        if listed not in made:
            made[listed] = real(words, estimates, errors, path)
        return made[listed]

    with mock.patch.object(HeavyHitters, "of", of):
        yield


class _Poisson:
    """`rng`, of whose Poisson numbers those above `most` are one; what is drawn `again` at once, as they were too many, is
    0, and must have the law that it had."""

    def __init__(self, rng: Any, most: int) -> None:
        self._rng, self._numbers, self.again = rng, np.arange(most + 1), False
        self._means: NDArray[np.float64] | None = None

    def __getattr__(self, name: str) -> Any:
        self._means = None
        return getattr(self._rng, name)

    def poisson(self, means: NDArray[np.float64]) -> NDArray[np.int64]:
        if self._means is not None:
            if not np.array_equal(self._means, means):
                raise AssertionError("what is drawn again must have the law that it had")
            self.again = True
            return np.zeros(means.shape, dtype=np.int64)
        self._means = means
        chances = poisson.pmf(self._numbers, means[..., None])
        chances = np.concatenate([chances, 1 - chances.sum(axis=-1, keepdims=True)], axis=-1)
        drawn: list[int] = []
        for each in chances.reshape(-1, chances.shape[-1]):  # what follows too many does not matter
            drawn.append(self._rng.choose(each) if sum(drawn) < len(self._numbers) else 0)
        return np.array(drawn, dtype=np.int64).reshape(means.shape)


def law_of_accepted(run: Callable[[Any], Any], most: int) -> dict[Any, float]:
    """The law of what `run` returns where it draws Poisson numbers again until they are at most `most` in all."""

    def once(rng: Any) -> Any:
        drawn = _Poisson(rng, most)
        returned = run(drawn)
        return None if drawn.again else returned

    law: dict[Any, float] = {output: mass for output, mass in law_of(once).items() if output is not None}
    return {output: mass / sum(law.values()) for output, mass in law.items()}


def collected_loss(protocol: Any, keys: NDArray[Any], words: int = 0, users: int = 2, **how: Any) -> float:
    """The same of `protocol.simulate` and `protocol.collect`, public randomness among what they draw: the first of `users`
    holds any of `keys`, the others the last. Of random words the code reads the bits of the mask `words`."""

    def held(place: int) -> NDArray[np.int64]:
        return np.array([place] + [len(keys) - 1] * (users - 1))

    def collected(place: int, rng: Any) -> Any:
        rng.words = words
        return protocol.collect(keys[held(place)], rng, rng)

    def simulated(place: int, rng: Any) -> Any:
        rng.words = words
        return protocol.simulate(keys, np.bincount(held(place), minlength=len(keys)), rng, **how)

    return simulated_loss(collected, simulated, range(len(keys)))


class RandomFunctions(OLH):
    """Local hashing whose seeds name each function of a few keys once: of `hash_values` = 2, and a mask `words` of as many
    bits as there are keys."""

    def _hash(self, seeds: Any, keys: Any) -> NDArray[np.uint16]:
        return np.asarray(seeds >> np.atleast_1d(keys) & np.uint64(1), dtype=np.uint16)


class _OneBit:
    """A generator whose random words have one bit, the `place`-th; its binomials keep half of the chances given."""

    def __init__(self, place: int) -> None:
        self._left = place

    def integers(self, low: int, high: int, size: int, dtype: Any) -> NDArray[np.uint64]:
        words = np.zeros(int(size), dtype=dtype)
        if 0 <= self._left < 64 * len(words):
            words[self._left // 64] = 1 << self._left % 64
        self._left -= 64 * len(words)
        return words

    def binomial(self, n: Any, p: float) -> Any:
        return n * (self._left == 0) * 2 * p  # as many as there are, told at one place


def fair_coins_each_read_a_bit(users: list[int]) -> bool:
    """Whether `fair_binomial` of so many users adds up a bit for each: of a generator's words one bit is 1, each in turn."""
    some = np.array(users)
    told = np.sum([sampling.fair_binomial(some, _OneBit(place)) for place in range(64 * 24)], axis=0)  # type: ignore[arg-type]
    return bool(told.tolist() == users)
