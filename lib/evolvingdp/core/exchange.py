"""What a client sends and what a server keeps, in a round in which each user reports once.

**Computes** bytes from a value, sums from bytes, and a table from sums. Both sides hold the same `Round`: its settings and
a `public` string, which names the collection. A report is a tag of four bytes, which tells rounds apart, and `Round.size`
more. A server keeps sums, and never a report; servers write their state as JSON, and add up.

**Guarantee.** That of the round's report, per call of `send`: a user who sends once in all rounds that it ever takes part
in spends epsilon once. A server does not know who sends twice: that is for clients to keep.

**Not for** secrets as they are: numpy's generators are for study, not for deployment.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from evolvingdp.core import checks
from evolvingdp.core.reports import BITS, Report, best_report

if TYPE_CHECKING:  # a client needs no pandas
    import pandas as pd

_TAG = 4  # bytes
_MOST = 1 << 53  # reports: doubles of them are exact below


@checks.draws
class Round(ABC):
    """What both sides share: a frozen dataclass, whose fields are all public, in numbers and text only."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of a report, without its tag."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many sums a server keeps."""

    @abstractmethod
    def encode(self, value: Any, rng: np.random.Generator) -> bytes:
        """The report of a user with this value, checked before any draw, in `size` bytes."""

    @abstractmethod
    def add_up(self, payloads: list[bytes]) -> NDArray[np.int64]:
        """What reports of `size` bytes each add up to, (width,); ValueError names the place of one that nobody can send."""

    @abstractmethod
    def table(self, sums: NDArray[np.int64], n_reports: int, top: int, coverage: float) -> pd.DataFrame:
        """The `top` words with the largest estimates: columns word, estimate, low, high, as shares of the users."""

    @property
    def moved(self) -> tuple[int, int]:
        """How many of the sums a report moves by 1, or, where it is `signed`, by 1 or -1: at least and at most."""
        return 1, 1

    @property
    def signed(self) -> bool:
        return False

    form: ClassVar[str] = ""  # another one where reports of the same fields mean something else than in a version before

    @cached_property
    def name(self) -> str:
        """A digest of the kind of round and all its fields."""
        return hashlib.sha256(f"{self!r}{self.form}".encode()).hexdigest()

    @property
    def tag(self) -> bytes:
        """What a report of this round begins with."""
        return bytes.fromhex(self.name)[:_TAG]


@checks.plain
@dataclass(frozen=True)
class Listed(Round):
    """One of the `words`, of which a bit has two, by the best report of at most 256 bits unless another is given. `words`:
    different strings, one of which `send` takes. Who holds none of them, or has no answer, has to have a word for that, as
    not sending tells it."""

    words: tuple[str, ...]
    epsilon: float  # of one report
    public: str
    report: Report = None  # type: ignore[assignment]  # the best one, as soon as it is made

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        if not all(isinstance(word, str) for word in self.words) or len(self._places) != len(self.words):
            raise ValueError(
                f"words must be different strings, got {len(self.words)} with {len(self._places)} different ones"
            )
        checks.positive(epsilon=self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))  # 1 and 1.0 are one round
        if not isinstance(self.public, str) or not self.public:
            raise ValueError(f"public must be a string that names the collection, got {self.public!r}")
        if self.report is None:
            object.__setattr__(self, "report", best_report(len(self.words), self.epsilon, BITS))
        if (self.report.n_values, self.report.epsilon) != (len(self.words), self.epsilon):
            raise ValueError(
                f"report must be one of {len(self.words)} values with epsilon {self.epsilon}, got {self.report}"
            )

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @property
    def size(self) -> int:
        return -(-self.report.bits // 8)

    @property
    def width(self) -> int:
        return self.report.width

    @property
    def moved(self) -> tuple[int, int]:
        return self.report.moved

    @property
    def signed(self) -> bool:
        return self.report.signed

    def encode(self, value: str, rng: np.random.Generator) -> bytes:
        if (place := self._places.get(value) if isinstance(value, str) else None) is None:
            raise ValueError(f"value must be one of the {len(self.words)} words, such as {self.words[0]!r}, got {value!r}")
        public, private = rng.spawn(2)  # what is published of one says nothing about the other
        (row,) = self.report.sent(np.array([place]), public, private)
        return self.report.message(row).to_bytes(self.size, "big")

    def add_up(self, payloads: list[bytes]) -> NDArray[np.int64]:
        messages = [int.from_bytes(each, "big") for each in payloads]
        for place, message in enumerate(messages):
            if message >= self.report.messages:
                raise ValueError(
                    f"reports must be below {self.report.messages} of this round, got {message} in place {place}"
                )
        return self.report.add_up(self.report.rows(messages))

    def table(self, sums: NDArray[np.int64], n_reports: int, top: int = 100, coverage: float = 0.95) -> pd.DataFrame:
        """Intervals are Wilson's, of each word by itself; estimates are unbiased, and may lie outside [0, 1]."""
        import pandas as pd

        estimates = self.report.estimates(sums, n_reports)
        gap, z = self.report.own - self.report.other, float(ndtri((1 + coverage) / 2))
        supported, spread = np.clip(self.report.other + estimates * gap, 0, 1), z * z / max(n_reports, 1)
        middle = (supported + spread / 2) / (1 + spread)
        half = np.sqrt(spread * (supported * (1 - supported) + spread / 4)) / (1 + spread)
        low, high = (np.clip((end - self.report.other) / gap, 0, 1) for end in (middle - half, middle + half))
        table = pd.DataFrame({"word": self.words, "estimate": estimates, "low": low, "high": high})
        return table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True).head(top)


@checks.draws
@dataclass(frozen=True)
class Client:
    """One user's side."""

    round: Round

    def send(self, value: Any, rng: np.random.Generator) -> bytes:
        """A report of `value`: epsilon, each time. Many at once:
        `Server(round, n, round.report.collect(places, public, private))`."""
        return self.round.tag + self.round.encode(value, rng)


class Server:
    """How many have reported in this round, and what their reports add up to. Servers of one round merge with `+`."""

    def __init__(self, round: Round, n_reports: int = 0, sums: NDArray[np.int64] | None = None) -> None:
        self.round, self.n_reports = round, n_reports
        self.sums = np.zeros(round.width, dtype=np.int64) if sums is None else sums

    def add(self, reports: Iterable[bytes]) -> None:
        """All of them, or, where the ValueError names the place of one that is not a report of this round, none."""
        held, size = list(reports), _TAG + self.round.size
        for place, each in enumerate(held):
            if not isinstance(each, bytes) or len(each) != size:
                raise ValueError(f"reports must be of {size} bytes, got {each!r} in place {place}")
            if each[:_TAG] != self.round.tag:
                raise ValueError(
                    f"reports must be of this round, whose tag is {self.round.tag.hex()}, got {each[:_TAG].hex()} in "
                    f"place {place}"
                )
        if held:
            self.sums = self.sums + self.round.add_up([each[_TAG:] for each in held])
            self.n_reports += len(held)

    def __add__(self, other: Server) -> Server:
        if not isinstance(other, Server):
            return NotImplemented
        if self.round.name != other.round.name:
            raise ValueError(f"servers must be of one round, got {self.round.tag.hex()} and {other.round.tag.hex()}")
        return Server(self.round, self.n_reports + other.n_reports, self.sums + other.sums)

    def table(self, top: int = 100, coverage: float = 0.95) -> pd.DataFrame:
        """The `top` words: word, estimate, low, high, as shares of the users."""
        checks.integer_at_least(1, top=top)
        checks.probability(coverage=coverage)
        if not self.n_reports:
            raise ValueError("reports must be added before there is a table, got none")
        return self.round.table(self.sums, self.n_reports, top, coverage)

    def to_json(self) -> str:
        """All that the server holds: public, and enough to go on with."""
        return json.dumps({"round": self.round.name, "n_reports": self.n_reports, "sums": self.sums.tolist()})

    @classmethod
    def from_json(cls, round: Round, text: str) -> Server:
        """The server of `round` that wrote this; ValueError for what is none of its states."""
        state = json.loads(text)
        if not isinstance(state, dict) or set(state) != {"round", "n_reports", "sums"}:
            raise ValueError(f"text must be what to_json writes, with round, n_reports and sums, got {text[:60]!r}")
        if state["round"] != round.name:
            raise ValueError(f"text must be of the round {round.name[:8]}, got that of {str(state['round'])[:8]}")
        n_reports, sums = state["n_reports"], state["sums"]
        if type(n_reports) is not int or not 0 <= n_reports < _MOST:
            raise ValueError(f"n_reports must be an integer in [0, 2^53), got {n_reports!r:.60}")
        if not isinstance(sums, list) or len(sums) != round.width or any(type(each) is not int for each in sums):
            raise ValueError(f"sums must be a list of {round.width} integers, got {sums!r:.60}")
        _possible(round, n_reports, sums)
        return cls(round, n_reports, np.array(sums, dtype=np.int64))


def _possible(round: Round, n_reports: int, sums: list[int]) -> None:
    """Raise ValueError for sums that so many reports cannot add up to."""
    lowest = -n_reports if round.signed else 0
    for place, each in enumerate(sums):
        if not lowest <= each <= n_reports:
            raise ValueError(
                f"sums must lie in [{lowest}, {n_reports}] after {n_reports} reports, got {each!r:.60} in place {place}"
            )
    total, (least, most) = sum(map(abs, sums)), (n_reports * each for each in round.moved)
    if round.signed:  # signs of one row cancel in pairs
        if total > most or (total - most) % 2:
            raise ValueError(f"sums must add up to {most} in size, or an even number less, got {total}")
    elif not least <= total <= most:
        raise ValueError(f"sums must add up to {least}{f' to {most}' * (least < most)} in all, got {total}")
