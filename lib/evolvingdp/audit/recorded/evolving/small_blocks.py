"""Scenes of evolving data: users, rows and epochs that fill more than one block: here a block holds a few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.evolving.thresh import apart, word_stream
from evolvingdp.audit.recorded.scene import Scene, in_blocks
from evolvingdp.evolving import heavy_projection, heavy_protocol, heavy_simulation, streams
from evolvingdp.evolving.heavy_projection import HashSigns
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crew_words, detection, memoized, threshold_stream, tree
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh

_BLOCKS = (
    (memoized, {"_ENTRIES": 40}),
    (threshold_stream, {"_ENTRIES": 40}),
    (heavy_projection, {"_AT_ONCE": 8}),
    (detection, {"_AT_ONCE": 4}),
)


def blocks_of_users(rng: np.random.Generator) -> Iterator[Any]:
    means = streams.steps(7, 0.1, {6: 0.9, 3: 0.5})
    thresholds, bits = ThresholdStream.make(50, means), BitStream.make([30, 20], [means, 1 - means], 1)
    with in_blocks(*_BLOCKS):
        for made in (memoized.Memoized.rappor(50, 7, 3.0, 0.4), memoized.Memoized.loloha(50, 7, 3.0, 0.4)):
            yield [memoized.run(made, stream, **apart(rng, "bits", "private")) for stream in (thresholds, bits)]
        yield tree.run(tree.ChangeTree(50, 7, 3.0, 2), thresholds, **apart(rng, "bits", "private"))
        phi, values = HashSigns(3, 9, 5), rng.integers(0, 9, (7, 3))
        for one in (phi, heavy_projection.Hadamard(3)):
            yield one.signed(values), one.largest(values), one.by_word(np.arange(one.width))
        voting = Thresh(26, 8, 4, 100.0, 1.0, 3.0, 3, 3, unit=0.05, reach=2)
        heavy = HeavyThresh(voting, 3, phi)
        yield list(heavy_protocol.run(heavy, word_stream(), *rng.spawn(3)))
        yield heavy_simulation.simulate(heavy, word_stream(), rng).public
        relieved = HeavyThresh(Thresh(9, 8, 4, 3.0, 1.5, 0.0, 1, 2, unit=0.05, margin=0.05, reach=2), 3, phi)
        crews = CrewWords(26, 3.0, relieved, changes=1, cell=3, spare_cell=1)
        yield crew_words.run(crews, word_stream(), **apart(rng, "words", "public", "private"))
        yield crew_words.simulate(crews, word_stream(), rng).public
        level = np.repeat([0.0, 3.0, 2.0], [9, 14, 7]) + 0.3 * rng.normal(size=30)
        for online in (False, True):
            yield detection.detect(level, np.ones(30, dtype=int), 0.1, online=online)


def scenes() -> dict[str, Scene]:
    return {"evolving_blocks_of_users": blocks_of_users}
