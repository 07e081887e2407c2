"""The shape that every notebook's experiment has, and what their tables and figures share.

All of one notebook is the folder `evolvingdp/<paper>/experiments/<notebook>/`: `params` (the class `Params`), `run` (the
function `run(params, seed) -> Result`), `tables`, `claims` and `figures`, whose functions return `Figure`.
"""

from evolvingdp.book.params import Metric, Params, distinct, parameter
from evolvingdp.book.result import Claim, Figure, Result, Scalar, at_least, at_most, within
from evolvingdp.core.checks import ParameterError

__all__ = [
    "Claim",
    "Figure",
    "Metric",
    "ParameterError",
    "Params",
    "Result",
    "Scalar",
    "at_least",
    "at_most",
    "distinct",
    "parameter",
    "within",
]
