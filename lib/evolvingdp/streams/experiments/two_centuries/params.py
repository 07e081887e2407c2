"""Parameters of the experiment on one real stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter
from evolvingdp.streams.dated import SHIPPED, DatedCounts, read_counts

NOTEBOOK = "streams/two_centuries"
WORD = "we"
WATCHED = ("we", "upon", "government", "constitution", "america", "world", "freedom")

Users = Annotated[int, Field(ge=10**5, le=10**8)]


class Params(experiment.Params):
    """A shipped corpus or a file of the reader's own, and a population that speaks as its epochs do."""

    data: str = parameter(
        "inaugural", symbol="", meaning="inaugural, state_union, or a CSV file of your own with columns date, word, count"
    )
    word: str = parameter(
        "", symbol="", meaning="word whose share is followed; empty: `we`, or where there is none the one that moves most"
    )
    watch: tuple[str, ...] = parameter(
        (),
        symbol="",
        meaning="words whose rises and falls are looked for; empty: seven of the addresses, or those that move most",
    )
    n_users: int = parameter(10_000_000, symbol="$n$", unit="users", meaning="users in every epoch", ge=10**5, le=10**8)
    words_per_user: int = parameter(
        10**8, symbol=r"$\ell$", unit="words", meaning="words that a user holds in an epoch", ge=1, le=10**12
    )
    epsilon: float = parameter(
        1.0,
        symbol=r"$\epsilon$",
        meaning="privacy loss: of a user in all epochs, or of a report where reports are protected",
        ge=0.1,
        le=8,
    )
    delta: float = parameter(
        1e-6, symbol=r"$\delta$", meaning="failure probability where a guarantee has one", ge=1e-12, le=1e-3
    )
    changes: int = parameter(3, symbol="", unit="changes", meaning="changes that THRESH and its kin plan for", ge=1, le=64)
    window: int = parameter(
        8, symbol="", unit="epochs", meaning="epochs that are averaged to tell a rise or a fall", ge=1, le=100
    )
    hot: float = parameter(
        0.004, symbol="", meaning="share of an epoch's words from which a content word is hot", ge=1e-5, le=0.5
    )
    reports: int = parameter(8, symbol="$k$", unit="reports", meaning="reports after which a user is deleted", ge=1, le=1000)
    sample_users: int = parameter(
        5_000, symbol="", unit="users", meaning="users of the algorithms that are run sample by sample", ge=1000, le=10**6
    )
    searched: int = parameter(
        2, symbol="", unit="epochs", meaning="epochs whose words are searched without a list", ge=0, le=1000
    )
    repetitions: int = parameter(4, symbol="", unit="runs", meaning="runs of each method", ge=2, le=1000)
    n_users_sweep: tuple[Users, ...] = parameter(
        (10**5, 10**6, 10**7, 10**8), symbol="$n$", unit="users", meaning="numbers of users compared", min_length=2
    )

    metric = experiment.Metric("error_once", "mean error of the followed share, each user reporting once for ever")
    presets = {"paper": {"repetitions": 40, "searched": 12, "sample_users": 50_000}}

    @field_validator("watch", "n_users_sweep")
    @classmethod
    def _each_once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        return experiment.distinct(values)

    @field_validator("data")
    @classmethod
    def _readable(cls, value: str) -> str:
        """The file by its full name: the notebook runs in another folder."""
        read_counts(value)
        return value if value in SHIPPED else str(Path(value).expanduser().absolute())

    @model_validator(mode="after")
    def _fits(self) -> Self:
        counts = self.counts
        for name, words in {"word": [self.word] if self.word else [], "watch": self.watch}.items():
            for word in words:
                try:
                    counts.place(word)
                except ValueError as error:
                    raise ValueError(f"{name} {error}") from None
        if 2 * self.window > counts.horizon:
            raise ValueError(
                f"window must be at most {counts.horizon // 2}, half of the {counts.horizon} epochs, got {self.window}"
            )
        return self

    @property
    def counts(self) -> DatedCounts:
        return read_counts(self.data)

    @property
    def followed(self) -> str:
        """The word whose share is followed."""
        return self.word or (WORD if WORD in self.counts.words else self.counts.moving(1)[0])

    @property
    def watched(self) -> tuple[str, ...]:
        there = tuple(word for word in WATCHED if word in self.counts.words)
        return self.watch or (there if len(there) > 1 else self.counts.moving(len(WATCHED)))
