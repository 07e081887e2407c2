"""The registry's entries for local protocols that go on over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.registry.entry import REPORTS, Door, Mechanism, Steps, Trial, settled
from evolvingdp.audit.registry.sparse_vector import until_refused
from evolvingdp.core.reports import Hashed, Sign, Subset
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_protocol, thresh_protocol
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crews, once, reserve
from evolvingdp.evolving.rivals.crews import Crews
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.thresh import Thresh

Rng = np.random.Generator
_USER = ("all that a user ever sends", "any two sequences of its data")
_PUBLIC = "public: as many as take part, each with a budget of its own"
_LENGTH = "public: of a user's data in an epoch"
_REPORT = "public: a kind, whose epsilon is checked"
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
        "crews",
        "evolving",
        (Crews, crews.start, crews.step),
        *_USER,
        REPORTS,
        _crew_trial,
        _crew_doors,
        (Crews,),
        {},
        {"n_users": _PUBLIC, "cell": _PUBLIC, "spare_cell": _PUBLIC, "changes": _PLANNED},
        (
            Steps(
                _crew,
                crews.start,
                lambda made, state, rng: crews.step(made, state, _of_all(made), stream(0, "public"), rng),
                lambda made: made.horizon,
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
        {"n_users": _PUBLIC, "n_words": _LENGTH, "every": "of epochs without reports", "report": _REPORT},
        (
            Steps(
                _once,
                once.start,
                lambda made, state, rng: once.step(made, state, _any_words(made), stream(0, "public"), rng),
                lambda made: made.horizon,
            ),
        ),
    )
    yield Mechanism(
        "reserve",
        "evolving",
        (Reserve, reserve.start, reserve.step),
        *_USER,
        REPORTS,
        _reserve_trial,
        _reserve_doors,
        (Reserve,),
        {"horizon": _reserve_more},
        {
            "n_users": _PUBLIC,
            "n_words": _LENGTH,
            "changes": "crews that wait: a user is in one",
            "steady": _PUBLIC,
            "report": _REPORT,
        },
        (
            Steps(
                _reserve,
                reserve.start,
                lambda made, state, rng: reserve.step(made, state, _any_words(made), stream(0, "public"), rng),
                lambda made: made.horizon,
            ),
        ),
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
        other[np.arange(steps), 0, words - 1 - np.arange(steps) % 2] = length
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


def _crew(rng: Rng) -> Crews:
    def draw() -> Crews:
        epsilon, caps, count = float(rng.uniform(0.3, 3.0)), int(rng.integers(1, 3)), int(rng.integers(1, 4))
        voting = Thresh(
            int(rng.integers(1, 4)),
            int(rng.integers(1, 6)),
            2,
            epsilon,
            epsilon / (2 * caps),
            0.0,
            caps,
            count,
            unit=0.02,
            margin=0.1,
            exhaustion=str(rng.choice(["freeze", "printed"])),
        )
        changes, cells = int(rng.integers(0, count)), rng.integers(1, 4, 2)
        users = count * voting.n_users + (changes + 1) * int(cells[0]) + (count - changes - 1) * int(cells[1])
        kind = voting if rng.random() < 0.5 else HeavyThresh(voting, 3)
        return Crews(users, epsilon, kind, changes, int(cells[0]), int(cells[1]))

    made: Crews = settled(draw)
    return made


def _of_all(made: Crews) -> NDArray[np.int64]:
    """Words of all users, as many as an epoch has."""
    counts = np.zeros((made.n_users, made.n_words), dtype=np.int64)
    counts[np.arange(made.n_users), np.arange(made.n_users) % made.n_words] = made.votes.epoch_length
    return counts


def _crew_trial(rng: Rng) -> Trial:
    made = _crew(rng)
    pair = _word_counts(rng, made.n_users, 2 * made.horizon, made.votes.epoch_length, made.n_words)

    def run(counts: Any, noise: Any) -> Any:
        public = stream(0, "public")
        return until_refused(
            lambda state, held: crews.step(made, state, held, public, noise), crews.start(made, noise), counts, len(counts)
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, made.epsilon)


def _crew_doors(rng: Rng) -> list[Door]:
    voting = Thresh(3, 4, 2, 1.0, 0.5, 0.0, 1, 2, unit=0.01, margin=0.1)
    made = Crews(10, 1.0, HeavyThresh(voting, 3) if rng.random() < 0.5 else voting, changes=1, cell=2, spare_cell=1)

    def later(noise: Any, counts: Any) -> Any:
        state = crews.start(made, stream(0, "lots"))
        state, _ = crews.step(made, state, _of_all(made), stream(0, "public"), stream(0, "first"))
        return crews.step(made, state, counts, stream(1, "public"), noise)

    words = made.n_words
    return [Door("step", later, lambda drawn: {"counts": drawn.multinomial(2, [1 / words] * words, made.n_users)})]


def _report(rng: Rng, words: int, epsilon: float) -> Any:
    kind = (Subset, Hashed, Sign, lambda k, e: Subset(k, e, k - 1))[int(rng.integers(4))]
    return kind(words, epsilon)


def _once(rng: Rng) -> Once:
    horizon, words, epsilon = int(rng.integers(1, 6)), int(rng.integers(2, 5)), float(rng.uniform(0.1, 3.0))
    every, report = int(rng.integers(1, horizon + 1)), _report(rng, words, epsilon)
    return Once(int(rng.integers(1, 5)), horizon, epsilon, words, every, report)


def _reserve(rng: Rng) -> Reserve:
    words, epsilon = int(rng.integers(2, 5)), float(rng.uniform(0.1, 3.0))
    changes, report = int(rng.integers(0, 2)), _report(rng, words, epsilon)
    users = int(rng.integers(18, 30))
    return Reserve(users, int(rng.integers(1, 6)), epsilon, changes, words, float(rng.uniform(0.1, 0.5)), report)


def _any_words(made: Once | Reserve) -> NDArray[np.int64]:
    counts = np.zeros((made.n_users, made.n_words), dtype=np.int64)
    counts[:, 0] = 1
    return counts


def _once_trial(rng: Rng) -> Trial:
    made = _once(rng)
    pair = _word_counts(rng, made.n_users, 2 * made.horizon, int(rng.integers(1, 4)), made.n_words)

    def run(counts: Any, noise: Any) -> Any:
        public = stream(0, "public")
        return until_refused(
            lambda state, held: once.step(made, state, held, public, noise), once.start(made, noise), counts, len(counts)
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, made.epsilon)


def _reserve_trial(rng: Rng) -> Trial:
    made = _reserve(rng)
    pair = _word_counts(rng, made.n_users, 2 * made.horizon, int(rng.integers(1, 4)), made.n_words)

    def run(counts: Any, noise: Any) -> Any:
        public = stream(0, "public")
        return until_refused(
            lambda state, held: reserve.step(made, state, held, public, noise),
            reserve.start(made, noise),
            counts,
            len(counts),
        )

    return Trial((made, pair[0].tolist(), pair[1].tolist()), run, pair, made.epsilon)


def _once_doors(rng: Rng) -> list[Door]:
    made = Once(4, 1, 1.0, 3)
    return [
        Door(
            "step",
            lambda noise, counts: once.step(made, once.start(made, stream(0, "lots")), counts, stream(0, "public"), noise),
            lambda drawn: {"counts": drawn.multinomial(2, [1 / 3] * 3, 4)},
        )
    ]


def _reserve_doors(rng: Rng) -> list[Door]:
    made = Reserve(12, 1, 1.0, 0, 3, steady=0.5)
    return [
        Door(
            "step",
            lambda noise, counts: reserve.step(
                made, reserve.start(made, stream(0, "lots")), counts, stream(0, "public"), noise
            ),
            lambda drawn: {"counts": drawn.multinomial(2, [1 / 3] * 3, 12)},
        )
    ]


def _once_more(rng: Any) -> Any:
    made = Once(3, 2, 1.0)
    state = once.start(made, rng)
    for _ in range(2):
        state, _ = once.step(made, state, _any_words(made), stream(0, "public"), rng)
    return [lambda: once.step(made, state, _any_words(made), stream(0, "public"), rng)]


def _reserve_more(rng: Any) -> Any:
    made = Reserve(12, 2, 1.0, 0, steady=0.5)
    state = reserve.start(made, rng)
    for _ in range(2):
        state, _ = reserve.step(made, state, _any_words(made), stream(0, "public"), rng)
    return [lambda: reserve.step(made, state, _any_words(made), stream(0, "public"), rng)]
