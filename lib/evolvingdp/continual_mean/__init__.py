"""User-level private mean of a stream: George, Ramesh, Singh and Tyagi (2022), and past it.

Settings are a `UserMean`, made by `recommended` (for any users), `users_alike` or a name of the paper; the modules `online`
(step by step) and `offline`
(a whole stream at once) run them, `coordinates` in several dimensions.  `BinaryMechanism` has running sums of elements that
are one person's each.
"""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    algorithms=["bands", "full", "multiple_trees", "naive", "running_mean", "single_tree", "wishful"],
    binary_mechanism=["BinaryMechanism", "best_branching", "best_tree"],
    choosing=["recommended", "users_alike"],
    offline=["Releases"],
    online=["Release"],
    per_step=["PerStepLaplace"],
    prefix_sums=["Anytime", "BalancedTree", "Banded", "Buffered", "PrefixSums", "Toeplitz", "Tree"],
    streams=["arrivals", "bits", "readings"],
    theory=["disagreement", "diverse", "error_bound", "laplace_sum_tail"],
    user_mean=["UserMean"],
    windows=["Days", "Snapshot", "between"],
    **{"sums.recorded": ["RecordedSums"]},
)
