"""The registry's entries for local protocols that go on over time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.registry.entry import FINITE, REPORTS, Door, Mechanism, Steps, Trial, settled
from evolvingdp.audit.registry.sparse_vector import until_refused
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_protocol, thresh_protocol
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crew_thresh, crew_words, memoized, once, once_words, signs, tree
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.rivals.memoized import Memoized
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.once_words import OnceWords
from evolvingdp.evolving.rivals.tree import ChangeTree
from evolvingdp.evolving.thresh import Thresh

Rng = np.random.Generator
_USER = ("all that a user ever sends", "any two sequences of its data")
_PUBLIC = "public: as many as take part, each with a budget of its own"
_LENGTH = "public: of a user's data in an epoch"
_PLANNED = "planned for; caps are what is paid for"
_STATED = {
    "epsilon": "what the budgets of votes and estimates may add up to, which is checked",
    "beta": "of stated errors",
    "reach": "set by what owns the voting",
    "unit": "of the thresholds of votes, whose number is capped",
    "epoch_length": _LENGTH,
}


def mechanisms() -> Iterator[Mechanism]:
    yield Mechanism(
        "thresh",
        "evolving",
        (Thresh, Thresh.draw_reports, thresh_protocol.step),
        *_USER,
        REPORTS,
        _thresh_trial,
        _thresh_doors,
        (Thresh,),
        {"horizon": _thresh_more},
        {
            "n_users": _PUBLIC,
            "epoch_length": _LENGTH,
            "reach": "of signed sums",
            "vote_cap": "whoever has used it sends noise",
            "estimate_cap": "after it updates hold nothing",
        },
        (
            Steps(
                _thresh,
                lambda made, rng: thresh_protocol.start(made),
                lambda made, state, rng: thresh_protocol.step(made, state, _turns(made, state), rng),
                lambda made: made.horizon,
            ),
        ),
        _STATED,
    )
    yield Mechanism(
        "heavy_thresh",
        "evolving",
        (HeavyThresh, HeavyThresh.draw_plus, heavy_protocol.step),
        *_USER,
        REPORTS,
        _heavy_trial,
        _heavy_doors,
        (HeavyThresh,),
        {},
        {"n_words": _LENGTH},
        (
            Steps(
                lambda rng: HeavyThresh(_thresh(rng), 3),
                lambda made, rng: heavy_protocol.start(made),
                lambda made, state, rng: heavy_protocol.step(
                    made, state, _word_turns(made.voting, made.n_words, state), stream(0, "public"), rng
                ),
                lambda made: made.voting.horizon,
            ),
        ),
        _STATED,
    )
    yield Mechanism(
        "crew_thresh",
        "evolving",
        (CrewThresh, crew_thresh.start, crew_thresh.step),
        *_USER,
        REPORTS,
        _crew_trial,
        _crew_doors,
        (CrewThresh,),
        {},
        {
            "n_users": _PUBLIC,
            "cell": _PUBLIC,
            "spare_cell": _PUBLIC,
            "changes": _PLANNED,
            "reports": "of a reporter, which share epsilon",
        },
        (
            Steps(
                _crew,
                crew_thresh.start,
                lambda made, state, rng: crew_thresh.step(
                    made, state, np.resize(_turns(made.voting, state), made.n_users), rng
                ),
                lambda made: made.voting.horizon,
            ),
        ),
        _STATED,
    )
    yield Mechanism(
        "crew_words",
        "evolving",
        (CrewWords, crew_words.start, crew_words.step),
        *_USER,
        REPORTS,
        _words_trial,
        _words_doors,
        (CrewWords,),
        {},
        {"n_users": _PUBLIC, "cell": _PUBLIC, "spare_cell": _PUBLIC, "changes": _PLANNED},
        (
            Steps(
                _crew_words,
                crew_words.start,
                lambda made, state, rng: crew_words.step(
                    made,
                    state,
                    np.resize(
                        _word_turns(made.voting.voting, made.voting.n_words, state), (made.n_users, made.voting.n_words)
                    ),
                    stream(0, "public"),
                    rng,
                ),
                lambda made: made.voting.voting.horizon,
            ),
        ),
        _STATED,
    )
    yield Mechanism(
        "once",
        "evolving",
        (Once, once.start, once.step, once.Lots, once.Lots.deal),
        *_USER,
        REPORTS,
        _once_trial,
        _once_doors,
        (Once,),
        {"horizon": _once_more},
        {"n_users": _PUBLIC, "epoch_length": _LENGTH, "every": "of epochs without reports"},
        (
            Steps(
                lambda rng: Once(4, int(rng.integers(1, 5)), 2, float(rng.uniform(0.3, 2.0))),
                once.start,
                lambda made, state, rng: once.step(made, state, np.zeros(4, dtype=np.int64), rng),
                lambda made: made.horizon,
            ),
        ),
    )
    yield Mechanism(
        "once_words",
        "evolving",
        (OnceWords, once_words.start, once_words.step, OnceWords.collect),
        *_USER,
        REPORTS,
        _once_words_trial,
        _once_words_doors,
        (OnceWords,),
        {"horizon": _once_words_more},
        {"n_users": _PUBLIC, "n_words": _LENGTH, "every": "of epochs without reports"},
        (
            Steps(
                lambda rng: OnceWords(4, int(rng.integers(1, 5)), 3, float(rng.uniform(0.3, 2.0))),
                once_words.start,
                lambda made, state, rng: once_words.step(made, state, np.tile([1, 0, 0], (4, 1)), stream(0, "public"), rng),
                lambda made: made.horizon,
            ),
        ),
    )
    yield Mechanism(
        "memoized",
        "evolving",
        (Memoized, memoized.collect),
        *_USER,
        FINITE,
        _memoized_trial,
        _memoized_doors,
        (Memoized,),
        {"horizon": partial(_longer, memoized.collect, Memoized(2, 3, 1.0, 1.0))},
        {"n_users": _PUBLIC},
    )
    yield Mechanism(
        "change_tree",
        "evolving",
        (ChangeTree, tree.collect, signs.Signs, signs.Signs.flips),
        *_USER,
        FINITE,
        _tree_trial,
        _tree_doors,
        (ChangeTree,),
        {"horizon": partial(_longer, tree.collect, ChangeTree(2, 3, 1.0, 1))},
        {"n_users": _PUBLIC, "changes": "later ones are reported as if there were none"},
    )


def _thresh(rng: Rng) -> Thresh:
    def draw() -> Thresh:
        votes, estimates = int(rng.integers(0, 3)), int(rng.integers(1, 4))
        vote, estimate = float(rng.uniform(0.05, 1.0)), float(rng.uniform(0.05, 1.0))
        return Thresh(
            int(rng.integers(1, 6)),
            int(rng.integers(1, 7)),
            int(rng.integers(1, 4)),
            2 * votes * vote + estimates * estimate,
            vote,
            estimate,
            votes,
            estimates,
            unit=float(rng.choice([0.01, 0.05, 0.1])),
            start=str(rng.choice(["forced", "sentinel"])),
            exhaustion=str(rng.choice(["freeze", "printed"])),
            margin=float(rng.choice([0.05, 0.1, 0.3])),
        )

    made: Thresh = settled(draw)
    return made


def _counts(rng: Rng, users: int, steps: int, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """User 0's are lowest and highest, in turns, or any two sequences; the others' are any."""
    others = rng.integers(0, most + 1, (steps, users))
    one, other = others.copy(), others.copy()
    kind = rng.integers(0, 3)
    if kind == 0:
        one[:, 0], other[:, 0] = 0, most
    elif kind == 1:
        one[:, 0] = most * (np.arange(steps) % 2)
        other[:, 0] = most - one[:, 0]
    else:
        one[:, 0], other[:, 0] = rng.integers(0, most + 1, (2, steps))
    return one, other


def _thresh_trial(rng: Rng) -> Trial:
    made = _thresh(rng)
    pair = _counts(rng, made.n_users, 2 * made.horizon, made.epoch_length)

    def run(counts: Any, noise: Any) -> Any:
        return until_refused(
            lambda state, held: thresh_protocol.step(made, state, held, noise),
            thresh_protocol.start(made),
            counts,
            len(counts),
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, made.epsilon)


def _thresh_doors(rng: Rng) -> list[Door]:
    made = Thresh(4, 2, 3, 2.0, 0.2, 0.3, 1, 1, unit=0.01, beta=0.05)

    def later(noise: Any, counts: Any) -> Any:
        state, _ = thresh_protocol.step(made, thresh_protocol.start(made), np.array([0, 1, 2, 3]), stream(0, "first"))
        return thresh_protocol.step(made, state, counts, noise)

    return [Door("step", later, lambda drawn: {"counts": drawn.integers(0, 4, 4)})]


def _thresh_more(rng: Any) -> Any:
    made = Thresh(3, 2, 2, 1.0, 0.1, 0.2, 1, 1, unit=0.01, beta=0.05)
    state = thresh_protocol.start(made)
    for _ in range(2):
        state, _ = thresh_protocol.step(made, state, np.zeros(3, dtype=np.int64), rng)
    return [lambda: thresh_protocol.step(made, state, np.zeros(3, dtype=np.int64), rng)]


def _turns(voting: Thresh, state: Any) -> NDArray[np.int64]:
    """Users who change their minds in every epoch."""
    return np.full(voting.n_users, voting.epoch_length * (state.release.epoch % 2))


def _word_turns(voting: Thresh, words: int, state: Any) -> NDArray[np.int64]:
    held = np.zeros((voting.n_users, words), dtype=np.int64)
    held[:, state.release.epoch % 2] = voting.epoch_length
    return held


def _word_counts(rng: Rng, users: int, steps: int, length: int, words: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Histograms (steps, users, words) of `length` words each; user 0's are any two sequences, of one word or of several."""

    def drawn(shape: tuple[int, ...]) -> NDArray[np.int64]:
        return np.asarray(rng.multinomial(length, np.full(words, 1 / words), shape))

    one = drawn((steps, users))
    other = one.copy()
    if rng.random() < 0.5:
        one[:, 0], other[:, 0] = 0, 0
        one[np.arange(steps), 0, np.arange(steps) % 2] = length
        other[np.arange(steps), 0, 2 - np.arange(steps) % 2] = length
    else:
        other[:, 0] = drawn((steps,))
    return one, other


def _heavy_trial(rng: Rng) -> Trial:
    made = HeavyThresh(_thresh(rng), 3)
    voting = made.voting
    pair = _word_counts(rng, voting.n_users, 2 * voting.horizon, voting.epoch_length, 3)

    def run(counts: Any, noise: Any) -> Any:
        public = stream(0, "public")
        return until_refused(
            lambda state, held: heavy_protocol.step(made, state, held, public, noise),
            heavy_protocol.start(made),
            counts,
            len(counts),
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, voting.epsilon)


def _heavy_doors(rng: Rng) -> list[Door]:
    made = HeavyThresh(Thresh(4, 2, 2, 2.0, 0.2, 0.3, 1, 1, unit=0.01, beta=0.05), 3)

    def later(noise: Any, counts: Any) -> Any:
        first = np.array([[2, 0, 0], [0, 2, 0], [1, 1, 0], [0, 0, 2]])
        state, _ = heavy_protocol.step(made, heavy_protocol.start(made), first, stream(0, "public"), stream(0, "first"))
        return heavy_protocol.step(made, state, counts, stream(1, "public"), noise)

    return [Door("step", later, lambda drawn: {"counts": drawn.multinomial(2, [1 / 3] * 3, 4)})]


def _crew(rng: Rng) -> CrewThresh:
    def draw() -> CrewThresh:
        epsilon, caps, crews = float(rng.uniform(0.3, 3.0)), int(rng.integers(1, 3)), int(rng.integers(1, 4))
        voting = Thresh(
            int(rng.integers(1, 4)),
            int(rng.integers(1, 6)),
            2,
            epsilon,
            epsilon / (2 * caps),
            0.0,
            caps,
            crews,
            unit=0.02,
            margin=0.1,
            exhaustion=str(rng.choice(["freeze", "printed"])),
        )
        changes, cells = int(rng.integers(0, crews)), rng.integers(1, 4, 2)
        users = crews * voting.n_users + (changes + 1) * int(cells[0]) + (crews - changes - 1) * int(cells[1])
        return CrewThresh(users, epsilon, voting, changes, int(cells[0]), int(cells[1]), int(rng.integers(1, changes + 2)))

    made: CrewThresh = settled(draw)
    return made


def _crew_trial(rng: Rng) -> Trial:
    made = _crew(rng)
    pair = _counts(rng, made.n_users, 2 * made.voting.horizon, made.voting.epoch_length)

    def run(counts: Any, noise: Any) -> Any:
        return until_refused(
            lambda state, held: crew_thresh.step(made, state, held, noise),
            crew_thresh.start(made, noise),
            counts,
            len(counts),
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, made.epsilon)


def _crew_doors(rng: Rng) -> list[Door]:
    voting = Thresh(3, 4, 2, 1.0, 0.5, 0.0, 1, 2, unit=0.01, margin=0.1)
    made = CrewThresh(9, 1.0, voting, changes=1, cell=2, spare_cell=1) if sum([3, 3, 2, 2]) == 9 else _crew(rng)

    def later(noise: Any, counts: Any) -> Any:
        state = crew_thresh.start(made, stream(0, "lots"))
        state, _ = crew_thresh.step(made, state, np.zeros(made.n_users, dtype=np.int64), stream(0, "first"))
        return crew_thresh.step(made, state, counts, noise)

    if made.voting.horizon < 2:
        return []
    return [Door("step", later, lambda drawn: {"counts": drawn.integers(0, 3, made.n_users)})]


def _crew_words(rng: Rng) -> CrewWords:
    def draw() -> CrewWords:
        epsilon, caps, crews = float(rng.uniform(0.3, 3.0)), int(rng.integers(1, 3)), int(rng.integers(1, 4))
        voting = Thresh(
            int(rng.integers(1, 4)),
            int(rng.integers(1, 6)),
            2,
            epsilon,
            epsilon / (2 * caps),
            0.0,
            caps,
            crews,
            unit=0.02,
            margin=0.1,
        )
        changes, cells = int(rng.integers(0, crews)), rng.integers(1, 4, 2)
        users = crews * voting.n_users + (changes + 1) * int(cells[0]) + (crews - changes - 1) * int(cells[1])
        return CrewWords(users, epsilon, HeavyThresh(voting, 3), changes, int(cells[0]), int(cells[1]))

    made: CrewWords = settled(draw)
    return made


def _words_trial(rng: Rng) -> Trial:
    made = _crew_words(rng)
    voting = made.voting.voting
    pair = _word_counts(rng, made.n_users, 2 * voting.horizon, voting.epoch_length, 3)

    def run(counts: Any, noise: Any) -> Any:
        public = stream(0, "public")
        return until_refused(
            lambda state, held: crew_words.step(made, state, held, public, noise),
            crew_words.start(made, noise),
            counts,
            len(counts),
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, made.epsilon)


def _words_doors(rng: Rng) -> list[Door]:
    voting = Thresh(3, 4, 2, 1.0, 0.5, 0.0, 1, 2, unit=0.01, margin=0.1)
    made = CrewWords(10, 1.0, HeavyThresh(voting, 3), changes=1, cell=2, spare_cell=1)

    def later(noise: Any, counts: Any) -> Any:
        state = crew_words.start(made, stream(0, "lots"))
        first = np.tile([2, 0, 0], (made.n_users, 1))
        state, _ = crew_words.step(made, state, first, stream(0, "public"), stream(0, "first"))
        return crew_words.step(made, state, counts, stream(1, "public"), noise)

    return [Door("step", later, lambda drawn: {"counts": drawn.multinomial(2, [1 / 3] * 3, made.n_users)})]


def _once_trial(rng: Rng) -> Trial:
    horizon = int(rng.integers(1, 6))
    made = Once(
        int(rng.integers(1, 5)),
        horizon,
        int(rng.integers(1, 4)),
        float(rng.uniform(0.1, 3.0)),
        int(rng.integers(1, horizon + 1)),
    )
    pair = _counts(rng, made.n_users, 2 * horizon, made.epoch_length)

    def run(counts: Any, noise: Any) -> Any:
        return until_refused(
            lambda state, held: once.step(made, state, held, noise), once.start(made, noise), counts, len(counts)
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, made.epsilon)


def _once_doors(rng: Rng) -> list[Door]:
    made = Once(4, 1, 3, 1.0)
    return [
        Door(
            "step",
            lambda noise, counts: once.step(made, once.start(made, stream(0, "lots")), counts, noise),
            lambda drawn: {"counts": drawn.integers(0, 4, 4)},
        )
    ]


def _once_more(rng: Any) -> Any:
    made = Once(3, 2, 2, 1.0)
    state = once.start(made, rng)
    for _ in range(2):
        state, _ = once.step(made, state, np.zeros(3, dtype=np.int64), rng)
    return [lambda: once.step(made, state, np.zeros(3, dtype=np.int64), rng)]


def _once_words_trial(rng: Rng) -> Trial:
    horizon = int(rng.integers(1, 6))
    made = OnceWords(
        int(rng.integers(1, 5)),
        horizon,
        3,
        float(rng.uniform(0.1, 3.0)),
        str(rng.choice(once_words.ORACLES)),
        int(rng.integers(1, horizon + 1)),
    )
    pair = _word_counts(rng, made.n_users, 2 * horizon, int(rng.integers(1, 4)), 3)

    def run(counts: Any, noise: Any) -> Any:
        public = stream(0, "public")
        return until_refused(
            lambda state, held: once_words.step(made, state, held, public, noise),
            once_words.start(made, noise),
            counts,
            len(counts),
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, made.epsilon)


def _once_words_doors(rng: Rng) -> list[Door]:
    made = OnceWords(4, 1, 3, 1.0)
    return [
        Door(
            "step",
            lambda noise, counts: once_words.step(
                made, once_words.start(made, stream(0, "lots")), counts, stream(0, "public"), noise
            ),
            lambda drawn: {"counts": drawn.multinomial(2, [1 / 3] * 3, 4)},
        )
    ]


def _once_words_more(rng: Any) -> Any:
    made = OnceWords(3, 2, 2, 1.0)
    state = once_words.start(made, rng)
    for _ in range(2):
        state, _ = once_words.step(made, state, np.tile([1, 0], (3, 1)), stream(0, "public"), rng)
    return [lambda: once_words.step(made, state, np.tile([1, 0], (3, 1)), stream(0, "public"), rng)]


def _longer(collect: Any, made: Any, rng: Any) -> Any:
    return [lambda: collect(made, np.zeros((2, made.horizon + 1), dtype=np.uint8), rng)]


def _sequences(rng: Rng, length: int) -> tuple[NDArray[np.uint8], ...]:
    every = np.array(list(itertools.product((0, 1), repeat=length)), dtype=np.uint8)
    return tuple(every[rng.permutation(len(every))[:4]])


def _memoized_trial(rng: Rng) -> Trial:
    horizon = int(rng.integers(1, 4))
    made = Memoized(1, horizon, float(rng.uniform(0.2, 3.0)), float(rng.uniform(0.2, 2.0)), bool(rng.random() < 0.3))
    promise = made.transcript_loss()
    return Trial((made,), lambda bits, noise: memoized.collect(made, bits[None], noise), _sequences(rng, horizon), promise)


def _memoized_doors(rng: Rng) -> list[Door]:
    made = Memoized(4, 3, 1.0, 1.0)
    return [
        Door(
            "collect",
            lambda noise, bits: memoized.collect(made, bits, noise),
            _bits,
            loose={"bits": "some of the users, whose counts add up"},
        )
    ]


def _bits(drawn: Rng) -> dict[str, Any]:
    return {"bits": drawn.integers(0, 2, (4, 3), dtype=np.uint8)}


def _tree_trial(rng: Rng) -> Trial:
    horizon = int(rng.integers(1, 5))
    made = ChangeTree(
        1,
        horizon,
        float(rng.uniform(0.2, 3.0)),
        int(rng.integers(1, 4)),
        str(rng.choice(tree.RANDOMIZERS)),
        bool(rng.random() < 0.5),
    )
    return Trial((made,), lambda bits, noise: tree.collect(made, bits[None], noise), _sequences(rng, horizon), made.epsilon)


def _tree_doors(rng: Rng) -> list[Door]:
    made = ChangeTree(4, 3, 1.0, 1)
    return [
        Door(
            "collect",
            lambda noise, bits: tree.collect(made, bits, noise),
            _bits,
            loose={"bits": "some of the users, whose counts add up"},
        )
    ]
