"""User-level private mean of a stream: George, Ramesh, Singh and Tyagi (2022), and past it.

Settings are a `UserMean`, made by `recommended` or by a name of the paper; the modules `online` (step by step) and `offline`
(a whole stream at once) run them, `coordinates` in several dimensions.  `BinaryMechanism` has running sums of elements that
are one person's each.
"""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    algorithms=["full", "multiple_trees", "naive", "recommended", "running_mean", "shares_for", "single_tree", "wishful"],
    binary_mechanism=["BinaryMechanism"],
    offline=["Releases"],
    per_step=["PerStepLaplace"],
    prefix_sums=["PrefixSums", "Toeplitz", "Tree", "best_branching"],
    streams=["arrivals", "bits", "readings"],
    theory=["diverse", "error_bound", "laplace_sum_tail"],
    user_mean=["Release", "UserMean"],
)
