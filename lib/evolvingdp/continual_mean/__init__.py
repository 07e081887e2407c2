"""User-level private mean of a stream: George, Ramesh, Singh and Tyagi (2022), and past it.

`recommended` and `users_alike` make a `UserMean`, step by step or a whole stream at once; names of the paper make `Blocks`,
over whole streams; `Days` has values a day.  `BinaryMechanism` has running sums of elements that are one person's each.
"""

from evolvingdp.continual_mean.algorithms import full, multiple_trees, naive, per_step, running_mean, single_tree, wishful
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism, best_tree
from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.choosing import recommended, users_alike
from evolvingdp.continual_mean.prefix_sums import Buffered, PrefixSums, Tree
from evolvingdp.continual_mean.settings import Release, Releases
from evolvingdp.continual_mean.streams import arrivals, bits, readings
from evolvingdp.continual_mean.theory import diverse, error_bound, laplace_sum_tail
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.continual_mean.windows import Days, Snapshot

__all__ = [
    "BinaryMechanism", "Blocks", "Buffered", "Days", "PrefixSums", "Release", "Releases", "Snapshot",
    "Tree", "UserMean", "arrivals", "best_tree", "bits", "diverse", "error_bound", "full", "laplace_sum_tail",
    "multiple_trees", "naive", "per_step", "readings", "recommended", "running_mean", "single_tree",
    "users_alike", "wishful",
]  # fmt: skip
