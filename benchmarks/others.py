"""What other packages do for each task: a line of `METHODS` each, as their own simulations run them.

Each package has an environment of its own, so what a method needs is imported where it is prepared, before the clock starts.
"""

from __future__ import annotations

import importlib
import math
import string
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from job import Job, Prepare, Work, serve

warnings.simplefilter("ignore")
Pair = tuple[Any, Any]  # client and server
ROWS, WIDTH = 64, 1024  # of sketches, as ours

# pure-ldp: a user at a time


def same(value: int) -> int:
    return value


def collected(make: Callable[[Job], Pair], ask: Callable[[Any, Job], Any]) -> Prepare:
    """All users report to a new server, which is then asked."""

    def prepare(job: Job) -> Work:
        for part in ("frequency_oracles", "heavy_hitters"):  # not on the clock
            importlib.import_module(f"pure_ldp.{part}")
        users = job.load().tolist()

        def work() -> Any:
            client, server = make(job)
            for user in users:
                server.aggregate(client.privatise(user))
            return ask(server, job)

        return work

    return prepare


def pure_ldp(name: str, make: Callable[[Any, Any, Job], Pair]) -> Callable[[Job], Pair]:
    """The client and the server of this name."""

    def pair(job: Job) -> Pair:
        oracles = importlib.import_module("pure_ldp.frequency_oracles")
        return make(getattr(oracles, f"{name}Client"), getattr(oracles, f"{name}Server"), job)

    return pair


def of_a_domain(name: str, **settings: Any) -> Callable[[Job], Pair]:
    def make(client: Any, server: Any, job: Job) -> Pair:
        client, server = (each(job.epsilon, job.domain, index_mapper=same, **settings) for each in (client, server))
        return client, server

    return pure_ldp(name, make)


def apple(is_hadamard: bool) -> Callable[[Job], Pair]:
    def make(client: Any, server: Any, job: Job) -> Pair:
        made = server(job.epsilon, ROWS, WIDTH, is_hadamard=is_hadamard)
        return client(job.epsilon, made.get_hash_funcs(), WIDTH, is_hadamard=is_hadamard), made

    return pure_ldp("CMS", make)


def _sketch(client: Any, server: Any, job: Job) -> Pair:
    made = server(job.epsilon, ROWS, WIDTH)
    return client(job.epsilon, ROWS, WIDTH, made.get_hash_funcs()), made


def _response(client: Any, server: Any, job: Job) -> Pair:
    made = server(job.epsilon, job.domain, index_mapper=same)
    return client(job.epsilon, job.domain, made.get_hash_funcs(), index_mapper=same), made


count_sketch, hadamard_response = pure_ldp("PCS", _sketch), pure_ldp("HadamardResponse", _response)


def frequencies(make: Callable[[Job], Pair]) -> Prepare:
    return collected(make, lambda server, job: server.estimate_all(range(job.domain), suppress_warnings=True))


def heavy(name: str, oracle: Callable[[Job], Pair], **settings: Any) -> Prepare:
    """Of words of six letters."""

    def make(job: Job) -> Pair:
        found = importlib.import_module("pure_ldp.heavy_hitters")
        client, server = oracle(job)
        shared = {"max_string_length": 6, "index_mapper": same, "alphabet": set(string.ascii_lowercase), **settings}
        client = getattr(found, f"{name}Client")(job.epsilon, fo_client=client, **shared)
        return client, getattr(found, f"{name}Server")(job.epsilon, fo_server=server, **shared)

    return collected(make, most_frequent)


def most_frequent(server: Any, job: Job) -> dict[str, Any]:
    words, estimates = server.find_heavy_hitters(k=job.top)
    best = sorted(zip(estimates, words, strict=True), reverse=True)[: job.top]
    return {"words": [str(word) for _, word in best], "estimates": [float(count) for count, _ in best]}


# multi-freq-ldpy: compiled by numba before the clock starts


def multi_freq(module: str) -> Prepare:
    def prepare(job: Job) -> Work:
        from numba import njit

        oracle = importlib.import_module(f"multi_freq_ldpy.pure_frequency_oracles.{module}")
        client, aggregator = getattr(oracle, f"{module}_Client"), getattr(oracle, f"{module}_Aggregator_MI")
        of_domain = () if module == "UE" else (job.domain,)  # whose reports say it
        users = job.load().tolist()

        def work() -> Any:
            reports = [client(user, job.domain, job.epsilon) for user in users]
            return aggregator(reports, *of_domain, job.epsilon) * len(users)

        aggregator([client(users[0], job.domain, job.epsilon) for _ in range(2)], *of_domain, job.epsilon)
        njit(lambda seed: np.random.seed(seed))(job.seed)  # noqa: NPY002 - compiled code has a generator of its own
        return work

    return prepare


# dpcrpy: a step at a time


def counting(make: Callable[[Any, Job, Any], Any], gaussian: bool) -> Prepare:
    def prepare(job: Job) -> Work:
        import dpcrpy
        from dpcrpy.framework.noiMech import GaussNoiMech, LapNoiMech

        def made() -> Any:
            noise = GaussNoiMech(epsilon=job.epsilon, delta=job.delta) if gaussian else LapNoiMech(epsilon=job.epsilon)
            return make(dpcrpy, job, noise)

        streams = [stream.tolist() for stream in job.load()]
        if make is optimal_tree:  # the package keeps these solutions on disk; its users pay for them once
            made().preSolvePrivateBudget()

        def work() -> Any:
            released = []
            for bits in streams:
                mechanism = made()
                released.append([mechanism.dpRelease(bit)[0] for bit in bits])
            return released

        return work

    return prepare


def powers(name: str, missing: int = 0) -> Callable[[Any, Job, Any], Any]:
    """A mechanism for 2^k - `missing` steps: the least k that is enough."""
    return lambda dpcrpy, job, noise: getattr(dpcrpy, name)(kOrder=math.ceil(math.log2(job.n + missing)), noiMech=noise)


def optimal_tree(dpcrpy: Any, job: Job, noise: Any) -> Any:
    return dpcrpy.KTCRComp(T=job.n, k=4, noiMech=noise)


def optimal_bits(dpcrpy: Any, job: Job, noise: Any) -> Any:
    return dpcrpy.AuBCRComp(job.n, noiMech=noise)


# opendp


def opendp(method: Callable[[Any, Job], Work]) -> Prepare:
    def prepare(job: Job) -> Work:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        return method(dp, job)

    return prepare


def draws(kind: Any) -> Prepare:
    def method(dp: Any, job: Job) -> Work:
        atom = dp.atom_domain(T=int) if kind is int else dp.atom_domain(T=float, nan=False)
        mechanism = dp.m.make_laplace(dp.vector_domain(atom), dp.l1_distance(T=kind), scale=10.0)
        zeros = [kind(0)] * job.n
        return lambda: mechanism(zeros)

    return opendp(method)


def consistent_tree(dp: Any, job: Job) -> Work:
    """All counts at once: noisy sums of blocks made consistent, then prefix sums of the leaves."""
    streams = [stream.tolist() for stream in job.load()]

    def work() -> Any:
        branching = dp.t.choose_branching_factor(job.n)
        counts = dp.vector_domain(dp.atom_domain(T=int))
        blocks = dp.t.make_b_ary_tree(counts, dp.l1_distance(T=int), leaf_count=job.n, branching_factor=branching)
        mechanism = blocks >> dp.m.then_laplace(scale=blocks.map(1) / job.epsilon)
        assert mechanism.map(1) <= job.epsilon * (1 + 1e-9)
        consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
        return [_running(consistent(mechanism(bits))[: job.n]) for bits in streams]

    return work


def _running(leaves: Any) -> Any:
    total, sums = 0.0, []
    for leaf in leaves:
        total += leaf
        sums.append(total)
    return sums


def composed(concentrated: bool) -> Prepare:
    """The epsilon of each of n Laplace mechanisms, composed as pure or as zero-concentrated privacy."""

    def method(dp: Any, job: Job) -> Work:
        def laplace(scale: float) -> Any:
            return dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=scale)

        def total(scale: float) -> float:
            if not concentrated:
                return float(dp.c.make_composition([laplace(scale)] * job.n).map(1.0))
            together = dp.c.make_composition([dp.c.make_pureDP_to_zCDP(laplace(scale))] * job.n)
            return float(dp.c.make_zCDP_to_approxDP(together).map(1.0).epsilon(job.delta))

        def work() -> Any:
            bounds = (1.0 / job.epsilon, 2.0 * job.n / (1.0 if concentrated else job.epsilon))
            return laplace(dp.binary_search(lambda scale: total(scale) <= job.epsilon, bounds=bounds)).map(1.0)

        return work

    return opendp(method)


# dp-accounting


def loss_distribution(job: Job) -> Work:
    """The epsilon of each of n randomized responses, the worst of all mechanisms of that epsilon."""
    from dp_accounting.pld import privacy_loss_distribution

    def total(each: float) -> float:
        lie, interval = 2 / (1 + math.exp(each)), min(1e-4, each / 20)
        one = privacy_loss_distribution.from_randomized_response(lie, 2, value_discretization_interval=interval)
        return float(one.self_compose(job.n).get_epsilon_for_delta(job.delta))

    def work() -> Any:
        low, high = job.epsilon / job.n / 2, 2 * job.epsilon / math.sqrt(job.n)
        while high / low > 1 + 1e-4:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if total(middle) <= job.epsilon else (low, middle)
        return low

    return work


# diffprivlib


def one_by_one(name: str, **settings: Any) -> Prepare:
    def prepare(job: Job) -> Work:
        from diffprivlib import mechanisms

        mechanism = getattr(mechanisms, name)(epsilon=0.1, sensitivity=1, random_state=job.seed, **settings)
        zero = 0 if name == "Geometric" else 0.0
        return lambda: [mechanism.randomise(zero) for _ in range(job.n)]

    return prepare


def median(job: Job) -> Work:
    """One user changes two of the means, so that each release gets half of the user's epsilon."""
    from diffprivlib.tools import median

    half, means = job.epsilon / 2, job.load()
    return lambda: [median(row, epsilon=half, bounds=(0, 1), random_state=place) for place, row in enumerate(means)]


def accountant(job: Job) -> Work:
    from diffprivlib import BudgetAccountant

    return lambda: BudgetAccountant(epsilon=job.epsilon, delta=job.delta, slack=job.delta).remaining(job.n)[0]


# task, package, method, the method of ours that does the same job, how it is prepared
METHODS: list[tuple[str, str, str, str, Prepare]] = [
    ("frequency", "pure-ldp", "OLH", "OLH", frequencies(of_a_domain("LH", use_olh=True))),
    ("frequency", "pure-ldp", "fast OLH", "OLH", frequencies(of_a_domain("FastLH", k=500, use_olh=True))),
    ("frequency", "pure-ldp", "CMS", "projective", frequencies(apple(False))),
    ("frequency", "pure-ldp", "HCMS", "FreqOracle", frequencies(apple(True))),
    ("frequency", "pure-ldp", "count sketch", "FreqOracle", frequencies(count_sketch)),
    ("frequency", "pure-ldp", "Hadamard response", "FreqOracle", frequencies(hadamard_response)),
    ("frequency", "pure-ldp", "Hadamard mechanism", "FreqOracle",
     frequencies(of_a_domain("HadamardMech", t=None, use_optimal_t=True))),
    ("frequency", "multi-freq-ldpy", "GRR", "projective, consistent", multi_freq("GRR")),
    ("frequency", "multi-freq-ldpy", "OUE", "projective, consistent", multi_freq("UE")),
    ("frequency", "multi-freq-ldpy", "subset selection", "projective, consistent", multi_freq("SS")),
    ("frequency", "multi-freq-ldpy", "OLH", "OLH, consistent", multi_freq("LH")),
    ("heavy hitters", "pure-ldp", "TreeHist", "TreeHist", heavy("TreeHist", count_sketch, fragment_length=2)),
    ("heavy hitters", "pure-ldp", "PEM", "TreeHist", heavy("PEM", apple(True), fragment_length=2, start_length=0)),
    ("heavy hitters", "pure-ldp", "SFP", "TreeHist", heavy("SFP", apple(True), fragment_length=1)),
    ("counting", "dpcrpy", "tree", "tree", counting(powers("BinMech"), False)),
    ("counting", "dpcrpy", "Honaker", "tree", counting(powers("Honaker"), False)),
    ("counting", "dpcrpy", "FDA", "best tree", counting(powers("FDA", 1), False)),
    ("counting", "dpcrpy", "BCRG", "square root", counting(powers("BCRG", 1), True)),
    ("counting", "dpcrpy", "ABCRG", "square root", counting(powers("ABCRG", 1), True)),
    ("counting", "dpcrpy", "AuBCR", "square root", counting(optimal_bits, True)),
    ("counting", "dpcrpy", "4-ary tree", "square root", counting(optimal_tree, True)),
    ("counting", "opendp", "consistent tree", "best tree", opendp(consistent_tree)),
    ("noise", "opendp", "discrete Laplace", "discrete Laplace", draws(int)),
    ("noise", "opendp", "Laplace", "Laplace", draws(float)),
    ("noise", "diffprivlib", "geometric", "discrete Laplace", one_by_one("Geometric")),
    ("noise", "diffprivlib", "Laplace", "Laplace", one_by_one("Laplace", delta=0.0)),
    ("accounting", "opendp", "zCDP", "optimal", composed(True)),
    ("accounting", "opendp", "basic", "basic", composed(False)),
    ("accounting", "diffprivlib", "accountant", "optimal", accountant),
    ("accounting", "dp-accounting", "loss distributions", "optimal", loss_distribution),
    ("median", "diffprivlib", "median", "PrivateMedian", median),
]  # fmt: skip

if __name__ == "__main__":
    serve({(task, name): prepare for task, package, name, _, prepare in METHODS if package == sys.argv[1]})
