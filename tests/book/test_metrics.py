"""Each notebook's main metric, which a sweep's summary shows, and what of its table a sweep's table could not hold."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from evolvingdp.book.checkout import Project, metric_of, params_of

SWEEP_S_OWN = {*["point", "seed", "command", "commit", "version", "library_sha256", "data_sha256", "python", "packages"]}


@pytest.mark.parametrize("notebook", Project().notebooks())
def test_the_declared_metric_is_one_of_the_values_that_a_run_gives(built_book, notebook):
    metric = metric_of(notebook)
    values = json.loads((built_book.results / notebook / "values.json").read_text())
    assert isinstance(values[metric.name], float | int)
    assert math.isfinite(values[metric.name])
    assert values[metric.name] >= 0, "a sweep's band ends at zero"
    assert metric.name not in params_of(notebook).lines, "it is measured"
    assert 10 < len(metric.meaning) < 100
    columns = set(pd.read_csv(built_book.results / notebook / "results.csv", nrows=0).columns)
    assert not columns & SWEEP_S_OWN, "a sweep adds these"
    assert not [name for name in columns if name.startswith("param_")]
