"""Verified privacy: the ledger, audits from outside, two failures of real packages, and what floating point gives away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import pandas as pd
from pydantic import Field, field_validator

from evolvingdp import experiment
from evolvingdp.audit import empirical, exact, failures, ledger, reports
from evolvingdp.audit.black_boxes import black_boxes
from evolvingdp.core.noise import Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, parameter
from evolvingdp.heavy_hitters.rappor import Rappor

NOTEBOOK = "audit/verified_privacy"
KEPT, REDRAWN, UNCLEARED = "as stated", "permanent response redrawn", "true bit never cleared"
RIGHT, LESS, DIGITS, INTEGER = "Laplace, as stated", "10 % less noise", "Laplace, last digits", "integer noise, last digits"
_ONE_BIT = (1, 2)  # Bloom filters with one bit each
Runs = Annotated[int, Field(ge=10, le=10**6)]
Reports = Annotated[int, Field(ge=1, le=10**4)]


class Params(experiment.Params):
    """Sizes of the audits; the ledger itself has none."""

    runs: tuple[Runs, ...] = parameter(
        (100, 300, 1000, 3000), symbol="", unit="runs", meaning="runs an input of an audit", min_length=2
    )
    box_runs: int = parameter(1000, symbol="", unit="runs", meaning="runs an input for each mechanism", ge=10, le=10**6)
    confidence: float = parameter(0.95, symbol="", meaning="confidence of each bound", gt=0, lt=1)
    n_reports: tuple[Reports, ...] = parameter(
        (1, 3, 10, 30, 100, 200), symbol="", unit="reports", meaning="reports of a RAPPOR client", min_length=2
    )
    n_users: int = parameter(200, symbol="$n$", unit="users", meaning="users whose words are guessed", ge=10, le=10**5)
    repetitions: int = parameter(4, symbol="", unit="runs", meaning="repetitions of each audit and guess", ge=2, le=1000)

    metric = experiment.Metric(
        "bound_right", "largest epsilon that an audit proves of a mechanism that promises 1", better="higher"
    )
    presets = {"paper": {"runs": (100, 300, 1000, 3000, 10_000, 30_000), "box_runs": 10_000, "repetitions": 8}}

    @field_validator("runs", "n_reports")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)


def run(params: Params, seed: int) -> Result[Params]:
    """Rows of part "ledger" (a mechanism), "box" (an audit of one), "convergence", "failures", "recovered" and "digits"."""
    promises = ledger.table().assign(part="ledger")
    rows = [
        *_boxes(params, seed, promises), *_convergence(params, seed), *_failures(params, seed), *_recovered(params, seed),
        *_digits(params, seed),
    ]  # fmt: skip
    table = pd.concat([promises, pd.DataFrame(rows)], ignore_index=True)
    return Result(NOTEBOOK, params, seed, table, _claims(params, table), _values(params, table))


def part(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one part, without the columns that it does not have."""
    return table[table.part == name].dropna(axis=1, how="all")


def _boxes(params: Params, seed: int, promises: pd.DataFrame) -> Iterator[dict[str, Any]]:
    by_id = promises.set_index("id")
    for box in black_boxes():
        promise = by_id.loc[box.entry]
        bound = empirical.audit(
            box.mechanism, box.inputs, stream(seed, "box", box.entry), runs=params.box_runs, delta=float(promise.delta),
            confidence=1 - (1 - params.confidence) / 1000, statistic=box.statistic,
        )  # fmt: skip
        yield {
            "part": "box", "id": box.entry, "mechanism": promise.mechanism, "promised": promise.promised, "delta": promise.delta,
            "bound": bound.epsilon, "runs": params.box_runs, "event": bound.event,
        }  # fmt: skip


def _convergence(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    cases: dict[str, tuple[Any, Any]] = {
        RIGHT: (failures.noisy_count(Laplace(1.0)), None),
        LESS: (failures.noisy_count(Laplace(0.9)), None),
        DIGITS: (failures.noisy_count(Laplace(1.0)), failures.finer_than_one),
        INTEGER: (failures.noisy_count(failures.integer_noise(1.0)), failures.finer_than_one),
    }
    for name, (mechanism, statistic) in cases.items():
        for runs in params.runs if name != INTEGER else params.runs[:2]:
            for repetition in range(params.repetitions):
                bound = empirical.audit(
                    mechanism, (0, 1), stream(seed, name, runs, repetition), runs=runs, confidence=params.confidence,
                    statistic=statistic,
                )  # fmt: skip
                yield {
                    "part": "convergence", "case": name, "runs": runs, "repetition": repetition, "bound": bound.epsilon,
                    "promised": 1.0,
                }  # fmt: skip


def _failures(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """The exact loss against the number of reports, and an audit from outside, for the right client and both wrong ones."""
    settings, uncleared = Rappor(n_bits=4), failures.NeverClears(n_bits=4)
    one = exact.worst_loss(reports.rappor_laws(settings, _ONE_BIT, 1))
    for case in (KEPT, REDRAWN, UNCLEARED):
        of = uncleared if case == UNCLEARED else settings
        for n_reports in params.n_reports:
            loss = n_reports * one if case == REDRAWN else of.epsilon_of_reports(n_reports)
            client = failures.rappor_client(of, n_reports, redrawn=case == REDRAWN)
            bound = empirical.audit(
                client, _ONE_BIT, stream(seed, case, n_reports), runs=params.box_runs, confidence=params.confidence
            )
            yield {
                "part": "failures", "case": case, "n_reports": n_reports, "loss": loss, "bound": bound.epsilon,
                "promised": settings.epsilon_permanent,
            }  # fmt: skip


def _recovered(params: Params, seed: int) -> Iterator[dict[str, Any]]:
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


def _digits(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """How many binary digits after the point noisy counts in (0, 1) have, a row a number of digits."""
    runs = max(params.runs)
    for count in (0, 1):
        noisy = count + Laplace(1.0).draw(runs, stream(seed, "digits", count))
        inside = noisy[(noisy > 0) & (noisy < 1)]
        digits = pd.Series([value.as_integer_ratio()[1].bit_length() - 1 for value in inside.tolist()])
        for number, share in digits.value_counts(normalize=True).sort_index().items():
            yield {"part": "digits", "count": count, "digits": number, "share": share, "inside": len(inside)}


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The ledger as readers see it."""
    rows = part(table, "ledger")
    return pd.DataFrame(
        {
            "mechanism": rows.mechanism,
            "epsilon, delta": rows.guarantee,
            "unit": rows.unit,
            "neighbours": rows.neighbours,
            "verified": rows.how,
            "measured": rows.measured.map("{:.4g}".format),
            "tight": rows.tight.map({True: "yes", False: "no"}),
            "mutant": rows.mutant,
            "its loss": rows.broken.map("{:.4g}".format),
            "test": rows.test.str.replace(f"{ledger.TEST}[", "").str.rstrip("]"),
        }
    )


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


def _claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    rows, boxes, wrong = part(table, "ledger"), part(table, "box"), part(table, "failures")
    convergence, told, digits = part(table, "convergence"), part(table, "recovered"), part(table, "digits")
    most = convergence.runs.max()
    mean = convergence[convergence.runs == most].groupby("case").bound.mean()
    last = wrong[wrong.n_reports == wrong.n_reports.max()].set_index("case")
    end = told[told.n_reports == told.n_reports.max()].groupby("case").recovered.mean()
    claims = [
        at_most("No mechanism loses more than it promises: number that do", (~rows.kept.astype(bool)).sum(), 0),
        at_most("Every mutant loses more: number that do not", (~rows.caught.astype(bool)).sum(), 0),
        at_least("Most guarantees are tight: share", rows.tight.mean(), 0.5),
        at_most("No audit from outside refutes a mechanism of this book: largest bound over promise", (boxes.bound / boxes.promised).max(), 1.0),
        at_most("Of 1 + noise no digit is finer than 2^-53: most digits", digits[digits["count"] == 1].digits.max(), 53),
        at_least("Of 0 + noise many are: share of numbers in (0, 1)", digits[(digits["count"] == 0) & (digits.digits > 53)].share.sum(), 0.3),
        at_least("The last digits of naive Laplace noise refute epsilon = 1: mean bound", mean[DIGITS], 1.0),
        at_most("Integer noise has none: largest bound from digits", convergence[convergence.case == INTEGER].bound.max(), 0.0),
    ]  # fmt: skip
    if max(params.n_reports) >= 30:
        claims += [
            at_most("A client as stated keeps its promise: exact loss over promise", last.loss[KEPT] / last.promised[KEPT], 1 + ledger.SLACK),
            at_least("A redrawn permanent response does not: exact loss over promise", last.loss[REDRAWN] / last.promised[REDRAWN], 1.0),
            at_least("Nor does a bit that is never cleared: exact loss over promise", last.loss[UNCLEARED] / last.promised[UNCLEARED], 1.0),
            at_least("A redrawn response is caught from outside: bound over promise", last.bound[REDRAWN] / last.promised[REDRAWN], 1.0),
            at_least("So is a bit that is never cleared: bound over promise", last.bound[UNCLEARED] / last.promised[UNCLEARED], 1.0),
        ]  # fmt: skip
    if max(params.n_reports) >= 200:
        claims.append(at_least("A redrawn response tells the words of all users: share recovered", end[REDRAWN], 1.0))
    if most >= 30_000:
        claims.append(at_least("10 % less noise is refuted from outside: mean bound", mean[LESS], 1.0))
    return claims


def _values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    rows, boxes, digits = part(table, "ledger"), part(table, "box"), part(table, "digits")
    convergence, told, wrong = part(table, "convergence"), part(table, "recovered"), part(table, "failures")
    most, reports_ = int(convergence.runs.max()), int(told.n_reports.max())
    mean = convergence[convergence.runs == most].groupby("case").bound.mean()
    end = told[told.n_reports == reports_].groupby("case").recovered.mean()
    last = wrong[wrong.n_reports == reports_].set_index("case")
    how = rows.how.value_counts()
    return {
        "n_entries": len(rows),
        "n_tight": int(rows.tight.sum()),
        "n_exact": int(how.get(ledger.EXACT, 0)),
        "n_sensitivity": int(how.get(ledger.SENSITIVITY, 0)),
        "n_boxes": len(boxes),
        "n_boxes_nothing": int((boxes.bound == 0).sum()),
        "box_runs": params.box_runs,
        "most_runs": most,
        "most_reports": reports_,
        "n_users": params.n_users,
        "bound_right": float(mean[RIGHT]),
        "bound_less": float(mean[LESS]),
        "bound_digits": float(mean[DIGITS]),
        "most_possible": math.log(most / 3.7),
        "recovered_kept": float(end[KEPT]),
        "recovered_redrawn": float(end[REDRAWN]),
        "promised_permanent": float(last.promised[KEPT]),
        "loss_redrawn": float(last.loss[REDRAWN]),
        "loss_uncleared": float(last.loss[UNCLEARED]),
        "audit_redrawn": float(last.bound[REDRAWN]),
        "audit_uncleared": float(last.bound[UNCLEARED]),
        "share_finer": float(digits[(digits["count"] == 0) & (digits.digits > 53)].share.sum()),
    }
