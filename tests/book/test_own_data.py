"""A reader's own file through every notebook that takes `data`: its page, its tables and files, and its labels as data."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from click.testing import CliRunner
from hostile import WORDS
from markdown_it import MarkdownIt

from evolvingdp.book import own, page, provenance
from evolvingdp.book.cell import module_of
from evolvingdp.book.checkout import params_of
from evolvingdp.book.cli import main
from evolvingdp.book.labels import Label, spoken, unmarked
from evolvingdp.book.result import MYST, RESULTS
from evolvingdp.book.style import house
from evolvingdp.core.checks import ParameterError
from evolvingdp.core.seeds import stream

NAMES = [word for word in WORDS if len(word) <= 40]
LETTERS = ["apple", "pear", "kiwi", "fig", "plum", "lime"]
FILE = "mine <b>```{value} $x$.csv"


def words(names):
    return pd.DataFrame({"word": names, "count": [400_000 // (1 + place) for place in range(len(names))]})


def bits(_):
    rng = stream(0, "bits")
    rows = [(name, f"u{user}", int(rng.random() < 0.4)) for name in NAMES for user in range(60)]
    return pd.DataFrame(rows, columns=["period", "user", "bit"])


def samples(_):
    rng = stream(0, "samples")
    users = [NAMES[place] for place in rng.integers(0, len(NAMES), 2000)]
    return pd.DataFrame({"user": users, "value": rng.uniform(40, 160, 2000).round(1)})


def groups(_):
    held = [(NAMES[step], f"u{user}", NAMES[user % 3 + step]) for step in range(6) for user in range(900)]
    return pd.DataFrame(held, columns=["step", "user", "group"])


FILES = {
    "heavy_hitters/treehist": (words, LETTERS, {}),
    "heavy_hitters/bitstogram": (words, LETTERS, {}),
    "heavy_hitters/rappor": (words, NAMES, {}),
    "evolving/thresh": (bits, NAMES, {}),
    "continual_mean/user_mean": (samples, NAMES, {"low": 40, "high": 160}),
    "continual_mean/past_the_paper": (samples, NAMES, {"low": 40, "high": 160}),
    "sparse_vector/shifting_heavy_hitters": (groups, NAMES, {}),
}


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("notebook", FILES)
def test_any_reader_s_file_makes_a_page_on_which_labels_are_data(notebook, tmp_path, monkeypatch):
    make, names, more = FILES[notebook]
    make(names).to_csv(tmp_path / FILE, index=False, quoting=csv.QUOTE_ALL)
    params = params_of(notebook).make("quick", {"data": str(tmp_path / FILE), **more})
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(page, "display", lambda data, **_: shown.append(data))
    monkeypatch.setattr(provenance, "record", lambda _: {"command": "c", "commit": "0", "version": "1", "date": "2026"})
    monkeypatch.setattr(page.citing, "figure", lambda *_: "")
    monkeypatch.setenv(RESULTS, str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    house(own.own)(module_of(notebook), params, 0)
    told = "\n\n".join(data.get(MYST, "") for data in shown)
    assert Label(FILE).markdown in told
    markdown = MarkdownIt("commonmark").enable("table")
    soup = BeautifulSoup(
        markdown.render(unmarked("\n\n".join(data.get("text/markdown", "") for data in shown))), "html.parser"
    )
    assert not soup.select("script, svg, img, u, b")
    values = json.loads((tmp_path / "out" / "values.json").read_text())
    released = values["released"]
    assert re.fullmatch(r"Released: .+, by .+, under .+differential privacy.+ is for study, and for no release\.", released)
    assert released in told
    made = module_of(notebook).of_own(params, 0)
    table = pd.read_csv(tmp_path / "out" / "estimates.csv", keep_default_na=False)
    assert list(table) == ([made.by, "estimate", "low", "high"] if made.kind != "events" else ["step", "group"])
    assert len(table) == values["rows"] > 2
    if made.by != "step":
        assert set(table[made.by].astype(str)) <= set(names), "names are what the file holds, character by character"
        cells = [row.td.get_text() for row in soup.select("tr") if row.td]
        assert {Label(str(name)).plain for name in made.estimates[made.by].head(5)} <= set(cells) | {
            row.select("td")[1].get_text() for row in soup.select("tr") if len(row.select("td")) > 1
        }
    assert spoken(Label(FILE).markdown) == FILE


def test_what_is_released_is_near_the_file_and_within_its_interval(tmp_path):
    """Of six words, or sixty, as often as 95 % intervals promise; and nothing of the truth is in what is published."""
    words(LETTERS).to_csv(tmp_path / "words.csv", index=False)
    for notebook in ("heavy_hitters/treehist", "heavy_hitters/bitstogram", "heavy_hitters/rappor"):
        params = params_of(notebook).make("quick", {"data": str(tmp_path / "words.csv")})
        made = module_of(notebook).of_own(params, 3)
        assert "truth" not in made.private
        real = made.estimates[made.estimates.truth > 0]
        assert set(real.word) >= set(LETTERS[:4])
        off = np.abs(real.estimate - real.truth) / ((real.high - real.low) / 2 / 1.96)
        assert off.max() < 5.5


@pytest.mark.parametrize(
    ("notebook", "text", "said"),
    [
        ("heavy_hitters/treehist", "word\ncat\nnew york\n", "data .*mine.csv, row 3: word must have 1 to 12 letters"),
        (
            "continual_mean/user_mean",
            "user,value\na,0.5\nb,2\n",
            "row 3: value must be a number from 0 to 1",
        ),
        ("evolving/thresh", "day,bit\n1,1\n", "must name its columns period, user, bit or period, share, users"),
    ],
)
def test_a_bad_file_is_refused_before_anything_runs(tmp_path, notebook, text, said):
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(ParameterError, match=said):
        params_of(notebook).make("quick", {"data": str(tmp_path / "mine.csv")})
    refused = CliRunner().invoke(
        main, ["run", notebook, "-p", "data", str(tmp_path / "gone.csv"), "--out", str(tmp_path / "o")]
    )
    assert refused.exit_code == 2
    assert "does not exist" in refused.output
    assert refused.output.count("\n") == 1


@pytest.mark.parametrize("notebook", ["continual_mean/user_mean", "continual_mean/past_the_paper"])
def test_bounds_between_which_no_value_lies_are_refused_without_a_file_too(notebook):
    with pytest.raises(ParameterError, match="low must be less than high = 1, got 2"):
        params_of(notebook).make("quick", {"low": 2})


def test_the_command_ends_with_a_page_a_table_and_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "cache"))
    words(["new york", "中文", "<b>x</b>", "{value}"]).to_csv(tmp_path / "mine.csv", index=False)
    out = tmp_path / "mine"
    told = CliRunner().invoke(
        main, ["run", "heavy_hitters/rappor", "-p", "data", str(tmp_path / "mine.csv"), "--out", str(out)]
    )
    assert told.exit_code == 0, told.output
    assert told.output.splitlines()[-1].startswith("Released: users by word, 4 rows, by RAPPOR")
    table = pd.read_csv(out / "rappor" / "estimates.csv")
    assert sorted(table.word) == sorted(["new york", "中文", "<b>x</b>", "{value}"])
    notebook = json.loads((out / "rappor.ipynb").read_text())
    assert len(notebook["cells"]) <= 5, "nothing else of the notebook is run"
    assert any("own-rappor" in json.dumps(cell.get("outputs", "")) for cell in notebook["cells"])
