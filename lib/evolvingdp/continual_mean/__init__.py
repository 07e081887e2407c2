"""User-level private mean of a stream: George, Ramesh, Singh and Tyagi (2022), and past it.

`recommended` makes a `UserMean`, for any users, step by step or a whole stream at once; `users_alike` and names of the paper
make `Blocks`, over whole streams; `coordinates` has several dimensions, `Days` values a day.  `BinaryMechanism` has running
sums of elements that are one person's each.
"""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    algorithms=["full", "multiple_trees", "naive", "running_mean", "single_tree", "wishful"],
    binary_mechanism=["BinaryMechanism", "best_tree"],
    blocks=["Blocks"],
    choosing=["recommended", "users_alike"],
    per_step=["PerStepLaplace"],
    prefix_sums=["Buffered", "PrefixSums", "Tree"],
    settings=["Release", "Releases"],
    streams=["arrivals", "bits", "readings"],
    theory=["diverse", "error_bound", "laplace_sum_tail"],
    user_mean=["UserMean"],
    windows=["Days", "Snapshot"],
)
