"""Table: every refusal says its sentence, every notice is kept, and the caller's data is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import diffan
from diffan.errors import InputError
from diffan.table import Table


def frame(n: int = 60, d: int = 3, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, d)), columns=[f"v{j}" for j in range(d)])


def refusal(data: object, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        Table.read(data, **options)  # type: ignore[arg-type]
    return str(caught.value)


# ---- what comes in ------------------------------------------------------------------------


def test_values_are_standardised_and_the_original_is_untouched() -> None:
    data = frame() * [1.0, 1e-9, 1e9] + [0.0, 5.0, -3.0]
    before = data.copy()
    table = Table.read(data)
    pd.testing.assert_frame_equal(data, before)
    assert table.names == ("v0", "v1", "v2")
    np.testing.assert_allclose(table.values.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(table.values.std(axis=0), 1, atol=1e-6)
    np.testing.assert_allclose(table.values * table.scale + table.center, data, rtol=1e-5)
    assert not table.values.flags.writeable


def test_every_container_gives_the_same_table(tmp_path) -> None:
    import polars
    import pyarrow

    data = frame()
    expected = Table.read(data)
    data.to_csv(tmp_path / "t.csv", index=False)
    data.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    data.to_parquet(tmp_path / "t.parquet")
    forms = [
        tmp_path / "t.csv",
        str(tmp_path / "t.tsv"),
        tmp_path / "t.parquet",
        polars.DataFrame({name: data[name].to_numpy() for name in data}),
        pyarrow.Table.from_pandas(data),
        data.to_records(index=False),
        data.astype("Float64"),
        data.astype(object),
    ]
    for form in forms:
        table = Table.read(form)
        assert table.names == expected.names
        np.testing.assert_array_equal(table.values, expected.values)
    for form in (data.to_numpy(), data.to_numpy().tolist()):
        table = Table.read(form)
        assert table.names == ("x0", "x1", "x2")
        np.testing.assert_array_equal(table.values, expected.values)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\r\n{rows}", ("a", "b")),
        ("\ufeffa,b\n{rows}", ("a", "b")),
        ("a;b\n{rows;}", ("a", "b")),
        ('"a, with comma","b ""quoted"""\n{rows}', ("a, with comma", 'b "quoted"')),
        (",a,b\n{indexed}", ("a", "b")),
        ("a,b\n{indexed}", ("a", "b")),
        ("0,1\n{rows}", ("0", "1")),
    ],
)
def test_csv_as_pandas_users_expect(tmp_path, text: str, names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    pairs = [f"{a:.6f},{b:.6f}" for a, b in rng.normal(size=(30, 2))]
    line_end = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("{rows}", line_end.join(pairs))
    text = text.replace("{rows;}", "\n".join(pairs).replace(",", ";"))
    text = text.replace("{indexed}", "\n".join(f"r{i},{pair}" for i, pair in enumerate(pairs)))
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8", newline="")
    table = Table.read(file)
    assert table.names == names
    assert table.n_samples == 30
    assert any("row index" in note for note in table.warnings) == ("r0," in text)


def test_semicolons_with_decimal_commas(tmp_path) -> None:
    data = frame(d=2)
    data.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    np.testing.assert_array_equal(Table.read(tmp_path / "t.csv").values, Table.read(data).values)


# ---- refusals -----------------------------------------------------------------------------


def test_non_numeric_columns_are_named_with_an_example() -> None:
    data = frame().assign(city="Oslo", when=pd.Timestamp("2020-01-01"))
    sentence = refusal(data)
    assert sentence.startswith("Every column must hold numbers. Not so: 'city' (such as 'Oslo'), 'when'")


def test_the_cell_that_spoils_a_column_is_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\nx,3\n")
    with pytest.raises(InputError, match=r"'a' \(such as 'x'\)"):
        Table.read(tmp_path / "t.csv")


def test_complex_numbers_are_refused() -> None:
    assert "Complex data not supported, but 'x0' holds it" in refusal(frame().to_numpy() * 1j)


def test_missing_cells_are_counted_and_can_be_dropped() -> None:
    data = frame()
    data.iloc[3, 1] = np.nan
    data.iloc[7, 2] = np.inf
    sentence = refusal(data)
    assert "Found 1 missing (NaN) and 1 infinite cells in 'v1', 'v2'" in sentence
    assert "missing='drop'" in sentence
    table = Table.read(data, missing="drop")
    assert table.n_samples == 58
    assert "2 of 60 rows had missing or infinite cells and were dropped." in table.warnings


def test_nullable_missing_cells_are_seen() -> None:
    data = frame().astype("Float64")
    data.iloc[0, 0] = pd.NA
    assert "1 missing (NaN)" in refusal(data)


def test_constant_columns_are_named() -> None:
    assert refusal(frame().assign(c=7.0)) == "Every column must vary. Constant: 'c'; drop them."


def test_duplicate_names_are_named(tmp_path) -> None:
    data = frame().set_axis(["a", "a", "b"], axis=1)
    assert refusal(data) == "Column names must be unique. Repeated: 'a'; rename them."
    data.to_csv(tmp_path / "t.csv", index=False)
    assert refusal(tmp_path / "t.csv") == "Column names must be unique. Repeated: 'a'; rename them."


def test_one_column_and_few_rows() -> None:
    assert "minimum of 2 is required; causes need at least two columns" in refusal(frame(d=1))
    assert "minimum of 10 is required; collect more rows" in refusal(frame(n=9))
    assert "must have two dimensions" in refusal(np.arange(30.0))


def test_empty_and_ragged_files(tmp_path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("")
    assert refusal(file) == "'t.csv' is empty; expected a header line and rows of numbers."
    file.write_text("a,b\n" + "1,2\n" * 5 + "1,2,3\n" + "4,5\n" * 9)
    assert refusal(file) == "'t.csv' is ragged: line 7 has 3 fields where 2 were expected."
    file.write_text("a,b,c\n" + "1,2,3\n" * 5 + "1,2\n" + "4,5,6\n" * 9)
    assert refusal(file) == "'t.csv' is ragged: line 7 has 2 fields where 3 were expected."
    file.write_text("a,b\n")
    assert "0 sample(s)" in refusal(file)


def test_a_file_that_is_not_what_its_name_says(tmp_path) -> None:
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    assert "is not a Parquet file, whatever its name says" in refusal(tmp_path / "t.parquet")
    frame().to_parquet(tmp_path / "real.parquet")
    (tmp_path / "t.csv").write_bytes((tmp_path / "real.parquet").read_bytes())
    assert "is a Parquet file although its name ends in .csv" in refusal(tmp_path / "t.csv")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "real.parquet").read_bytes()[:200])
    assert "is a damaged Parquet file" in refusal(tmp_path / "cut.parquet")
    (tmp_path / "b.csv").write_bytes(b"\x00\x01\x02" * 100)
    assert "holds binary data, not text" in refusal(tmp_path / "b.csv")
    (tmp_path / "l.csv").write_bytes("é,b\n1,2\n".encode("latin-1"))
    assert "is not UTF-8 text" in refusal(tmp_path / "l.csv")
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    assert "must end in one of" in refusal(tmp_path / "t.xlsx")
    assert "No file at" in refusal(tmp_path / "absent.csv")
    (tmp_path / "empty").mkdir()
    assert "is a folder without Parquet files" in refusal(tmp_path / "empty")


def test_a_missing_header_is_noticed(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("0.5,1.5\n" * 20)
    assert "Repeated" not in refusal(tmp_path / "t.csv")
    assert "holds numbers, not names; add a header line" in refusal(tmp_path / "t.csv")


def test_duplicated_and_collinear_columns_are_named() -> None:
    data = frame()
    assert "Exactly proportional: 'v0' and 'twin'" in refusal(data.assign(twin=-3 * data.v0 + 1))
    sentence = refusal(data.assign(total=data.v0 + 2 * data.v1))
    assert "exact linear combination" in sentence
    assert all(name in sentence for name in ("'v0'", "'v1'", "'total'"))
    assert "'v2'" not in sentence


def test_an_unknown_container_or_choice() -> None:
    assert "Got int instead" in refusal(3)
    assert "rows of equal length" in refusal([[1, 2], [3]])
    assert (
        refusal(frame(), missing="skip")
        == "The 'missing' parameter must be one of 'error', 'drop'. Got 'skip' instead."
    )
    assert "transform='log' needs positive columns" in refusal(frame(), transform="log")


# ---- notices ------------------------------------------------------------------------------


def notices(data: pd.DataFrame) -> str:
    return " ".join(Table.read(data).warnings)


def test_clean_data_gives_no_notice() -> None:
    assert Table.read(frame(n=200)).warnings == ()


def test_weak_spots_are_noticed() -> None:
    rng = np.random.default_rng(2)
    data = frame(n=200)
    assert "Few distinct values in 'coin'" in notices(data.assign(coin=rng.integers(0, 2, 200)))
    assert "Nearly collinear: 'v0', 'copy'" in notices(
        data.assign(copy=data.v0 + 1e-3 * rng.normal(size=200))
    )
    assert "Only 25 rows for 3 columns" in notices(frame(n=25))
    wild = data.copy()
    wild.iloc[0, 0] = 1e6
    assert "Extreme outliers (over 12 standard deviations) in 'v0'" in notices(wild)


def test_advice_against_outliers_names_only_what_can_be_tried() -> None:
    wild = frame(n=200)
    wild.iloc[0, 0] = 1e6
    assert notices(wild).endswith("check them, or try transform='rank'.")  # some columns are negative
    assert notices(np.exp(frame(n=200)).assign(v0=wild.v0.abs() + 1)).endswith("transform='log' or 'rank'.")
    untamed = np.exp(frame(n=200))
    untamed.iloc[0, 0] = 1e-300
    untamed.iloc[1, 0] = 1e6
    told = " ".join(Table.read(untamed, transform="auto").warnings)
    assert told.endswith("try transform='rank'.")  # logarithms were tried, and did not help


def test_logarithms_are_untried_where_they_could_be_taken_and_were_not() -> None:
    rng = np.random.default_rng(0)
    zeros = np.exp(rng.normal(size=(300, 3)))
    zeros[:90, 0] = 0.0
    far = np.exp(4 * rng.normal(size=(500, 3)))
    assert not Table.read(zeros).untried_logarithms
    assert Table.read(far).untried_logarithms
    assert Table.read(far).select([2, 0]).rows(np.arange(200)).untried_logarithms
    for transform in ("log", "rank", "auto"):
        assert not Table.read(far, transform=transform).untried_logarithms


def test_rank_transform_tames_outliers() -> None:
    wild = frame(n=200)
    wild.iloc[0, 0] = 1e6
    table = Table.read(wild, transform="rank")
    assert table.warnings == ()
    assert np.abs(table.values).max() < 4


def heavy(n: int = 300) -> pd.DataFrame:
    """Positive columns of which one goes far, as concentrations do."""
    draws = np.random.default_rng(5).normal(size=(n, 3))
    return pd.DataFrame(np.exp(draws * [3.0, 0.5, 0.1]), columns=["far", "near", "straight"])


def test_auto_takes_logarithms_where_they_are_called_for_and_says_so() -> None:
    table = Table.read(heavy(), transform="auto")
    assert table.transform == "log"
    (sentence,) = table.warnings
    assert "Logarithms were taken of every column: all are positive, and 'far' had extreme" in sentence
    np.testing.assert_array_equal(table.values, Table.read(heavy(), transform="log").values)


@pytest.mark.parametrize(
    "data",
    [
        heavy().drop(columns="far"),  # nothing goes far
        heavy() - 1e-6 * heavy().min() - heavy().min(),  # not positive
        heavy().assign(near=np.where(np.arange(300) == 7, 1e-300, heavy().near)),  # logarithms go far
    ],
)
def test_auto_leaves_other_columns_as_they_are(data: pd.DataFrame) -> None:
    table = Table.read(data, transform="auto")
    assert table.transform == "none"
    np.testing.assert_array_equal(table.values, Table.read(data).values)


def test_auto_is_for_diffan_alone() -> None:
    def transform(method: str, **options: Any) -> object:
        found = diffan.discover(heavy(), method, inspect=False, device="cpu", **options)
        return found.settings["transform"]

    quick = {"max_steps": 5, "refine": False, "edges": "additive"}
    assert transform("diffan", **quick) == "log"
    assert transform("diffan", transform="none", **quick) == "none"
    assert transform("diffan", preset="paper", variant="masking", max_steps=5) == "none"
    assert transform("cam") == "none"


# ---- laws ---------------------------------------------------------------------------------

scales = st.floats(1e-12, 1e12)


@given(st.lists(scales, min_size=3, max_size=3), st.integers(0, 50))
@settings(max_examples=50, deadline=None)
def test_units_do_not_matter(factors: list[float], seed: int) -> None:
    data = frame(seed=seed)
    one, other = Table.read(data), Table.read(data * factors)
    np.testing.assert_array_equal(one.values, other.values)
    assert one.canonical_positions() == other.canonical_positions()


@given(st.permutations(range(5)), st.integers(0, 20))
@settings(max_examples=50, deadline=None)
def test_the_canonical_order_follows_the_columns(permutation: list[int], seed: int) -> None:
    data = frame(d=5, seed=seed)
    table, shuffled = Table.read(data), Table.read(data.iloc[:, permutation])
    names = [table.names[i] for i in table.canonical_positions()]
    assert names == [shuffled.names[i] for i in shuffled.canonical_positions()]


@given(st.lists(st.text(max_size=8), min_size=2, max_size=4, unique=True))
@settings(max_examples=50, deadline=None)
def test_names_are_kept_as_they_are(names: list[str]) -> None:
    data = frame(d=len(names)).set_axis(names, axis=1)
    assert Table.read(data).names == tuple(names)
