"""Named random streams from one master seed, so that a new curve never moves an old one.

Public randomness (hashes, partitions) and private noise must come from streams of different names: a seed that is
published with the hashes would otherwise publish the noise.  Seeded generators are for study, not for deployment.
"""

from __future__ import annotations

import hashlib
import json
import operator

import numpy as np


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """A generator that depends on the master `seed` and on `name` (str or int parts) and on nothing else."""
    parts = [part if isinstance(part, str) else operator.index(part) for part in name]  # a float is a TypeError
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()  # "a/b" is not "a", "b", and 1 is not "1"
    return np.random.default_rng([seed, int.from_bytes(digest[:16], "big")])
