"""The ledger, how audits from outside converge, two failures of real packages, and what floating point gives away.

`run` gives the rows of all parts of the notebook, `values` the numbers that claims and prose read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from evolvingdp.audit import formulas, ledger
from evolvingdp.audit.empirical import auditor, failures
from evolvingdp.audit.exact.laws import worst_loss
from evolvingdp.book.params import Metric
from evolvingdp.core.noise import DiscreteLaplace, Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.rappor import Rappor

METRIC = Metric("bound_right", "largest epsilon that an audit proves of a mechanism that promises 1")

CLAIMS = """
n_broken <= 0  No mechanism loses more than it promises at any setting that was tried: number that do
digits_of_one <= 53  Of 1 + noise no digit is finer than 2^-53: most digits
share_finer >= 0.3  Of 0 + noise many are: share of numbers in (0, 1)
bound_digits >= 1  The last digits of naive Laplace noise refute epsilon = 1: mean bound
bound_integer <= 0  Integer noise has none: largest bound from digits
? many_reports * loss_kept / promised_permanent <= 1 + 1e-9  A client as stated keeps its promise: exact loss over promise
? many_reports * loss_redrawn / promised_permanent >= 1  A redrawn permanent response does not: exact loss over promise
? many_reports * loss_uncleared / promised_permanent >= 1  Nor does a bit that is never cleared: exact loss over promise
? many_reports * audit_redrawn / promised_permanent >= 1  A redrawn response is caught from outside: bound over promise
? many_reports * audit_uncleared / promised_permanent >= 1  So is a bit that is never cleared: bound over promise
? all_reports * recovered_redrawn >= 1  A redrawn response tells the words of all users: share recovered
? many_runs * bound_less >= 1  10 % less noise is refuted from outside: mean bound
"""

KEPT, REDRAWN, UNCLEARED = "as stated", "permanent response redrawn", "true bit never cleared"
RIGHT, LESS, DIGITS, INTEGER = "Laplace, as stated", "10 % less noise", "Laplace, last digits", "integer noise, last digits"
_ONE_BIT = (1, 2)  # Bloom filters with one bit each


def run(params: Any, seed: int) -> pd.DataFrame:
    """Rows of part "ledger" (a mechanism), "convergence" (an audit), "failures", "recovered" and "digits"."""
    promises = ledger.table(params.settings, seed).assign(part="ledger")
    rows = [*_convergence(params, seed), *_failures(params, seed), *_recovered(params, seed), *_digits(params, seed)]
    return pd.concat([promises, pd.DataFrame(rows)], ignore_index=True)


def _convergence(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    cases = {
        RIGHT: failures.noisy_count(Laplace(1.0)),
        LESS: failures.noisy_count(Laplace(0.9)),
        DIGITS: failures.last_digits(Laplace(1.0)),
        INTEGER: failures.last_digits(DiscreteLaplace(1.0)),
    }
    for name, mechanism in cases.items():
        for runs in params.runs if name != INTEGER else params.runs[:2]:
            for repetition in range(params.repetitions):
                bound = auditor.audit(
                    mechanism, (0, 1), stream(seed, name, runs, repetition), runs=runs, confidence=params.confidence
                )  # fmt: skip
                yield {
                    "part": "convergence", "case": name, "runs": runs, "repetition": repetition, "bound": bound.epsilon,
                    "promised": 1.0,
                }  # fmt: skip


def _failures(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """The exact loss against the number of reports, and an audit from outside, for the right client and both wrong ones."""
    settings, uncleared = Rappor(n_bits=4), failures.NeverClears(n_bits=4)
    one = worst_loss(failures.rappor_laws(settings, _ONE_BIT, 1))
    for case in (KEPT, REDRAWN, UNCLEARED):
        of = uncleared if case == UNCLEARED else settings
        for n_reports in params.n_reports:
            loss = n_reports * one if case == REDRAWN else of.epsilon_of_reports(n_reports)
            client = failures.rappor_client(of, n_reports, redrawn=case == REDRAWN)
            bound = auditor.audit(
                client, _ONE_BIT, stream(seed, case, n_reports), runs=max(params.runs), confidence=params.confidence
            )
            yield {
                "part": "failures", "case": case, "n_reports": n_reports, "loss": loss, "bound": bound.epsilon,
                "promised": settings.epsilon_permanent,
            }  # fmt: skip


def _recovered(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    settings = Rappor()
    for case in (KEPT, REDRAWN):
        for n_reports in params.n_reports:
            for repetition in range(params.repetitions):
                rng = stream(seed, "recovered", case, n_reports, repetition)
                told = failures.recovered(settings, n_reports, params.n_users, rng, redrawn=case == REDRAWN)
                yield {
                    "part": "recovered", "case": case, "n_reports": n_reports, "repetition": repetition,
                    "recovered": told / params.n_users,
                }  # fmt: skip


def _digits(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """How many binary digits after the point noisy counts in (0, 1) have, a row a number of digits."""
    runs = max(params.runs)
    for count in (0, 1):
        noisy = count + Laplace(1.0).draw(runs, stream(seed, "digits", count))
        inside = noisy[(noisy > 0) & (noisy < 1)]
        digits = pd.Series([value.as_integer_ratio()[1].bit_length() - 1 for value in inside.tolist()])
        for number, share in digits.value_counts(normalize=True).sort_index().items():
            yield {"part": "digits", "count": count, "digits": number, "share": share, "inside": len(inside)}


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    rows, digits, convergence = (part(table, name) for name in ("ledger", "digits", "convergence"))
    mean = convergence[convergence.runs == convergence.runs.max()].groupby("case").bound.mean()
    told, wrong = part(table, "recovered"), part(table, "failures")
    end = told[told.n_reports == told.n_reports.max()].groupby("case").recovered.mean()
    last = wrong[wrong.n_reports == wrong.n_reports.max()].set_index("case")
    return {
        "n_entries": len(rows),
        "n_settings": int(rows.tried.sum()),
        "n_tight": int(rows.tight.sum()),
        "n_broken": int((~rows.kept.astype(bool)).sum()),
        "n_formula": int((rows.how == formulas.FORMULA).sum()),
        "most_runs": max(params.runs),
        "most_reports": max(params.n_reports),
        "many_reports": 1.0 if max(params.n_reports) >= 30 else math.nan,
        "all_reports": 1.0 if max(params.n_reports) >= 200 else math.nan,
        "many_runs": 1.0 if max(params.runs) >= 30_000 else math.nan,
        "bound_right": float(mean[RIGHT]),
        "bound_less": float(mean[LESS]),
        "bound_digits": float(mean[DIGITS]),
        "bound_integer": float(convergence[convergence.case == INTEGER].bound.max()),
        "most_possible": math.log(max(params.runs) / 3.7),
        "recovered_kept": float(end[KEPT]),
        "recovered_redrawn": float(end[REDRAWN]),
        "promised_permanent": float(last.promised[KEPT]),
        "loss_kept": float(last.loss[KEPT]),
        "loss_redrawn": float(last.loss[REDRAWN]),
        "loss_uncleared": float(last.loss[UNCLEARED]),
        "audit_redrawn": float(last.bound[REDRAWN]),
        "audit_uncleared": float(last.bound[UNCLEARED]),
        "digits_of_one": int(digits[digits["count"] == 1].digits.max()),
        "share_finer": float(digits[(digits["count"] == 0) & (digits.digits > 53)].share.sum()),
    }


PAPERS = {
    "core": "What all four papers use",
    "heavy_hitters": "Heavy hitters: Bassily et al. (2020), and their rivals",
    "evolving": "Evolving data: Joseph et al. (2018), and their rivals",
    "continual_mean": "Continual means: George et al. (2022), and what came after",
    "sparse_vector": "Sparse vector: Kaplan et al. (2021), and what came after",
}
CHAPTERS = {
    "core": "all four papers",
    "heavy_hitters": "heavy hitters",
    "evolving": "evolving data",
    "continual_mean": "continual means",
    "sparse_vector": "sparse vector",
}


def part(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one part, without the columns that it does not have."""
    return table[table.part == name].dropna(axis=1, how="all")


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The ledger as readers see it: by paper, which the page makes headings of, and each row's verdict first."""
    rows = part(table, "ledger")
    return pd.DataFrame(
        {
            "paper": rows.chapter.map(PAPERS),
            "verdict": list(map(_verdict, rows.kept, rows.tight)),
            "mechanism": rows.mechanism,
            "promise": rows.guarantee,
            "measured": list(map(_measured, rows.measured, rows.promised, rows.tight)),
            "settings": rows.tried.astype(int),
            "checked": rows.how,
            "protects": rows.unit + " (" + rows.neighbours + ")",
            "test": rows.test.str.replace(f"{ledger.TEST}[", "").str.rstrip("]"),
        }
    )


def _loss(epsilon: float, digits: int = 4) -> str:
    """A small one as a power of ten from a thousandth on, so that its neighbours in a column are, too."""
    return f"{epsilon:.{digits - 1}e}" if 0 < epsilon < 1e-3 else f"{epsilon:.{digits}g}"


def _measured(epsilon: float, promised: float, tight: bool) -> str:
    """A loss that is not tight with as many digits as tell it from the promise."""
    told = (digits for digits in range(4, 9) if tight or _loss(epsilon, digits) != _loss(promised, digits))
    return _loss(epsilon, next(told, 9))


def _verdict(kept: bool, tight: bool) -> str:
    return "broken" if not kept else "tight" if tight else "kept"


def failure_table(table: pd.DataFrame) -> pd.DataFrame:
    """Which check catches which failure, at the largest number of reports."""
    rows = part(table, "failures")
    last = rows[rows.n_reports == rows.n_reports.max()]
    return pd.DataFrame(
        {
            "client": last.case,
            "reports": last.n_reports.map("{:.0f}".format),
            "promised": last.promised.map("{:.3f}".format),
            "exact loss": last.loss.map("{:.3f}".format),
            "audit: at least": last.bound.map("{:.3f}".format),
            "caught exactly": (last.loss > last.promised * (1 + ledger.SLACK)).map({True: "yes", False: "no"}),
            "caught from outside": (last.bound > last.promised).map({True: "yes", False: "no"}),
        }
    )


def repeated(table: pd.DataFrame, name: str, against: str, value: str) -> pd.DataFrame:
    """Mean, deviation and number of the repetitions of a part, for each case."""
    rows = part(table, name).groupby(["case", against], sort=False)
    return rows[value].agg(["mean", "std", "count"]).reset_index()


def losses(table: pd.DataFrame) -> pd.DataFrame:
    """Of each row its loss over its promise, and its place in its chapter, in (0, 1] by its loss."""
    rows = part(table, "ledger").reset_index(drop=True)
    loss = rows.measured / rows.promised
    rank = loss.groupby(rows.chapter).rank(method="first") / rows.groupby("chapter").id.transform("size")
    return rows[["chapter", "kept", "tight"]].astype({"kept": bool, "tight": bool}).assign(verified=loss, place=rank)
