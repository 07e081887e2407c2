"""What is said of each method, as a table, and the notebook that runs what is nearest to a question.

Texts are filled with a question's fields: `filled`.
"""

from __future__ import annotations

from typing import NamedTuple

from evolvingdp.planning.question import UNIT, Question


class Text(NamedTuple):
    """Of one method."""

    guarantee: str
    assumes: str
    sends: str
    server: str
    cannot: str
    notebook: str


_ONCE = "pure epsilon-local DP of everything that a user ever sends"
_FREE = f"{_ONCE}; averaging costs nothing"
_PURE = "pure epsilon-local DP of {unit}; of all periods {for_ever}"
_LOCAL, _CENTRAL = "({epsilon}, {delta})-local DP of {unit}", "({epsilon}, {delta})-DP of {unit}"
_CURATED, _SUMS = "pure epsilon-DP of {unit}", "{unit}, all running sums together"
_BIT, _TWO = "1 bit in all periods together", "two counters a period"
_SET, _SUM = "a set of words, or a hash: 256 bits at most", "a sum for each word, or a hash for each report and word"
_LATE, _FEW = "answer before all periods are over", "long periods, changes that all users see, no more than planned"
_DATA, _EACH = "its data, to the curator", "answer for single periods"
_ANY, _JUMPS = "nothing: any data, any number of changes", "jumps, and few of them"
_HOT = "a user holds at most {taking_part} hot items, {usual} of the users an ordinary one"
_PAST = "tell by how much an item is hot, or whether it is above its own past"
_SEARCH = (
    "pure epsilon-local DP of {lot}", "nothing for the estimates; a power law for what is found",
    "one report of a prefix, {words} in all",
)  # fmt: skip

TEXTS = {
    "every user in every period": Text(
        _PURE, "nothing", "1 bit {each}", _TWO, "be precise where epsilon has to pay for many periods", "once"),
    "every user in every period, composed with delta": Text(
        _LOCAL, "nothing", "1 bit {each}", _TWO, "have a pure guarantee", "once"),
    "each user once": Text(
        _ONCE, _ANY, _BIT, _TWO, "say anything about a single user, or use what a user would answer later", "once"),
    "each user once, for several periods": Text(
        _ONCE, "few changes: one within a stretch of periods is seen at the next", _BIT, _TWO,
        "see a change before the next stretch", "once"),
    "each user once, changes found afterwards": Text(
        _FREE, f"{_JUMPS}; a drift is blurred, and says so", _BIT, f"{_TWO}, periods^2 operations at the end", _LATE,
        "once"),
    "each user once, changes found as they come": Text(
        _FREE, _JUMPS, _BIT, f"{_TWO}, periods^2 operations", "see a change at once: its averages hold periods before it",
        "once"),
    "each user once, with a reserve that is called at a change": Text(
        _ONCE, "jumps; with more than planned it goes on without a reserve", _BIT, f"{_TWO}, periods^2 operations",
        "promise a user in which period it will be asked", "once"),
    "THRESH, tuned": Text(
        _ONCE, _FEW, "1 bit a period, 1 more at each update", "a vote and an estimate a period",
        "follow a drift, or more changes than planned", "once"),
    "changes on a dyadic tree": Text(
        _ONCE, "a user's own bit changes at most {own_changes} times", "1 bit after each 2^h periods, h by lot",
        "sums of the tree's nodes", "count users whose bit changes more often", "once"),
    "the best report from every user in every period": Text(
        _PURE, "nothing", f"{_SET} {{each}}", _SUM, "be precise where epsilon has to pay for many periods", "oracle"),
    "the best report from every user in every period, composed with delta": Text(
        _LOCAL, "nothing", f"{_SET} {{each}}", _SUM, "have a pure guarantee", "oracle"),
    "each user once, the best report": Text(
        _ONCE, _ANY, f"{_SET}, once", _SUM, "answer for words that are not on the list", "oracle"),
    "each user once, one sign (FreqOracle, Hadamard)": Text(
        _ONCE, _ANY, "1 bit, and log2 of the list's length of public bits, once", "a sketch, one transform a period",
        "be as precise as the best report where epsilon is above 1", "oracle"),
    "each user once, the best report, changes found afterwards": Text(
        _FREE, _JUMPS, f"{_SET}, once", f"{_SUM}, periods^2 operations", _LATE, "heavy"),
    "each user once, the best report, changes found as they come": Text(
        _FREE, _JUMPS, f"{_SET}, once", f"{_SUM}, periods^2 operations", "see a change at once", "heavy"),
    "each user once, the best report, and a cut": Text(
        _ONCE, "a list of the items; {usual} of the users hold an ordinary one", f"{_SET}, once", _SUM,
        "see an item between two periods", "oracle"),
    "TreeHist": Text(*_SEARCH, "a sketch a level, and a search", "find words below its threshold", "words"),
    "PEM": Text(*_SEARCH, "a hash for each report and candidate", "find words below its threshold", "words"),
    "fresh Laplace noise in every period": Text(
        f"{_CURATED}; of all periods {{for_ever}}", "nothing", _DATA, "one draw an answer",
        "be precise over many periods", "sums"),
    "fresh Gaussian noise in every period": Text(
        _CENTRAL, "nothing", _DATA, "one draw an answer", "have a pure guarantee", "sums"),
    "running sums, the best tree": Text(
        f"pure epsilon-DP of {_SUMS}", "nothing", _DATA, "a draw a period, log(periods) numbers of memory", _EACH, "sums"),
    "running sums, eight buffers": Text(
        f"({{epsilon}}, {{delta}})-DP of {_SUMS}", "nothing", _DATA, "a draw a period, eight numbers of memory",
        "have a pure guarantee", "sums"),
    "running mean of users who come back, discrete Laplace": Text(
        _CURATED, "nothing: samples come in any order and number", _DATA, "a counter a user", _EACH, "mean"),
    "running mean of users who come back, Gaussian": Text(
        _CENTRAL, "nothing: samples come in any order and number", _DATA, "a counter a user", _EACH, "mean"),
    "ThresholdMonitor": Text(_CENTRAL, _HOT, _DATA, "a draw for each item held or asked for", _PAST, "hot"),
    "StableMonitor": Text(_CENTRAL, _HOT, _DATA, "a draw for each item held or asked for", _PAST, "hot"),
    "AboveThreshold, repeated": Text(
        _CENTRAL, "at most {events} hot items in all; {usual} of the users hold an ordinary one", _DATA,
        "a draw for each item held or asked for", "go on after so many", "hot"),
    "a histogram in every period": Text(
        _CENTRAL, "{usual} of the users hold an ordinary item; any number of hot ones", _DATA,
        "a draw for each item held or asked for", "be precise over many periods", "hot"),
    "stable histogram": Text(
        _CENTRAL, "nothing", _DATA, "a draw for each word that is held; {counted}", "show a word that few hold", "hot"),
}  # fmt: skip

# parameter -> what is asked for, and the least and the most that the notebook takes
NOTEBOOKS: dict[str, tuple[str, dict[str, tuple[str, float, float]]]] = {
    "once": ("evolving/choosing", {
        "n_users": ("users", 10**4, 10**9), "horizon": ("periods", 16, 2**13), "epoch_length": ("readings", 1, 10**8),
        "epsilon": ("epsilon", 0.011, 20), "changes": ("moves", 1, 15)}),
    "words": ("heavy_hitters/treehist", {"n_users": ("users", 10**6, 10**10), "epsilon": ("epsilon", 1, 10)}),
    "oracle": ("heavy_hitters/frequency_oracle", {
        "n_users": ("users", 1000, 10**10), "epsilon": ("epsilon", 1e-4, 20), "n_items": ("items", 50, 10**5)}),
    "heavy": ("evolving/heavy_thresh", {
        "n_users": ("users", 10**7, 10**10), "epsilon": ("epsilon", 4, 20), "epoch_length": ("readings", 4 * 10**6, 10**9)}),
    "mean": ("continual_mean/past_the_paper", {
        "n_users": ("users", 100, 10**5), "samples_per_user": ("samples", 4, 2**12), "epsilon": ("epsilon", 0.01, 20),
        "delta": ("some_delta", 1e-12, 0.01)}),
    "sums": ("continual_mean/binary_tree", {
        "horizon": ("periods", 64, 10**8), "epsilon": ("epsilon", 1e-4, 20), "delta": ("some_delta", 1e-12, 0.01)}),
    "hot": ("sparse_vector/shifting_heavy_hitters", {
        "n_users": ("users", 4000, 10**7), "epsilon": ("epsilon", 0.1, 5), "delta": ("some_delta", 1e-20, 0.01),
        "reports": ("taking_part", 3, 1000)}),
}  # fmt: skip
_SWEPT = {"once": " -p changes_sweep 1,3,7,15"}  # all below any horizon
_COUNTED = {
    "report": "every reading counts",
    "period": "one reading of a user and period counts, at random",
    "user": "one reading of a user counts in each answer, at random",
}


def of(method: str) -> Text:
    """A method behind a shuffler says what it says without; a histogram of any kind the same."""
    name = method.partition(", shuffled")[0]
    return TEXTS[name] if name in TEXTS else TEXTS[name.rpartition(",")[0]]


def command(notebook: str, question: Question) -> str:
    """What runs it, at the question's values as far as its parameters go."""
    name, parameters = NOTEBOOKS[notebook]
    asked = {parameter: getattr(question, what) for parameter, (what, _, _) in parameters.items()}
    given = {parameter: min(max(asked[parameter], low), high) for parameter, (_, low, high) in parameters.items()}
    line = " ".join([f"evolvingdp run {name}", *(f"-p {parameter} {value:.12g}" for parameter, value in given.items())])
    other = [parameter for parameter in given if given[parameter] != asked[parameter]]
    return line + _SWEPT.get(notebook, "") + (f"   # {', '.join(other)}: as near as the notebook goes" if other else "")


def filled(text: str, question: Question) -> str:
    whole, reports = question.unit == "user", question.reports
    return text.format(
        unit=UNIT[question.unit], epsilon=f"{question.epsilon:g}", delta=f"{question.failure:g}",
        for_ever=reports.told(question.epsilon), mixed_for_ever=reports.told(question.epsilon, question.failure),
        each="a period" if reports.a_period == 1 else f"a reading, {reports.a_period:,} a period",
        own_changes=question.own_changes, taking_part=question.taking_part, events=question.events,
        usual=f"{question.usual:.2g}",
        lot=UNIT["user" if whole else "report"], words="one" if whole else "one a period", counted=_COUNTED[question.unit],
    )  # fmt: skip
