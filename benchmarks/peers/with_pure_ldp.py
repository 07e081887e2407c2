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


def unary(job: Job) -> Pair:
    settings = {"use_oue": True, "index_mapper": same}
    return fo.UEClient(job.epsilon, job.domain, **settings), fo.UEServer(job.epsilon, job.domain, **settings)


def direct(job: Job) -> Pair:
    return (
        fo.DEClient(job.epsilon, job.domain, index_mapper=same),
        fo.DEServer(job.epsilon, job.domain, index_mapper=same),
    )


def rappor(job: Job) -> Pair:
    """One hash function and as many bits as values, which is when the package's epsilon is stated for it."""
    client = fo.RAPPORClient(0.0, 64, [], num_of_cohorts=8, index_mapper=same)
    flip = client.convert_eps_to_f(job.epsilon)
    server = fo.RAPPORServer(flip, 64, 1, job.domain, num_of_cohorts=8, index_mapper=same)
    return fo.RAPPORClient(flip, 64, server.hash_family, num_of_cohorts=8, index_mapper=same), server


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


def reports(make: Callable[[Job], Pair], supports: Callable[[Pair, Any, int], bool]) -> Callable[[Job], Work]:
    """How often a report of value 1 and one of value 0 support value 1, in n runs each."""

    def prepare(job: Job) -> Work:
        def work() -> Any:
            pair = make(job)
            return [sum(supports(pair, pair[0].privatise(value), 1) for _ in range(job.n)) for value in (1, 0)]

        return work

    return prepare


def reports_of_words(
    make: Callable[..., Pair], both: Callable[[Any, Any, str], bool], step: dict[str, int]
) -> Callable[[Job], Work]:
    """As `reports`, for the whole report of a user who holds the word "b" or the word "c"."""

    def prepare(job: Job) -> Work:
        def work() -> Any:
            client = make(job, 1, **step)[0]
            return [sum(both(client, client.privatise(word), "b") for _ in range(job.n)) for word in ("b", "c")]

        return work

    return prepare


def both_of_tree_hist(client: Any, report: Any, word: str) -> bool:
    parts = zip((client.fragment_estimator, client.word_estimator), report, strict=True)
    return all(supports_signed((part, None), one, word) for part, one in parts)


def one_of_prefixes(client: Any, report: Any, word: str) -> bool:
    return supports_hadamard_sketch((client.client, None), report[0], word)


def both_of_fragments(client: Any, report: Any, word: str) -> bool:
    fragment = f"{client.hash_256(word)}_{word}"
    return supports_hadamard_sketch((client.fragment_client, None), report[0], fragment) and supports_hadamard_sketch(
        (client.word_client, None), report[1], word
    )


def supports_local_hash(pair: Pair, report: Any, value: int) -> bool:
    alone = fo.LHServer(pair[1].epsilon, 2, use_olh=True, index_mapper=same)
    alone.aggregate(report)
    return bool(alone.aggregated_data[value])


def supports_sketch(pair: Pair, report: Any, value: int) -> bool:
    bits, row = report
    return bool(bits[pair[0].hash_funcs[row](str(value))] > 0)


def supports_signed(pair: Pair, report: Any, value: int | str) -> bool:
    bits, row = report
    cell, sign = pair[0].hash_funcs[row]
    return bool(bits[cell(str(value))] == 2 * sign(str(value)) - 1)


def supports_hadamard_sketch(pair: Pair, report: Any, value: int | str) -> bool:
    bit, row, column = report
    return bool(bit * pair[0].had[column, pair[0].hash_funcs[row](str(value))] > 0)


def supports_bit(pair: Pair, report: Any, value: int) -> bool:
    return bool(report[value] == 1)


def supports_value(pair: Pair, report: Any, value: int) -> bool:
    return bool(report == value)


def supports_filter(pair: Pair, report: Any, value: int) -> bool:
    bits, cohort = report
    return all(bits[function(str(value))] == 1 for function in pair[1].hash_family[cohort])


def supports_response(pair: Pair, report: Any, value: int) -> bool:
    alone = fo.HadamardResponseServer(pair[1].epsilon, pair[1].d, index_mapper=same)
    alone.hr.permute, alone.hr.reverse = pair[1].hr.permute, pair[1].hr.reverse
    alone.aggregate(report)
    return bool(alone.estimate(value, suppress_warnings=True) > 0)


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
    ("budget", "OLH"): reports(olh, supports_local_hash),
    ("budget", "CMS"): reports(apple(False), supports_sketch),
    ("budget", "HCMS"): reports(apple(True), supports_hadamard_sketch),
    ("budget", "count sketch"): reports(count_sketch, supports_signed),
    ("budget", "Hadamard response"): reports(hadamard_response, supports_response),
    ("budget", "OUE"): reports(unary, supports_bit),
    ("budget", "GRR"): reports(direct, supports_value),
    ("budget", "TreeHist"): reports_of_words(tree_hist, both_of_tree_hist, {"step": 1}),
    ("budget", "PEM"): reports_of_words(prefix_extending, one_of_prefixes, {"step": 1}),
    ("budget", "SFP"): reports_of_words(apple_fragments, both_of_fragments, {}),
    ("budget", "RAPPOR"): reports(rappor, supports_filter),
}

if __name__ == "__main__":
    serve(METHODS)
