"""The chapter on one real stream: what is noticed and when, parameters for data of the reader's own, and their keys."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from evolvingdp.book import checkout, provenance, sweeping
from evolvingdp.book.checkout import params_of
from evolvingdp.core.checks import ParameterError
from evolvingdp.notebooks.streams import trusted, two_centuries
from evolvingdp.notebooks.streams.share import WATCHED, watched, word_of
from evolvingdp.notebooks.streams.words import noticed

Params = params_of("streams/two_centuries")


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.csv"
    lines = [f"{year},{word},{count}" for year in range(2000, 2020) for word, count in (("yes", year - 1990), ("no", 100))]
    path.write_text("date,word,count\n" + "\n".join(lines) + "\n")
    return path


def test_a_share_that_doubles_is_noticed_in_the_epoch_in_which_that_is_certain():
    share = np.array([0.01] * 6 + [0.03] * 6)[:, None]
    exactly = np.zeros_like(share)
    assert noticed(share, exactly, 2) == [(7, "doubled")]  # (.03 + .03) / 2 > 2 * .01; at 6 it is .02, and not more
    assert noticed(share[::-1], exactly, 2) == [(7, "halved")]
    assert noticed(share / 10, exactly, 2) == [(-1, "")], "less than two in a thousand"
    # ratio .03 - .02 against 4 sqrt(v / 2 + 4 v / 6): certain below v = 5.4e-6
    assert noticed(share, exactly + 5.3e-6, 2)[0] == (7, "doubled")
    assert noticed(share, exactly + 5.5e-6, 2)[0][0] != 7


def test_parameters_know_words_of_the_data_and_refuse_others_in_one_line(mine):
    params = Params.make(overrides={"data": str(mine)})
    assert (params.data, word_of(params), watched(params)) == (str(mine), "yes", ("yes", "no"))
    assert (word_of(Params.make()), watched(Params.make())) == ("we", WATCHED)
    for overrides, message in (
        ({"data": str(mine), "word": "we"}, r"word must be a word of mine.csv, such as yes, no, got 'we'"),
        ({"data": str(mine), "watch": "yes,maybe"}, r"watch must be a word of mine.csv, .* got 'maybe'"),
        ({"data": str(mine), "window": "11"}, r"window must be at most 10, half of the 20 epochs, got 11"),
        (
            {"data": "absent.csv"},
            r"data must be inaugural or state_union or a CSV .*absent.csv does not exist",
        ),
    ):
        with pytest.raises(ParameterError, match=message) as refused:
            Params.make(overrides=overrides)
        assert "\n" not in str(refused.value)


def test_words_of_any_text_are_listed_as_they_are():
    params = Params.make(overrides={"epsilon": 8.0, "repetitions": 2})
    words = ["new york", "a,b", 'say "x"', "“we”"]
    rows = {"part": "hot", "method": trusted.MONITOR, "repetition": 0, "epoch": 1, "listed": json.dumps(words)}
    assert two_centuries.hot_now(params, pd.DataFrame([rows])).word.tolist() == words


def test_words_with_blanks_and_commas_are_typed_and_printed_as_json(tmp_path):
    path = tmp_path / "mine.csv"
    words = ["new york", "a, b", "[c]", "\u00e9"]
    path.write_text("date,word,count\n" + "".join(f'{y},"{word}",{y}\n' for y in range(1, 5) for word in words))
    base = {"data": str(path), "window": 2}
    params = Params.make(overrides=base | {"watch": '["new york", "a, b"]', "word": "e\u0301"})
    assert (watched(params), word_of(params)) == (("new york", "a, b"), "\u00e9")
    assert watched(Params.make(overrides=base | {"watch": "new york"})) == ("new york",)
    typed = shlex.split(provenance.command("streams/two_centuries", params, 0))
    given = {typed[place + 1]: typed[place + 2] for place, word in enumerate(typed) if word == "-p"}
    assert Params.make(overrides=given) == params
    with pytest.raises(ParameterError, match=r"^watch must be words separated by commas, or a JSON list"):
        Params.make(overrides=base | {"watch": '["new york'})


def test_a_file_that_changes_changes_the_key_of_its_run(mine):
    params = Params.make(overrides={"data": str(mine)}).as_json()
    before = checkout.of_files(params)
    assert set(before) == {str(mine)}
    mine.write_text(mine.read_text().replace("2000,yes,10", "2000,yes,11"))
    assert checkout.of_files(params) != before
    assert checkout.of_files(Params.make().as_json()) == {}


def test_a_sweep_runs_a_point_again_whose_file_has_changed_and_no_worker_takes_another_file_for_it(mine):
    params = Params.make(overrides={"data": str(mine)})
    given, key = params.as_json(), sweeping._key("streams/two_centuries", params, 0, {})
    wanted = sweeping.sources("streams/two_centuries") | checkout.of_files(given)
    mine.write_text(mine.read_text().replace("2000,yes,10", "2000,yes,11"))
    assert sweeping._key("streams/two_centuries", params, 0, {}) != key
    for _ in range(2):
        told = sweeping.one("streams/two_centuries", given, 0, "", {}, wanted)
        assert f"this worker differs from the sweep in: {mine}" in told
        mine.unlink(missing_ok=True)
