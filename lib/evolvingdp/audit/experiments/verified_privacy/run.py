"""Verified privacy: the ledger, audits from outside, two failures of real packages, and what floating point gives away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from evolvingdp.audit.empirical import auditor, failures
from evolvingdp.audit.empirical.black_boxes import black_boxes
from evolvingdp.audit.exact import reports
from evolvingdp.audit.exact.laws import worst_loss
from evolvingdp.audit.experiments.verified_privacy.claims import claims, values
from evolvingdp.audit.experiments.verified_privacy.params import (
    DIGITS,
    INTEGER,
    KEPT,
    LESS,
    REDRAWN,
    RIGHT,
    UNCLEARED,
    Params,
)
from evolvingdp.audit.experiments.verified_privacy.tables import computed
from evolvingdp.audit.ledger import listing
from evolvingdp.core.noise import DiscreteLaplace, Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters.rappor import Rappor

NOTEBOOK = "audit/verified_privacy"
_ONE_BIT = (1, 2)  # Bloom filters with one bit each


def run(params: Params, seed: int) -> Result[Params]:
    """Rows of part "ledger" (a mechanism), "box" (an audit), "convergence", "failures", "recovered" and "digits"."""
    promises = listing.table(params.one_in).assign(part="ledger")
    rows = [
        *_boxes(params, seed, promises), *_convergence(params, seed), *_failures(params, seed), *_recovered(params, seed),
        *_digits(params, seed),
    ]  # fmt: skip
    table = pd.concat([promises, pd.DataFrame(rows)], ignore_index=True)
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _boxes(params: Params, seed: int, promises: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """An audit of each mechanism that has one and a computed row; the ledger's first row is such a one."""
    by_id = computed(promises).set_index("id")
    for box in black_boxes():
        if box.entry not in by_id.index:
            continue
        promise = by_id.loc[box.entry]
        bound = auditor.audit(
            box.mechanism, box.inputs, stream(seed, "box", box.entry), runs=params.box_runs, delta=float(promise.delta),
            confidence=params.box_confidence,
        )  # fmt: skip
        yield {
            "part": "box", "id": box.entry, "mechanism": promise.mechanism, "promised": promise.promised, "delta": promise.delta,
            "bound": bound.epsilon, "runs": params.box_runs, "event": bound.event,
        }  # fmt: skip


def _convergence(params: Params, seed: int) -> Iterator[dict[str, Any]]:
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


def _failures(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """The exact loss against the number of reports, and an audit from outside, for the right client and both wrong ones."""
    settings, uncleared = Rappor(n_bits=4), failures.NeverClears(n_bits=4)
    one = worst_loss(reports.rappor_laws(settings, _ONE_BIT, 1))
    for case in (KEPT, REDRAWN, UNCLEARED):
        of = uncleared if case == UNCLEARED else settings
        for n_reports in params.n_reports:
            loss = n_reports * one if case == REDRAWN else of.epsilon_of_reports(n_reports)
            client = failures.rappor_client(of, n_reports, redrawn=case == REDRAWN)
            bound = auditor.audit(
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
