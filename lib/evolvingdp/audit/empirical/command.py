"""`evolvingdp audit`: from its options to lines and an exit code, which is `REFUTED` for a verdict alone."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from evolvingdp.audit.empirical import auditor, features, outside
from evolvingdp.core.checks import ParameterError
from evolvingdp.core.seeds import stream

KEPT, REFUTED, FAILS = 0, 1, 3  # 2 is wrong use


def run(**options: Any) -> tuple[list[str], int]:
    """What to print, and the exit code.  Raises ValueError, one line, for what allows no audit."""
    with outside.no_way_out():
        return _run(**options)


def _run(
    mechanism: str,
    inputs: str | None,
    domain: str | None,
    epsilon: float | None,
    delta: float,
    statistic: str | None,
    floating_point: bool,
    runs: int,
    confidence: float,
    seed: int,
    report: Path | None,
) -> tuple[list[str], int]:
    if epsilon is not None and not math.isfinite(epsilon):
        raise ParameterError(f"epsilon must be >= 0 and finite, got {epsilon}")
    if runs > 10**8:
        raise ParameterError(f"runs must be <= 100000000, got {runs:.3g}")
    if (inputs is None) == (domain is None):
        raise ParameterError("either --inputs or --domain must be given, such as --inputs '0, 1'")
    if report is not None and str(report) != "-" and not _can_be_written(report):
        raise ParameterError(f"json must be a file in a folder that can be written, got {report}")
    values, pairs = outside.domain_of(domain) if domain else outside.inputs_of(str(inputs))
    function = outside.Guarded(auditor.with_generator(outside.load(mechanism)))
    shown = _guarded(statistic, outside.load(statistic, "statistic")) if statistic else None
    options: dict[str, Any] = {"delta": delta, "runs": runs, "confidence": confidence, "pairs": pairs}
    try:
        bound = auditor.audit(function, values, stream(seed, "audit", mechanism), statistic=shown, **options)
        digits = None
        if floating_point:
            options["statistic"] = features.digits(values)
            digits = auditor.audit(function, values, stream(seed, "digits", mechanism), **options)
    except ParameterError:
        raise
    except RecursionError:
        raise ParameterError(
            f"{mechanism}: output must not be nested hundreds of levels deep; a statistic can make some of it"
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"{mechanism}: {' '.join(str(error).split())}") from None
    except Exception as error:  # a traceback would end with the code of a verdict
        return [f"Error: no verdict on {mechanism}: {outside.told(error)}"], FAILS
    if function.fails_always:
        return [f"Error: {mechanism} fails in every run: {function.first}"], FAILS
    lines = [outside.sentence(bound)]
    if not features.can_learn():
        lines.append("scikit-learn is not installed, so that no classifier looked at outputs of several numbers")
    lines += [function.sentence()] if function.failures else []
    try:
        told = outside.report(mechanism, bound, epsilon, digits)
        if report is not None:
            text = json.dumps(told, indent=1) + "\n"
            lines.append(text.rstrip()) if str(report) == "-" else report.write_text(text)
    except OSError as error:  # the disk is full, or the folder has gone
        return [*lines, f"Error: {outside.told(error)}"], FAILS
    refuted = epsilon is not None and bound.refutes(epsilon)
    at = f" at delta = {delta:g}" if delta else ""
    if refuted:
        lines.append(f"refuted: {mechanism} is not {epsilon:g}-differentially private{at}")
    elif epsilon is not None:
        lines.append(f"epsilon = {epsilon:g} is not refuted, which proves nothing: other inputs or more runs may do it")
    if digits is not None:
        apart = digits.refutes(epsilon or 0.0)
        lines.append(
            f"floating point: the digits {'tell' if apart else 'were not seen to tell'} the inputs apart, "
            f"epsilon >= {digits.epsilon:.3f} from them alone"
        )
        refuted = refuted or (apart and epsilon is not None)
    return lines, REFUTED if refuted else KEPT


def _can_be_written(path: Path) -> bool:
    """By trying: who is allowed to may still not be able to."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent):
            return not os.path.lexists(path) or (path.is_file() and os.access(path, os.W_OK)) or path.is_char_device()
    except OSError:
        return False


def _guarded(name: str, statistic: Any) -> Any:
    """A statistic that leaves alone what stands for an exception, and may raise none itself."""

    def guarded(output: Any) -> Any:
        try:
            return output if isinstance(output, features.Kind) else statistic(output)
        except Exception as error:
            raise ParameterError(f"statistic {name} must take every output, and raises {outside.told(error)}") from None

    return guarded
