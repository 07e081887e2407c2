"""pure-ldp: its clients and servers as its own simulations run them, a user at a time."""

from __future__ import annotations

import string
import warnings
from collections.abc import Callable
from typing import Any

from job import Job, Work, serve
from pure_ldp import frequency_oracles as fo
from pure_ldp.heavy_hitters import PEMClient, PEMServer, SFPClient, SFPServer, TreeHistClient, TreeHistServer

warnings.simplefilter("ignore")
ROWS, WIDTH = 64, 1024  # of sketches, as ours
Pair = tuple[Any, Any]


def same(value: int) -> int:
    return value


def olh(job: Job) -> Pair:
    settings = {"use_olh": True, "index_mapper": same}
    return fo.LHClient(job.epsilon, job.domain, **settings), fo.LHServer(job.epsilon, job.domain, **settings)


def fast_olh(job: Job) -> Pair:
    settings = {"k": 500, "use_olh": True, "index_mapper": same}
    return fo.FastLHClient(job.epsilon, job.domain, **settings), fo.FastLHServer(job.epsilon, job.domain, **settings)


def apple(is_hadamard: bool) -> Callable[[Job], Pair]:
    def pair(job: Job) -> Pair:
        server = fo.CMSServer(job.epsilon, ROWS, WIDTH, is_hadamard=is_hadamard)
        return fo.CMSClient(job.epsilon, server.get_hash_funcs(), WIDTH, is_hadamard=is_hadamard), server

    return pair


def count_sketch(job: Job) -> Pair:
    server = fo.PCSServer(job.epsilon, ROWS, WIDTH)
    return fo.PCSClient(job.epsilon, ROWS, WIDTH, server.get_hash_funcs()), server


def hadamard_response(job: Job) -> Pair:
    server = fo.HadamardResponseServer(job.epsilon, job.domain, index_mapper=same)
    client = fo.HadamardResponseClient(job.epsilon, job.domain, server.get_hash_funcs(), index_mapper=same)
    return client, server


def hadamard_mechanism(job: Job) -> Pair:
    settings = {"t": None, "use_optimal_t": True, "index_mapper": same}
    client = fo.HadamardMechClient(job.epsilon, job.domain, **settings)
    return client, fo.HadamardMechServer(job.epsilon, job.domain, **settings)


def collected(make: Callable[[Job], Pair], ask: Callable[[Any, Job], Any]) -> Callable[[Job], Work]:
    """All users report to a new server, which is then asked."""

    def prepare(job: Job) -> Work:
        users = job.load().tolist()

        def work() -> Any:
            client, server = make(job)
            for user in users:
                server.aggregate(client.privatise(user))
            return ask(server, job)

        return work

    return prepare


def frequencies(make: Callable[[Job], Pair]) -> Callable[[Job], Work]:
    return collected(make, lambda server, job: server.estimate_all(range(job.domain), suppress_warnings=True))


ALPHABET = set(string.ascii_lowercase)


def tree_hist(job: Job, length: int = 6, step: int = 2) -> Pair:
    client_oracle, oracle_server = count_sketch(job)
    shared = {"max_string_length": length, "fragment_length": step, "alphabet": ALPHABET, "index_mapper": same}
    client = TreeHistClient(job.epsilon, fo_client=client_oracle, **shared)
    return client, TreeHistServer(job.epsilon, fo_server=oracle_server, **shared)


def prefix_extending(job: Job, length: int = 6, step: int = 2) -> Pair:
    client_oracle, oracle_server = apple(True)(job)
    shared = {"max_string_length": length, "fragment_length": step, "alphabet": ALPHABET, "index_mapper": same}
    shared["start_length"] = 0
    client = PEMClient(job.epsilon, fo_client=client_oracle, **shared)
    return client, PEMServer(job.epsilon, fo_server=oracle_server, **shared)


def apple_fragments(job: Job, length: int = 6) -> Pair:
    client_oracle, oracle_server = apple(True)(job)
    shared = {"max_string_length": length, "fragment_length": 1, "index_mapper": same}
    client = SFPClient(job.epsilon, fo_client=client_oracle, alphabet=set(ALPHABET), **shared)
    return client, SFPServer(job.epsilon, fo_server=oracle_server, alphabet=set(ALPHABET), **shared)


def heavy(make: Callable[[Job], Pair]) -> Callable[[Job], Work]:
    return collected(make, most_frequent)


def most_frequent(server: Any, job: Job) -> dict[str, Any]:
    words, estimates = server.find_heavy_hitters(k=job.top)
    best = sorted(zip(estimates, words, strict=True), reverse=True)[: job.top]
    return {"words": [str(word) for _, word in best], "estimates": [float(count) for count, _ in best]}


METHODS: dict[tuple[str, str], Callable[[Job], Work]] = {
    ("frequency", "OLH"): frequencies(olh),
    ("frequency", "fast OLH"): frequencies(fast_olh),
    ("frequency", "CMS"): frequencies(apple(False)),
    ("frequency", "HCMS"): frequencies(apple(True)),
    ("frequency", "count sketch"): frequencies(count_sketch),
    ("frequency", "Hadamard response"): frequencies(hadamard_response),
    ("frequency", "Hadamard mechanism"): frequencies(hadamard_mechanism),
    ("heavy hitters", "TreeHist"): heavy(tree_hist),
    ("heavy hitters", "PEM"): heavy(prefix_extending),
    ("heavy hitters", "SFP"): heavy(apple_fragments),
}

if __name__ == "__main__":
    serve(METHODS)
