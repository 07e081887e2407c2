"""All claims of every notebook at seeds that nobody has looked at: which of them fail?

    python benchmarks/claims.py                      (or: make claims)
    python benchmarks/claims.py --seeds 5 sparse_vector/threshold_monitor

Seeds are drawn from the operating system and kept with what they gave, none is left out. The same command goes on where it
was stopped, with the runs whose code and parameters are still the same; writes benchmarks/results/claims*.csv, which the
book shows.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time

import measure
import pandas as pd

from evolvingdp.book import checkout
from evolvingdp.book.checkout import Project, params_of, run_of

COLUMNS = ["notebook", "preset", "seed", "library", "parameters", "date", "seconds", "claims", "failed"]


def main() -> None:
    asked = measure.asked(__doc__, notebooks=[], seeds=5, preset="quick")
    project = Project()
    names = [project.notebook(name) for name in asked.notebooks] or project.notebooks()
    runs: pd.DataFrame | None = None
    for name in names:
        now = checkout.made_of(name)["library"], parameters(name, asked.preset)
        for _ in range(asked.seeds - len(kept(name, asked.preset, now))):
            row = one(name, asked.preset, now)
            runs = pd.concat([stored(), pd.DataFrame([row])], ignore_index=True)
            measure.table("claims_runs", runs)
            print(f"{name}, seed {row['seed']}: {row['claims']} claims, failed: {row['failed']}", flush=True)
            show(runs)
    if runs is None:  # all have been tried, which whoever asks again wants to see
        show(stored())


def stored() -> pd.DataFrame:
    file = measure.RESULTS / "claims_runs.csv"
    return pd.read_csv(file, keep_default_na=False) if file.is_file() else pd.DataFrame(columns=COLUMNS)


def parameters(name: str, preset: str) -> str:
    """A digest of what a preset says."""
    values = params_of(name).make(preset).as_json()
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def kept(name: str, preset: str, now: tuple[str, str]) -> pd.DataFrame:
    """The runs of a notebook that today's code would make again, with today's parameters."""
    runs = stored()
    same = (runs.notebook == name) & (runs.preset == preset)
    return runs[same & (runs.library == now[0]) & (runs.parameters == now[1])]


def one(name: str, preset: str, now: tuple[str, str]) -> dict[str, object]:
    """A run at a seed that is drawn now; which claims fail, as JSON. One that ends with an error is kept, too."""
    seed, started, claims = secrets.randbelow(2**31), time.process_time(), []
    try:
        claims = run_of(name)(params_of(name).make(preset), seed).claims
        failed = [f"{claim.claim}: {claim.value:.4g}, {claim.bound_in_words}" for claim in claims if not claim.holds]
    except Exception as error:
        failed = [f"no claim was tried: {type(error).__name__}: {error}"]
    cost = time.strftime("%Y-%m-%d"), round(time.process_time() - started, 1)
    row = name, preset, seed, *now, *cost, len(claims), json.dumps(failed, ensure_ascii=False)
    return dict(zip(COLUMNS, row, strict=True))


def show(runs: pd.DataFrame) -> None:
    """The tables of the book: a row a notebook, of the runs of its newest code; and a row a claim that failed once."""
    made = runs.library + runs.parameters
    newest = runs[made == made.groupby([runs.notebook, runs.preset]).transform("last")]
    summary = newest.groupby(["notebook", "preset"]).agg(
        seeds=("seed", "count"),
        claims=("claims", "last"),
        failures=("failed", lambda lists: sum(len(json.loads(one)) for one in lists)),
        last=("date", "last"),
    )
    failures = [
        {"notebook": row.notebook, "seed": row.seed, "claim, value, bound": told, "date": row.date, "code": state}
        for state, part in (("this", newest), ("since mended", runs.drop(newest.index)))
        for row in part.itertuples()
        for told in json.loads(str(row.failed))
    ]
    none = [{"notebook": "none", "seed": "", "claim, value, bound": "", "date": "", "code": ""}]
    measure.table("claims_failed", pd.DataFrame(failures or none))
    made_of = {str(name): str(code) for name, code in newest.groupby("notebook").library.last().items()}
    measure.write("claims", summary.reset_index(), "make claims", made_of)


if __name__ == "__main__":
    main()
