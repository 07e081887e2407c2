"""A reader's own file: what is read, and what is refused in one line that names file, row and column; shipped tables."""

from __future__ import annotations

import bz2
import gzip
import lzma

import numpy as np
import pandas as pd
import pytest

from evolvingdp.core.detection import detect, detect_many
from evolvingdp.core.reports import best_report
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import Once
from evolvingdp.evolving.rivals import once
from evolvingdp.streams import read_counts, reading
from evolvingdp.streams.addresses import OTHER, counts, function_words
from evolvingdp.streams.dated import MOST_WORDS

READERS = {
    "words": reading.read_words,
    "letters": lambda path: reading.read_words(path, letters=6),
    "bits": reading.read_bits,
    "values": lambda path: reading.read_values(path, 40, 160),
    "groups": reading.read_groups,
    "dated": read_counts,
}
GOOD = "date,word,count\n2024-03,we,3\n2024-01,they,1\n2024-03,they,1\n2024-01,we,0\n"
BAD = [
    ("words", "", "is empty"),
    ("words", "word\n", "must have 1 to 10,000,000 rows"),
    ("words", "name\na\nb\n", "must name its columns word or word, count in the first line, got name"),
    (
        "words",
        "word,count,more\na,1,2\n",
        "must name its columns word or word, count in the first line, got word, count, more; leave out more",
    ),
    ("words", "word,count,\na,1,\n", "; leave out the column without a name"),
    ("words", "word,n\na,1\n", "in the first line, got word, n; leave out n"),
    ("words", "word;count\na;1\n", "got word;count; separate columns by commas"),
    ("words", "word\tcount\na\t1\n", "separate columns by commas"),
    ("bits", "period,bit,day\n1,1,2\n", "in the first line, got period, bit, day"),
    ("words", "word,count\na,1\nb\n", "row 3: count must be a whole number from 1 to 10,000,000,000, got nothing"),
    ("words", "word,count\na,1\nb,2,3\n", "must have a value for each column; quote a text with a comma"),
    ("words", "word,count\na,1\na,2\n", "row 3: word must stand once in the rows, got 'a'"),
    ("words", "word,count\ne\u0301,1\n\u00e9,2\n", "row 3: word must stand once in the rows"),
    ("words", "word,count\na,1\nb,-2\n", "row 3: count must be a whole number from 1"),
    ("words", "word,count\na,1\nb,2.5\n", "row 3: count must be a whole number from 1"),
    ("words", "word,count\na,1\nb,many\n", "row 3: count must be a whole number from 1 to 10,000,000,000, got 'many'"),
    ("words", "word,count\na,1\nb,nan\n", "row 3: count must be a whole number"),
    ("words", "word,count\na,1\nb,inf\n", "row 3: count must be a whole number"),
    ("words", "word,count\na,0x10\nb,1\n", "row 2: count must be a whole number"),
    ("words", "word,count\na,10000000000\nb,1\n", "all counts together must be at most 10,000,000,000"),
    ("words", "word\na\n\nb\n", "row 3: word must not be empty, got nothing"),
    ("words", "word\na\n   \nb\n", "row 3: word must not be empty"),
    ("words", f"word\na\n{'x' * 201}\n", "row 3: word must be one line of at most 200 characters"),
    ("words", 'word\na\n"b\nc"\n', "row 3: word must be one line"),
    ("words", 'word,count\n"a,1\n', "row 2 must have a value for each column; quote a text with a comma"),
    ("words", "word,count\na,1,000\nb,2\n", "row 2 must have a value for each column"),
    ("words", '"wo\nrd",count\na,1\n', r"in the first line, got wo\nrd, count"),
    ("words", "word\na\na\n", "must have two words or more, got only 'a'"),
    ("letters", "word\ncat\nnew york\n", "row 3: word must have 1 to 6 letters, all of a-z (heavy_hitters/rappor takes any"),
    ("letters", "word\ncat\nelephant\n", "row 3: word must have 1 to 6 letters"),
    ("bits", "period,user,bit\n1,a,1\n1,b,0\n", "must have two periods or more, got 1"),
    ("bits", "period,user,bit\n1,a,1\n2,a,2\n", "row 3: bit must be a whole number from 0 to 1, got '2'"),
    (
        "bits",
        "period,user,bit\n1,a,1\n1,a,0\n2,a,1\n",
        "row 3: user must stand once in the rows of the same period",
    ),
    ("bits", "period,user,bit\n1,a,1\n1,b,0\n2,a,1\n", "must have a bit of every user in every period; 'b' has none in '2'"),
    ("bits", "period,share,users\n1,.5,10\n2,1.2,10\n", "row 3: share must be a number from 0 to 1, got '1.2'"),
    ("bits", "period,share,users\n1,.5,10\n2,.5,11\n", "row 3: users must be the same in every period, 10 as in the first"),
    ("values", "user,value\na,83.5\nb,39.9\n", "row 3: value must be a number from 40 to 160, got '39.9'"),
    ("values", "user,value\na,83.5\n,90\n", "row 3: user must not be empty"),
    ("groups", "step,user,group\n1,a,x\n1,a,y\n", "row 3: user must stand once in the rows of the same step, got 'a'"),
    ("dated", "date,word\n1,a\n", "must name its columns date, word, count in the first line, got date, word"),
    ("dated", GOOD + "2024-13,we,1\n", "row 6: date must be YYYY, YYYY-MM or YYYY-MM-DD, got '2024-13'"),
    ("dated", GOOD + "2024,we,1\n", "row 6: date must be a month, as in the first row, got '2024'"),
    ("dated", GOOD + "March,we,1\n", "row 6: date must be YYYY, YYYY-MM or YYYY-MM-DD, got 'March'"),
    ("dated", GOOD + "2024-04,we,-1\n", "row 6: count must be a whole number from 0 to 999,999,999,999,999, got '-1'"),
    ("dated", GOOD + "2024-03,we,1\n", "row 6: word must stand once in the rows of the same date; one must have the sum"),
    ("dated", GOOD + "2024-04,we,0\n", "all counts of 2024-04 are 0; leave the date out, or give it a count"),
    ("dated", "date,word,count\n1999,a,1\n1999,b,1\n", "must have 2 to 1000 dates, got 1; join days to months"),
    ("dated", "date,word,count\n1999,a,1\n2000,a,1\n", "must have two words or more, got only 'a'; count the others as"),
    ("dated", GOOD + "2024-04,we,٣\n", "row 6: count must be a whole number"),
    ("dated", "date,word,count\n5,a,1\n05,b,1\n005,a,2\n", "row 4: word must stand once in the rows of the same date"),
]


def file(tmp_path, text, name="mine.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("kind", "text", "said"), BAD)
def test_a_bad_file_is_refused_in_one_line_with_its_row(tmp_path, kind, text, said):
    path = file(tmp_path, text)
    with pytest.raises(ValueError, match=r"must|is") as refused:
        READERS[kind](path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_long_file_of_few_rows_a_step_is_refused_and_does_not_fill_the_memory(tmp_path):
    """150,000 rows name as many steps and as many users: a table of both would take 180 GB."""
    rows = "".join(f"{number},u{number},1\n" for number in range(150_000))
    with pytest.raises(ValueError, match=r"a bit of every user in every period; 'u1' has none in '0'$"):
        reading.read_bits(file(tmp_path, f"period,user,bit\n{rows}"))
    with pytest.raises(ValueError, match=r"at most 100,000,000 steps times users, got 150,000 times 150,000; join steps$"):
        reading.read_groups(file(tmp_path, f"step,user,group\n{rows}"))


def damaged() -> dict[str, bytes]:
    """Compressed files that were cut, or whose bytes changed, by name; the last by a program that is not there."""
    text = "".join(f"word{number},{number}\n" for number in range(500)).encode()
    whole = gzip.compress(text)
    return {
        "cut.csv.gz": whole[: len(whole) // 2],
        "changed.csv.gz": whole[:40] + bytes(40) + whole[80:],
        "another_sum.csv.gz": whole[:-8] + bytes(8),
        "no.csv.gz": text,
        "cut.csv.bz2": bz2.compress(text)[:99],
        "cut.csv.xz": lzma.compress(text)[:99],
        "changed.csv.xz": lzma.compress(text)[:20] + bytes(200),
        "no.zip": text,
        "no.csv.zst": text,
    }


def test_what_is_no_file_or_no_table_is_refused_in_one_line(tmp_path):
    (tmp_path / "latin.csv").write_bytes("word\ncaf\xe9\nb\n".encode("latin-1"))
    (tmp_path / "no.parquet").write_bytes(b"word\na\n")
    for name, said in {
        "latin.csv": "is not CSV text in UTF-8",
        "no.parquet": "is not Parquet",
        "gone.csv": "does not exist",
    }.items():
        with pytest.raises(ValueError, match=said) as refused:
            reading.read_words(tmp_path / name)
        assert "\n" not in str(refused.value)
    for name, content in damaged().items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"/{name} is not CSV text in UTF-8 \(.*\); save it as such$"):
            reading.read_words(tmp_path / name)
    with pytest.raises(ValueError, match="is no file"):
        reading.read_words(tmp_path)


def test_words_are_counted_one_a_row_or_with_their_users(tmp_path):
    one = reading.read_words(file(tmp_path, "\ufeffWord\nb\na\nb\n null \nNaN\n"))
    assert (one.words, one.counts.tolist()) == (("b", "NaN", "a", "null"), [2, 1, 1, 1])
    more = reading.read_words(file(tmp_path, 'count, word\n3,"a, b"\n1e3,中文\n'))
    assert (more.words, more.counts.tolist()) == (("中文", "a, b"), [1000, 3])
    pd.DataFrame({"word": [b"b", "é".encode()]}).to_parquet(tmp_path / "bytes.parquet")
    assert reading.read_words(tmp_path / "bytes.parquet").words == ("b", "é")


def test_bits_come_from_parquet_with_bool_and_nullable_columns(tmp_path):
    table = pd.DataFrame({"period": [1, 1, 2, 2], "user": ["007", "7", "7", "007"], "bit": [True, False, True, True]})
    for bits in (*map(table.bit.astype, ("bool", "boolean", "Int64", "float")), table.bit.astype(str).str.upper()):
        table.assign(bit=bits).to_parquet(tmp_path / "mine.PARQUET")
        read = reading.read_bits(tmp_path / "mine.PARQUET")
        assert read.bits.tolist() == [[1, 0], [1, 1]]
        assert (read.periods, read.shares.tolist(), read.n_users) == (("1", "2"), [0.5, 1.0], 2)
    table.assign(bit=pd.array([True, None, True, True], dtype="boolean")).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(ValueError, match="row 2: bit must be a whole number from 0 to 1, got nothing"):
        reading.read_bits(tmp_path / "mine.parquet")


def test_samples_and_groups_keep_their_order_and_their_names(tmp_path):
    read = reading.read_values(file(tmp_path, "value,user\n83.5,u2\n40,u1\n160,u2\n"), 40, 160)
    assert (read.names, read.users.tolist(), read.values.tolist()) == (("u2", "u1"), [0, 1, 0], [83.5, 40, 160])
    held = reading.read_groups(file(tmp_path, "step,user,group\nmon,a,x\ntue,b,y\ntue,a,x\n"))
    assert (held.steps, held.groups, held.held.tolist()) == (("mon", "tue"), ("x", "y"), [[0, -1], [0, 1]])


def test_dated_counts_come_through_the_same_door(tmp_path):
    table = pd.DataFrame(
        {"date": pd.to_datetime(["2024-01-01", "2024-01-02"] * 2), "word": ["a", "a", "b", "b"], "count": [1, 2, 3, 4]}
    )
    table.to_parquet(tmp_path / "mine.parquet")
    read = read_counts(tmp_path / "mine.parquet")
    assert (read.dates, read.words) == (("2024-01-01", "2024-01-02"), ("b", "a"))
    assert read.counts.tolist() == [[3, 1], [4, 2]]


@pytest.mark.parametrize("corpus", ["inaugural", "state_union"])
def test_a_shipped_corpus_has_the_table_s_counts(corpus):
    read, table = read_counts(corpus), counts().query("corpus == @corpus")
    assert read.dates == tuple(map(str, sorted(set(table["year"]))))
    assert read.counts.sum() == table["count"].sum()
    for word, year, count in zip(table["word"][::997], table["year"][::997], table["count"][::997], strict=True):
        assert read.counts[read.dates.index(str(year)), read.place(word)] == count
    assert np.allclose(read.shares.sum(axis=1), 1)
    assert {"we", "upon", "must"} <= function_words()
    assert not {"freedom", "government", OTHER} & function_words()


def test_a_file_is_read_by_date_and_the_most_frequent_word_comes_first(tmp_path):
    read = read_counts(file(tmp_path, GOOD))
    assert (read.name, read.dates, read.words) == ("mine.csv", ("2024-01", "2024-03"), ("we", "they"))
    assert read.counts.tolist() == [[0, 1], [3, 1]]
    assert read.shares.tolist() == [[0, 1], [0.75, 0.25]]
    assert read.years == pytest.approx([2024, 2024 + 60 / 366])
    assert read.moving(1) == ("we",)  # both move by .75
    with pytest.raises(ValueError, match=r"^must be a word of mine.csv, such as we, they, got 'us'$"):
        read.place("us")


def test_columns_may_stand_in_any_order_and_words_be_quoted(tmp_path):
    read = read_counts(file(tmp_path, '\ufeffcount, Word ,date\n2," a,b ",2001\n3,c,1999\n'))
    assert (read.dates, read.words) == (("1999", "2001"), ("c", "a,b"))


def test_rare_words_of_a_large_file_are_counted_together(tmp_path):
    lines = [f"{year},word{place},{2 if place < 5 else 1}" for year in (1, 2) for place in range(MOST_WORDS + 10)]
    read = read_counts(file(tmp_path, "date,word,count\n" + "\n".join(lines)))
    assert (len(read.words), read.words[-1]) == (MOST_WORDS + 1, OTHER)
    assert read.counts.sum() == 2 * (MOST_WORDS + 15)
    assert OTHER not in read.moving(10_000)


def test_a_year_is_the_same_however_many_zeros_it_has(tmp_path):
    read = read_counts(file(tmp_path, "date,word,count\n005,a,1\n5,b,1\n05,c,3\n12,a,1\n"))
    assert (read.dates, read.words) == (("5", "12"), ("c", "a", "b"))
    assert read.counts.tolist() == [[3, 1, 1], [0, 1, 0]]


def test_words_are_compared_in_one_form_of_unicode(tmp_path):
    read = read_counts(file(tmp_path, "date,word,count\n1,e\u0301,1\n1,no,1\n2,\u00e9,2\n"))
    assert read.words == ("\u00e9", "no")
    assert read.place(" e\u0301 ") == 0


def test_counts_are_exact_or_refused(tmp_path):
    """13,000 words of 10^15 - 1 each would be -8.4e18 in int64."""
    many = "".join(f"{year},w{place},{10**15 - 1}\n" for year in (1, 2) for place in range(13_000))
    with pytest.raises(ValueError, match=r"mine.csv: all counts together must be at most 9,007,199,254,740,992, got 25,9"):
        read_counts(file(tmp_path, "date,word,count\n" + many))
    at_most = read_counts(file(tmp_path, f"date,word,count\n1,a,{10**15 - 1}\n2,b,{10**15 - 1}\n"))
    assert at_most.counts.sum() == 2 * 10**15 - 2


def test_users_once_take_real_bits_and_days_are_appended():
    """The mean of many runs is that of the data; a wrong bit is refused before the first draw."""
    bits = np.zeros((3, 400), dtype=bool)
    bits[1, :100], bits[2] = True, True
    settings = Once(400, 3, 3.0)

    def run(data, seed):
        return once.run(settings, data, **{name: stream(seed, name) for name in ("words", "public", "private")})

    found = np.mean([settings.estimates(run(bits, seed))[:, 1] for seed in range(60)], axis=0)
    assert found == pytest.approx([0, 0.25, 1], abs=0.04)
    for bad, said in ((bits[:2], "must be words from 0"), (bits * 2, r"from 0 to 1, got 2 for user 0 in epoch 2")):
        with pytest.raises(ValueError, match=said):
            run(bad, 0)
    tally = run(bits, 1)
    first, rest = once.Tally(tally.reports[:1], tally.sums[:1]), once.Tally(tally.reports[1:], tally.sums[1:])
    assert first.then(rest).reports.tolist() == tally.reports.tolist()
    assert first.then(rest).sums.tolist() == tally.sums.tolist()


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize(
    ("values", "epsilon", "share", "moved"), [(2, 1.0, 0.5, 0.1), (100, 3.0, 0.02, 0.02), (2, 1.0, 0.2, 0.0)]
)
def test_many_series_are_searched_at_once_as_each_by_itself(online, values, epsilon, share, moved):
    rng, report = stream(0, "many", str(online), values), best_report(values, epsilon, 256, share)
    means = np.full((6, 30), share)
    means[:, 11:] += moved
    means[0] += np.linspace(0, 0.5, 30)  # which averages do not explain
    reports = rng.multinomial(20_000, np.full(30, 1 / 30), size=6)
    reports[1, 3] = 0
    with np.errstate(invalid="ignore"):
        told = (rng.binomial(reports, report.other + means * (report.own - report.other)) / reports - report.other) / (
            report.own - report.other
        )
    many = detect_many(told.T, reports.T, report, online=online).estimates.T
    each = [detect(one, n, report, online=online).estimates for one, n in zip(told, reports, strict=True)]
    np.testing.assert_allclose(many, each, rtol=1e-12, equal_nan=True)
