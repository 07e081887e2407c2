"""What is reproduced: every item of the papers has a row, every reference leads somewhere, verdicts follow the numbers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from evolvingdp.book.rendering import reproduction
from evolvingdp.book.rendering.reproduction import Check, ReproductionError, Row, outcome, verdict
from support import REPOSITORY

# What the papers number, read from their text once; definitions only where they say how much is enough.
ITEMS = {
    "heavy_hitters": {
        "Table": "1 2",
        "Figure": "1 2 3 4 5 6",
        "Theorem": "2.4 2.5 3.1 3.2 5.1 5.2",
        "Lemma": "2.3 3.3 3.4 5.3 6.1 6.3 6.4 6.5 6.6 6.7 6.8",
        "Claim": "5.4 5.5 5.6",
        "Observation": "6.2",
        "Definition": "2.2",
        "Algorithm": "1 2 3 4 5 6 7 8",
    },
    "evolving": {
        "Theorem": "1.1 1.2 4.1 4.3 5.1 5.2 6.1 7.9 9.7",
        "Lemma": "7.1 7.2 7.3 7.4 7.6 7.7 7.8 8.1 9.1 9.2 9.3 9.4 9.6",
        "Assumption": "4.2",
        "Algorithm": "1 2 3 4 5 6 7 8",
        "Section": "1",
    },
    "continual_mean": {
        "Theorem": "3.1 3.2 3.4",
        "Lemma": "2.2 2.4 A.1 A.2",
        "Claim": "C.1 E.1",
        "Definition": "3.3",
        "Equation": "1",
        "Algorithm": "1 2 3 4 5 6 7",
        "Section": "1.1 2.3 4 5 B.1",
    },
    "sparse_vector": {
        "Theorem": "2.3 2.5 3.1 3.2 3.8 4.4 4.7 B.1",
        "Lemma": "3.5 3.7",
        "Claim": "A.2 A.3 A.4",
        "Example": "1.4",
        "Remark": "1.2",
        "Definition": "4.1",
        "Algorithm": "1 2 3 4 5 6 7",
        "Section": "1.1",
    },
}
PAPERS = list(ITEMS)
NUMBER = {"holds": "a/b: 0.86 - 0.05 <= x <= 0.86 + 0.05", "because": "its deviation"}


def rows(paper: str) -> list[Row]:
    return reproduction.read(REPOSITORY, paper)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_item_that_the_paper_numbers_is_in_its_table(paper):
    listed = {item for row in rows(paper) for item in row.items}
    assert listed == {f"{kind} {number}" for kind, numbers in ITEMS[paper].items() for number in numbers.split()}
    names = [row.name for row in rows(paper)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("paper", PAPERS)
def test_errata_that_rows_name_exist_and_every_erratum_is_named(paper):
    page = (REPOSITORY / "book" / "errata.md").read_text()
    named = {erratum for row in rows(paper) for erratum in row.errata}
    shorts = {"heavy_hitters": "HH", "evolving": "EV", "continual_mean": "CM", "sparse_vector": "SV"}
    assert named == set(re.findall(rf"^### (E-{shorts[paper]}-\d+):", page, re.MULTILINE))


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_ours_is_computed_and_never_typed(paper):
    """Labels and `ours` hold no number of their own: those of formulas, of the paper's names, and of levels aside."""
    names = r"\{value\}`[^`]*`|\$[^$]*\$|\b(?:Algorithm|Theorem|Example|equality|item|level) \(?\d[\d.]*\)?('s)?|\"0\.99\""
    for row in rows(paper):
        for text in (row.ours, *(check.label for check in row.checks)):
            assert not re.search(r"(?<![A-Za-z])\d", re.sub(names, "", text)), f"{row.name}: {text}"


def test_verdicts_follow_the_checks_and_statements_only_lower_them():
    def row(stated=None):
        return Row(items=("Table 1",), says="s", checks=(Check(test="test_a"),), stated=stated, why="w" if stated else "")

    assert verdict(row(), [True, True]) == "reproduced"
    assert verdict(row(), [True, False]) == "partly"
    assert verdict(row(), [False, False]) == "not"
    assert verdict(row(), [False, None]) == "not"  # a test beside a number that is missed does not save it
    assert verdict(row(), [None, None]) == "reproduced"
    assert verdict(row("partly"), [True]) == "partly"
    assert verdict(row("not"), [True]) == "not"
    assert verdict(row("partly"), [False]) == "not"
    unchecked = Row(items=("Lemma 1",), says="s", stated="not attempted", why="w")
    assert verdict(unchecked, []) == "not attempted"


def test_counts_tell_a_correction_that_is_listed_from_a_check_that_fails():
    def said(stated, errata, reached, *outcomes):
        why = {"stated": stated, "why": "w"} if stated else {}
        row = Row(items=("Table 1",), says="s", checks=(Check(test="test_a"),), errata=errata, **why)
        return reproduction.words(row, reached, [(holds, "") for holds in outcomes])

    assert said("partly", ("E-HH-1",), "partly", True, None) == "after a listed correction"
    assert said("partly", ("E-HH-1",), "partly", True, False) == "in part"
    assert said("partly", (), "partly", True) == "in part"
    assert said(None, ("E-HH-1",), "partly", True, False) == "in part"
    assert said("not", ("E-HH-1",), "not", True) == "refuted"
    assert said(None, ("E-HH-1",), "not", False) == "not reproduced"
    assert said(None, ("E-HH-1",), "reproduced", True) == "reproduced"


def test_a_number_is_reproduced_within_its_tolerance_and_no_further(tmp_path):
    for found, holds in ((0.86, True), (0.8101, True), (0.8099, False), (0.9099, True), (0.9101, False)):
        write(tmp_path, "a/b", {"x": found}, [])
        assert outcome(tmp_path, Check(**NUMBER, form=".2f")) == (holds, f"{found:.2f} (0.81 to 0.91)")
    bounded = Check(holds="a/b: x <= 0.9", because="a bound", form=".2f")
    assert outcome(tmp_path, bounded) == (False, "0.91 (≤ 0.90)")


def test_a_whole_number_has_no_decimals(tmp_path):
    for found, told in ((95.0, "95"), (95.5, "95.5"), (25991.0, "25,991")):
        write(tmp_path, "a/b", {"x": found}, [])
        check = Check(holds="a/b: 90 <= x <= 25992", because="a bound", form=",.1f")
        assert outcome(tmp_path, check) == (True, f"{told} (90 to 25,992)")


def test_a_claim_is_found_by_how_it_begins_and_decides(tmp_path):
    stored = [
        {"claim": "Errors fall, fast", "holds": False, "value": 1234.5, "relation": ">=", "bound": 2000.0},
        {"claim": "Errors fall, slowly", "holds": True, "value": 0.5, "relation": "within", "bound": [0.25, 0.75]},
    ]
    write(tmp_path, "a/b", {}, stored)
    fast = Check(claim="a/b", text="Errors fall, fast", form=",.0f")
    assert outcome(tmp_path, fast) == (False, "1,234 (≥ 2,000)")
    assert outcome(tmp_path, Check(claim="a/b", text="Errors fall, s")) == (True, "0.5 (0.25 to 0.75)")
    for text in ("Errors fall", "Errors rise"):
        with pytest.raises(LookupError, match=f"claims that begin with '{text}'"):
            outcome(tmp_path, Check(claim="a/b", text=text))


def test_a_row_of_the_ledger_decides_by_its_loss(tmp_path):
    folder = write(tmp_path, reproduction.LEDGER, {}, [])
    for entry, found in (
        ("0.5,True,False", (True, "loss 0.5 of 1 promised")),
        ("0.5,False,False", (False, "loss 0.5 of 1 promised")),
        (",,", (None, "loss left to the paper preset and tests")),
    ):
        (folder / "results.csv").write_text(f"id,part,promised,measured,kept,tight\none,ledger,1.0,{entry}\n")
        assert outcome(tmp_path, Check(ledger="one")) == found
    with pytest.raises(LookupError, match="no entry 'two'"):
        outcome(tmp_path, Check(ledger="two"))


def test_the_commands_of_a_row_name_each_of_its_checks():
    checks = [
        NUMBER,
        {"claim": "a/b", "text": "c"},
        {"ledger": "one"},
        {"test": "test_a"},
        {"ledger": "two"},
        {"test": "test_b"},
    ]
    row = Row(items=("Table 1",), says="s", checks=tuple(Check(**check) for check in checks))
    assert reproduction.commands(row).splitlines() == [
        'pytest -k "test_a or test_b"',
        "evolvingdp run a/b --preset paper",
        f"evolvingdp run {reproduction.LEDGER} --preset paper  # one, two",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checks": [{"holds": "x <= 1", "because": "b"}]}, "holds String should match pattern"),
        ({"checks": [{**NUMBER, "because": ""}]}, "must say because of what"),
        ({"checks": [{"test": "test_a", "ledger": "b"}]}, "exactly one of claim, holds, ledger, test"),
        ({"checks": [{}]}, "exactly one of claim, holds, ledger, test"),
        ({"checks": [{"claim": "a/b"}]}, "claim and text must stand together"),
        ({"checks": []}, "without checks, and no other, must be stated as 'not attempted'"),
        ({"stated": "not attempted", "why": "w"}, "without checks, and no other"),
        ({"stated": "partly"}, "must say why"),
        ({"stated": "reproduced", "why": "w"}, "stated Input should be 'partly', 'not' or 'not attempted'"),
        ({"verdict": "reproduced"}, "verdict Extra inputs are not permitted"),
    ],
)
def test_a_row_that_could_mislead_is_refused_in_one_line(tmp_path, changes, message):
    folder = tmp_path / "book" / "reproduction"
    folder.mkdir(parents=True)
    row = {"items": ["Table 1"], "says": "s", "checks": [{"test": "test_a"}]} | changes
    (folder / "p.yaml").write_text(yaml.safe_dump([row]))
    with pytest.raises(ReproductionError, match=message) as refused:
        reproduction.read(tmp_path, "p")
    assert str(refused.value).startswith("p, ['Table 1']: ")
    assert "\n" not in str(refused.value)


def test_the_built_book_s_references_all_lead_somewhere_and_small_runs_are_said_to_be_small(built_book):
    html = (built_book.root / "_build" / "html" / "book" / "reproduction.html").read_text()
    for paper in PAPERS:
        found = reproduction.judged(built_book.root, paper)
        assert len(found) == len(rows(paper))
        assert reproduction.counted(found) in html
    assert html.count("built with smaller presets") == 1, "once for all papers"
    assert html.count('class="verdict verdict-') == sum(len(rows(paper)) for paper in PAPERS)


def test_a_wrong_number_in_a_result_of_the_book_flips_the_verdict(built_book, tmp_path):
    """Figure 2 rests on one claim, and Lemma 6.7 on one row of the ledger: another result, another verdict."""
    for part in ("book/reproduction", "book/results", "tests"):
        shutil.copytree(built_book.root / part, tmp_path / part)
    results = tmp_path / "book" / "results"

    def reached(name: str) -> str:
        (one,) = [reached for row, reached, _ in reproduction.judged(tmp_path, "heavy_hitters") if row.name == name]
        return one

    assert (reached("Figure 2"), reached("Lemma 6.7"), reached("Figure 6")) == ("reproduced",) * 3
    claims = results / "heavy_hitters" / "frequency_oracle" / "claims.json"
    stored = json.loads(claims.read_text())
    for claim in stored:
        claim["value"] = 2.0 if claim["claim"].startswith("Insensitive to m") else claim["value"]
    claims.write_text(json.dumps(stored))
    ledger = results / reproduction.LEDGER / "results.csv"
    table = pd.read_csv(ledger, dtype=str, keep_default_na=False)
    broken = table.id == "bitstogram"
    assert broken.sum() == 1
    table.loc[broken, ["measured", "kept", "tight"]] = ["2.5", "False", "False"]
    table.to_csv(ledger, index=False)
    values = results / "heavy_hitters" / "treehist" / "values.json"
    values.write_text(json.dumps(json.loads(values.read_text()) | {"brown_distinct": 25_000.0}))
    assert (reached("Figure 2"), reached("Lemma 6.7"), reached("Figure 6")) == ("not",) * 3
    values.write_text(json.dumps({}))
    with pytest.raises(ReproductionError, match=r"Table 2, synthetic: claim .* needs a value 'synthetic_as_run_precision'"):
        reached("Figure 6")


def write(root: Path, notebook: str, values: dict, claims: list) -> Path:
    """A result below `root`, as far as a table reads it."""
    folder = root / "book" / "results" / notebook
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "values.json").write_text(json.dumps(values))
    (folder / "claims.json").write_text(json.dumps(claims))
    return folder
