"""Each notebook's main metric, which a sweep's summary shows, is one of its values, and a measured one."""

from __future__ import annotations

import json
import math

import pytest

from evolvingdp.book.checkout import Project, metric_of, params_of


@pytest.mark.parametrize("notebook", Project().notebooks())
def test_the_declared_metric_is_one_of_the_values_that_a_run_gives(built_book, notebook):
    metric = metric_of(notebook)
    values = json.loads((built_book.results / notebook / "values.json").read_text())
    assert math.isfinite(values[metric.name])
    assert values[metric.name] >= 0, "a sweep's band ends at zero"
    assert metric.name not in params_of(notebook).model_fields, "it is measured"
