"""The command that runs the notebook nearest to a question, at its values as far as the notebook's parameters go."""

from __future__ import annotations

from evolvingdp.planning.question import Question


def _command(notebook: str, **values: tuple[float, float, float]) -> str:
    """`values`: what is asked for, and the least and the most that the notebook takes."""
    set_to = {name: min(max(value, low), high) for name, (value, low, high) in values.items()}
    other = [name for name, (value, _, _) in values.items() if set_to[name] != value]
    line = " ".join([f"evolvingdp run {notebook}", *(f"-p {name} {value:.12g}" for name, value in set_to.items())])
    return line + (f"   # {', '.join(other)}: as near as the notebook goes" if other else "")


def once_run(question: Question) -> str:
    """All local methods for a mean, at one setting."""
    line = _command(
        "evolving/choosing",
        n_users=(question.users, 10**4, 10**9),
        horizon=(question.periods, 16, 2**13),
        epoch_length=(question.readings, 1, 10**8),
        epsilon=(question.epsilon, 0.011, 20),
        changes=(question.moves, 1, 15),
    )
    command, mark, other = line.partition("   #")
    return f"{command} -p changes_sweep 1,3,7,15{mark}{other}"  # all below any horizon


def words_run(question: Question) -> str:
    return _command(
        "heavy_hitters/treehist",
        n_users=(question.users, 10**6, 10**10),
        epsilon=(question.epsilon, 1, 10),
    )


def oracle_run(question: Question) -> str:
    return _command(
        "heavy_hitters/frequency_oracle",
        n_users=(question.users, 1000, 10**10),
        epsilon=(question.epsilon, 1e-4, 20),
        n_items=(question.items, 50, 10**5),
    )


def words_heavy_run(question: Question) -> str:
    return _command(
        "evolving/heavy_thresh",
        n_users=(question.users, 10**7, 10**10),
        epsilon=(question.epsilon, 4, 20),
        epoch_length=(question.readings, 4 * 10**6, 10**9),
    )


def mean_run(question: Question) -> str:
    return _command(
        "continual_mean/past_the_paper",
        n_users=(question.users, 100, 10**5),
        samples_per_user=(question.periods * question.readings, 4, 2**12),
        epsilon=(question.epsilon, 0.01, 20),
        delta=(question.failure or 1e-9, 1e-12, 0.01),
    )


def sums_run(question: Question) -> str:
    return _command(
        "continual_mean/binary_tree",
        horizon=(question.periods, 64, 10**8),
        epsilon=(question.epsilon, 1e-4, 20),
        delta=(question.failure or 1e-9, 1e-12, 0.01),
    )


def hot_run(question: Question) -> str:
    return _command(
        "sparse_vector/shifting_heavy_hitters",
        n_users=(question.users, 4000, 10**7),
        epsilon=(question.epsilon, 0.1, 5),
        delta=(question.failure or 1e-9, 1e-20, 0.01),
        reports=(question.taking_part, 3, 1000),
    )
