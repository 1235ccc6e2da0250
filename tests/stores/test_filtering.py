"""Messages about literals of the wrong type and about filters that match nothing."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.errors import FilterError

GENRES = ["Drama", "Horror", "Science Fiction"]


def film(number):
    return Document(
        str(number),
        f"A film, number {number}.",
        f"Film {number}",
        {
            "year": 2000 + number,
            "genres": [GENRES[number % 3]],
            "seen": number % 2 == 0,
            "price": f"{number},5",
            "on": f"200{number}-05-01",
            "day": f"1/5/200{number}",
            "published": f"200{number}-05-01" if number % 5 else "unknown",
            "mixed": number if number % 2 else str(number),
            "maker": {"name": "Ann"},
            "nothing": None,
            "flag": f"{number}" if number else True,
        },
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("films") / "films"
    with Index.create(path, ["hashing:16"]) as index:
        index.add(map(film, range(10)))
    return path


@pytest.fixture
def retriever(path):
    with Index.open(path) as retriever:
        yield retriever


def found(retriever, where):
    return sorted(hit.document_id for hit in retriever.search("film", k=20, where=where))


@pytest.mark.parametrize(
    "date",
    ["1/5/2024", "5-Jan-24", "Fri, 05 Jan 2024 10:00:00 GMT", "sex., 5 jan. 2024", "Jan 2024"],
)
def test_dates_that_do_not_sort(tmp_path, caplog, date):
    with Index.create(tmp_path / "bills", ["hashing:16"]) as index:
        index.add([Document("1", "a bill", metadata={"due": date})])
        with pytest.raises(FilterError):
            index.search("bill", where="due >= '2024-01-01'")
        index.add([Document("2", "a bill", metadata={"due": "2023-05-01"})])
        index.search("bill", where="due >= '2024-01-01'")
    assert f"'{date}'" in caplog.text


@pytest.mark.parametrize("text", ["Boeing 747", "Covid-19", "Version 2 of 1987"])
def test_other_texts_are_not_taken_for_dates(tmp_path, caplog, text):
    with Index.create(tmp_path / "names", ["hashing:16"]) as index:
        index.add([Document("1", "a name", metadata={"name": text})])
        index.search("name", where="name >= '2024-01-01'")
        index.search("name", where="name < 'Boeing 800'")
        index.add([Document("2", "a name", metadata={"name": "2023-05-01"})])
        index.search("name", where="name >= '2024-01-01'")
    assert "dates" not in caplog.text


def test_valid_filters_log_nothing(retriever, caplog):
    for where, count in [
        ("id = '1' and title = 'Film 1'", 1),
        ("year > 2004 and year != 2006.0", 4),
        ("genres in ('Drama', 'Horror') and seen = true", 3),
        ("on > '2004' and on <= '2006-05-01' and on < '2006-05-01T10:00'", 3),
        ("on like '2004%' and price = '4,5'", 1),
        ("mixed = 1 or mixed = '2' or mixed > 8", 3),
        ("flag = true or flag = '1'", 2),
        ("on != '' and not on = 'unknown' and on not in ('', '2000-05-01')", 9),
        ("published > '2003' and published < '2009'", 5),
        ("nothing is null and nothing != 1 and not nothing = 'x'", 10),
        ("maker is not null", 10),
    ]:
        assert len(found(retriever, where)) == count, where
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("where", "ids", "readings"),
    [
        ("id = 1", "1", ["1 as '1'"]),
        ("id != 1 and year < 2002", "0", ["1 as '1'"]),
        ("year > '2008'", "9", ["'2008' as 2008"]),
        ("year >= '+2008.5'", "9", ["'+2008.5' as 2008.5"]),
        ("metadata.year = '2001'", "1", ["'2001' as 2001"]),
        ("id in (1, 2, 3, '4', 5, 6)", "123456", ["1 as '1', 2 as '2', 3 as '3'", "2 more"]),
        ("year in ('abc', 2001)", "1", ["not 'abc'"]),
        ("seen not in (1, true)", "13579", ["not 1"]),
        ("seen = 'True' and id < '3'", "02", ["'True' as true"]),
    ],
)
def test_unambiguous_literals_are_converted(retriever, caplog, where, ids, readings):
    for _ in range(2):  # logged once
        assert found(retriever, where) == list(ids)
        [message] = caplog.messages
        assert all(reading in message for reading in readings)


@pytest.mark.parametrize(
    ("where", "field", "shown"),
    [
        ("year = 'abc'", "year", "2000"),
        ("year in ('abc', true)", "year", "2000"),
        ("year > '1e999'", "year", "2000"),
        (f"year != '{10**30}'", "year", "2000"),
        ("year like '20%'", "year", "2000"),
        ("price > 1", "price", "'0,5'"),
        ("seen = 1", "seen", "true"),
        ("on > 2004", "on", "'2000-05-01'"),
        ("on > '01/05/2004'", "on", "'2000-05-01'"),
        ("day > '2004-05-01'", "day", "'1/5/2000'"),
        ("day between '2/5/2001' and '3/5/2002'", "day", "'1/5/2000'"),
        ("published > '1.5.2004'", "published", "'2001-05-01'"),
        ("mixed = true", "mixed", "'0'"),
        ("maker = 'Ann'", "maker", "objects"),
        ("genres = 5.5", "genres", "'Drama'"),
        ("seen = true and (id = '1' or not year < 'x')", "year", "2000"),
    ],
)
def test_literals_that_a_field_never_holds_are_refused(retriever, where, field, shown):
    for use in (found, lambda retriever, where: retriever.index.delete(where=where)):
        with pytest.raises(FilterError, match=rf"^where: {field} holds .*{shown}"):
            use(retriever, where)


@pytest.mark.parametrize(
    ("where", "nearest"),
    [
        ("genres = 'horror'", ["'Horror'?"]),
        ("genres in ('drama ', 'x')", ["'Drama'?"]),
        ("genres = 'Science-Fiction' and year = 2030", ["'Science Fiction'?", ": 2009"]),
        ("year > 2009", [": 2009"]),
        ("year = 2004.5", [": 2004 or 2005"]),
        ("on = '2004-06-01'", [": '2004-05-01' or '2005-05-01'"]),
        ("on <= '1999-01-01'", [": '2000-05-01'"]),
        ("id = 'zz'", [": '9'"]),
        ("price = '3.5'", ["'3,5'?"]),
        ("year = 2001 and id = '2'", []),  # each alone matches
        ("not genres like '%'", []),
        ("nothing = 5", []),
    ],
)
def test_a_filter_that_matches_nothing_names_the_nearest_values(retriever, caplog, where, nearest):
    assert not found(retriever, where)
    assert not retriever.search("number", where=where, mode="bm25")
    [message] = caplog.messages
    hints = message.split("; ")[1:]
    assert len(hints) == len(nearest)
    assert all(hint.endswith(value) for hint, value in zip(hints, nearest, strict=True))


def test_fields_of_deleted_documents_are_known_until_the_index_is_compacted(tmp_path, caplog):
    with Index.create(tmp_path / "x", ["hashing:8"]) as index:
        index.add([Document("1", "One.", metadata={"prize": "Oscar"}), Document("2", "Two.")])
        index.delete(["1"])
        assert index.fields() == [] == index.info().fields
        assert len(found(index, "prize is null and prize != 5")) == 1
        assert found(index, "prize = 'Oscar'") == []
        assert len(caplog.messages) == 1
        with index.writer() as writer:
            assert writer.verify() == []
            writer.compact()
        with pytest.raises(FilterError):
            found(index, "prize is null")


@pytest.mark.parametrize(
    "time",
    [
        "",
        "T00:00Z",
        " 00:00:00+00:00",
        "T00:00:00.000000000",
        " 00:00:00 UTC",
        "T00:00:00.000+0000",
    ],
)
def test_a_date_is_its_midnight(tmp_path, time):
    """Workbooks, Parquet and databases store days with a time, tables without one."""
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add(
            Document(day, "text", metadata={"day": f"2024-01-0{day}{time}"}) for day in "1234567"
        )
        index.add([Document("noon", "text", metadata={"day": "2024-01-03T12:00:00"})])
        index.add([Document("lists", "text", metadata={"on": [f"2024-01-03{time}", "2025"]})])
        for where, names in [
            ("day = '2024-01-03'", "3"),
            ("day != '2024-01-03'", "124567ln"),
            ("day <= '2024-01-03'", "123"),
            ("day < '2024-01-03'", "12"),
            ("day > '2024-01-03'", "4567n"),
            ("day >= '2024-01-03'", "34567n"),
            ("day between '2024-01-02' and '2024-01-04'", "234n"),
            ("day in ('2024-01-02', '2024-01-07')", "27"),
            ("on = '2024-01-03'", "l"),
            ("on > '2025-01-01' or on = '2024-01-02'", ""),
            ("on > '2024-01-03'", "l"),
            ("on <= '2024-01-03'", "l"),
        ]:
            hits = index.search("text", 20, where=where)
            assert "".join(sorted(hit.document_id[0] for hit in hits)) == names, where


@pytest.mark.parametrize(
    ("held", "sign", "given", "reads", "names"),
    [  # at 11:00, 12:00 and 13:00 UTC
        ("2020-01-01T{}:00:00+00:00", ">=", "2020-01-01T14:00:00+02:00", "T12:00:00+00:00", "23"),
        ("2020-01-01T{}:00:00Z", "<=", "2020-01-01T14:00:00+02:00", "T12:00:00Z", "12"),
        ("2020-01-01T{}:00:00+05:00", ">", "2020-01-01T07:00Z", "T12:00:00+05:00", "3"),
        ("2020-01-01T{}:00Z", "=", "2020-01-01T14:00:00+02:00", "T12:00Z", "2"),
        ("2020-01-01 {}:00:00+0000", ">=", "2020-01-01T12:00:00Z", None, "23"),
        ("2020-01-01T{}:00:00Z", ">=", "2020-01-01T12:00:00.5", None, "3"),
        ("2020-01-01T{}:00:00Z", "<", "2020-01-01T12:00:00.5", None, "12"),
        ("2020-01-01T{}:00:00Z", "!=", "2020-01-01T12:00:00.5", None, "123"),
        ("2020-01-01T{}:00:00+02:00", "<", "9999-12-31T23:59:59Z", None, "123"),
        ("2020-01-01T{}:00:00Z", ">", "2020-01-01T12:00:00Z", None, "3"),
    ],
)
def test_times_are_compared_in_the_notation_of_the_field(
    tmp_path, caplog, held, sign, given, reads, names
):
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add(
            Document(name, "text", metadata={"at": held.format(10 + int(name))}) for name in "123"
        )
        hits = index.search("text", where=f"at {sign} '{given}'")
        assert sorted(hit.document_id for hit in hits) == list(names)
        assert [f"'{given}' as '2020-01-01{reads}'" in one for one in caplog.messages] == (
            [True] if reads else []
        )
