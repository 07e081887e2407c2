"""Streams that a question is about, drawn at random: a share that jumps, and users with bits or words of that share."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from evolvingdp.evolving.streams import BitStream, WordStream, steps
from evolvingdp.planning.question import Question


def moving(question: Question, rng: Generator) -> NDArray[np.float64]:
    """The share in every period, (periods,): it starts at the level and jumps up or down at random places, within [0, 1]."""
    places = np.sort(rng.choice(question.periods - 1, size=question.moves, replace=False)) + 2 if question.moves else ()
    level, changes = question.level, {}
    for place in places:
        by = question.jump if rng.integers(2) else -question.jump
        by = by if 0 <= level + by <= 1 else -by
        level = min(1.0, max(0.0, level + by))
        changes[int(place)] = level
    return steps(question.periods, question.level, changes)


def bits(question: Question, rng: Generator) -> BitStream:
    """Users whose readings are drawn afresh from `moving`."""
    return BitStream.make([question.users], moving(question, rng), question.readings)


def words(question: Question, means: NDArray[np.float64]) -> WordStream:
    """The same users with a list: its first word has the share of `means`, the others share the rest evenly."""
    values, which = np.unique(means, return_inverse=True)
    laws = np.column_stack([values, np.repeat((1 - values)[:, None] / (question.items - 1), question.items - 1, axis=1)])
    return WordStream.make([question.users], laws, [which], question.readings)
