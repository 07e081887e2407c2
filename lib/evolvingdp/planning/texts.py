"""What is said of each method, as a table; the words in braces are filled with a question's numbers."""

from __future__ import annotations

from typing import Any

from evolvingdp.core.accounting import together
from evolvingdp.core.reports import Report
from evolvingdp.planning.answer import Method, rounded
from evolvingdp.planning.question import Question

UNIT = {
    "report": "one report",
    "period": "all that a user sends in a period",
    "user": "everything that a user ever sends",
}

_SAID = ("guarantee", "assumes", "sends", "cannot", "notebook")  # of each method
_ONCE = "pure epsilon-local DP of everything that a user ever sends"
_FREE = f"{_ONCE}; averaging costs nothing"
_PURE, _CURATED = "pure epsilon-local DP of {unit}; of all periods {for_ever}", "pure epsilon-DP of {unit}"
_CENTRAL, _SUMS = "({epsilon}, {delta})-DP of {unit}", "{unit}, all running sums together"
_JUMPS, _ANY = "jumps, and few of them", "nothing: any data, any number of changes"
_DATA, _EACH = "its data, to the curator", "answer for single periods"
_WATCHED = "; predicted for one word that is watched: detect(tally, words=np.array([word]){})"
_HOT = "a user holds at most {taking_part} hot items, {usual} of the users an ordinary one"
_MUCH = "tell by how much an item is hot"
_PAST = f"{_MUCH}, or whether it is above its own past"
_COUNTS, _LONG, _AFTER = f"{_DATA}; {{counted}}", "be precise over many periods", "answer before all periods are over"
_SHIFTING, _TREE = "sparse_vector/shifting_heavy_hitters", "continual_mean/binary_tree"

TEXTS = {
    "every user in every period": (
        _PURE, "nothing", "{message} {each}", "be precise where epsilon has to pay for many periods", "evolving/choosing"),
    "each user once": (_ONCE, _ANY, "{message}, once", "follow a user", "evolving/choosing"),
    "each user once, changes found afterwards": (
        _FREE, _JUMPS + "{watched}", "{message}, once", _AFTER, "evolving/choosing"),
    "each user once, changes found as they come": (
        _FREE, _JUMPS + "{watched_online}", "{message}, once", "see a change at once", "evolving/choosing"),
    "each user once, with a reserve that is called at a change": (
        _ONCE, "jumps; with more than planned it goes on without a reserve", "{message}, once",
        "promise a user in which period it will be asked", "evolving/choosing"),
    "THRESH, tuned": (
        _ONCE, "long periods, changes that all users see, no more than planned", "1 bit a period, 1 more at each update",
        "follow a drift, or more changes than planned", "evolving/thresh"),
    "each user once, and a cut": (
        _ONCE, "a list of the items; {usual} of the users hold an ordinary one", "{message}, once",
        "see an item between two periods", "heavy_hitters/frequency_oracle"),
    "TreeHist": (
        "pure epsilon-local DP of {lot}", "nothing; its plan holds whatever others have",
        "one report of a prefix, {words} in all", "find words below its threshold", "heavy_hitters/treehist"),
    "fresh Laplace noise in every period": (f"{_CURATED}; of all periods {{for_ever}}", "nothing", _DATA, _LONG, _TREE),
    "fresh Gaussian noise in every period": (_CENTRAL, "nothing", _DATA, "have a pure guarantee", _TREE),
    "running sums, the best tree": (f"pure epsilon-DP of {_SUMS}", "nothing", _DATA, _EACH, _TREE),
    "running sums, eight buffers": (
        f"({{epsilon}}, {{delta}})-DP of {_SUMS}", "nothing", _DATA, "have a pure guarantee", _TREE),
    "ThresholdMonitor": (_CENTRAL, _HOT, _DATA, _MUCH, _SHIFTING),
    "StableMonitor": (_CENTRAL, _HOT, _DATA, _PAST, _SHIFTING),
    "AboveThreshold, repeated": (
        _CENTRAL, "at most {events} hot items in all; {usual} of the users hold an ordinary one", _DATA,
        "go on after so many", _SHIFTING),
    "a histogram in every period": (
        _CENTRAL, "{usual} of the users hold an ordinary item; any number of hot ones", _DATA, _LONG, _SHIFTING),
    "stable histogram": (_CENTRAL, "nothing", _COUNTS, "show a word that few hold", _SHIFTING),
    "stable histogram, once at the end": (_CENTRAL, "nothing", _COUNTS, _AFTER, _SHIFTING),
}  # fmt: skip
_COUNTED = {
    "report": "every reading counts",
    "period": "one reading of a user and period counts, at random",
    "user": "one reading of a user counts in each answer, at random",
}


def _for_ever(question: Question, delta: float = 0.0) -> str:
    """What (epsilon, delta) of a unit says of all that a user ever sends, who sends in every period; delta in two digits,
    rounded up. The units of one period are read together."""
    whole, failure = together(question.epsilon, delta, question.a_period, question.periods // question.of_a_unit)
    if whole == question.epsilon:
        return "together the same"
    if failure >= 1:
        return "together no bound below 1 is left of delta"
    return f"together it is ({whole:g}, {rounded(failure):.2g})" if failure else f"together it is {whole:g}"


def of(method: Method, question: Question, settings: Any) -> dict[str, Any]:
    """What is said of a method, by field, at the numbers of a question and with the settings that it has."""
    told = dict(zip(_SAID, TEXTS[method.name.removesuffix(", shuffled")], strict=True))
    if method.trust == "shuffler" and method.mixed:
        promised = {True: UNIT["user"], False: "{unit}; of all periods {mixed_for_ever}", None: "{lot}"}[method.mixed.once]
        whose = "against those who see only what the shuffler passes on"
        told |= {"guarantee": f"({{epsilon}}, {{delta}})-DP of {promised}, {whose}", "sends": f"{told['sends']}; no name"}
    whole, report = question.unit == "user", settings if isinstance(settings, Report) else getattr(settings, "report", None)
    filled = {
        "unit": UNIT[question.unit],
        "lot": UNIT["user" if whole else "report"],
        "epsilon": f"{question.epsilon:g}",
        "delta": f"{question.failure:g}",
        "for_ever": _for_ever(question),
        "mixed_for_ever": _for_ever(question, question.failure),
        "message": getattr(report, "message_in_words", ""),
        "each": "a period" if question.a_period == 1 else f"a reading, {question.a_period:,} a period",
        "words": "one" if whole else "one a period",
        "watched": "" if question.statistic == "mean" else _WATCHED.format(""),
        "watched_online": "" if question.statistic == "mean" else _WATCHED.format(", online=True"),
        "counted": _COUNTED[question.unit],
        "usual": f"{question.usual:.2g}",
        "taking_part": question.taking_part,
        "events": question.events,
    }
    said = {name: text.format(**filled) for name, text in told.items()}
    return said | {"command": f"evolvingdp run {said.pop('notebook')}"}
