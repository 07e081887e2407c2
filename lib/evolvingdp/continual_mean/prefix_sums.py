"""Noise for all prefix sums of a stream: the trees and factorizations of `sums`, by one name each.

Each has `capacity`; `l1` and `l2_of(uses, gap)`, what elements that change by at most one move of what noise is added to;
`relative_variance`, `variances` and `difference_variance`, exact; and the noise itself, `all(count, tape)` at
once and `online(tape)` one by one, bit for bit the same.
"""

from evolvingdp.continual_mean.sums.anytime import Anytime as Anytime
from evolvingdp.continual_mean.sums.balanced import BalancedTree as BalancedTree
from evolvingdp.continual_mean.sums.banded import Banded as Banded
from evolvingdp.continual_mean.sums.buffered import Buffered as Buffered
from evolvingdp.continual_mean.sums.toeplitz import Toeplitz as Toeplitz
from evolvingdp.continual_mean.sums.trees import Tree as Tree
from evolvingdp.continual_mean.sums.trees import height as height

PrefixSums = Tree | BalancedTree | Toeplitz | Buffered | Banded | Anytime
