"""Messages about literals of the wrong type and about filters that match nothing."""

from __future__ import annotations

import re

import pytest

from semsearch import Document, Index, Retriever
from semsearch.comparison import compare_neighbours
from semsearch.errors import FilterError
from semsearch.stores import filtering

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
    with Retriever.open(path) as retriever:
        yield retriever


def found(retriever, where):
    return sorted(hit.document_id for hit in retriever.search("film", k=20, where=where))


@pytest.mark.parametrize(
    "date",
    [
        "1/5/2024",
        "5-Jan-24",
        "5-Jan-2024",
        "Jan 5, 2024 10:30 AM",
        "Fri Jan 05 10:00:00 +0000 2024",
        "Fri, 05 Jan 2024 10:00:00 GMT",
        "sex., 5 jan. 2024",
        "Friday, January 5, 2024",
        "Jan 2024",
    ],
)
def test_dates_that_do_not_sort(tmp_path, caplog, date):
    with Index.create(tmp_path / "bills", ["hashing:16"]) as index:
        index.add([Document("1", "a bill", metadata={"due": date})])
        with pytest.raises(FilterError, match="holds dates that do not sort as text, such as"):
            index.search("bill", where="due >= '2024-01-01'")
        index.add([Document("2", "a bill", metadata={"due": "2023-05-01"})])
        index.search("bill", where="due >= '2024-01-01'")
    assert f"due also holds dates that do not sort as text, such as '{date}', so the" in caplog.text


@pytest.mark.parametrize(
    "text", ["Boeing 747", "Room 101 is open", "Covid-19", "Version 2 of 1987", "5 apples 20"]
)
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
    ("where", "ids", "message"),
    [
        ("id = 1", ["1"], "where: id holds text; reading 1 as '1'"),
        ("id != 1 and year < 2002", ["0"], "where: id holds text; reading 1 as '1'"),
        ("year > '2008'", ["9"], "where: year holds numbers; reading '2008' as 2008"),
        ("year >= '+2008.5'", ["9"], "where: year holds numbers; reading '+2008.5' as 2008.5"),
        ("metadata.year = '2001'", ["1"], "where: year holds numbers; reading '2001' as 2001"),
        (
            "id in (1, 2, 3, '4', 5, 6)",
            list("123456"),
            "where: id holds text; reading 1 as '1', 2 as '2', 3 as '3' and 2 more",
        ),
        (
            "not year between '2001' and 2009",
            ["0"],
            "where: year holds numbers; reading '2001' as 2001",
        ),
        ("year in ('abc', 2001)", ["1"], "where: year holds numbers, not 'abc'"),
        ("seen not in (1, true)", list("13579"), "where: seen holds true or false, not 1"),
        (
            "seen = 'True' and id < '3'",
            ["0", "2"],
            "where: seen holds true or false; reading 'True' as true",
        ),
    ],
)
def test_unambiguous_literals_are_converted(retriever, caplog, where, ids, message):
    assert found(retriever, where) == ids
    assert caplog.messages == [message]
    found(retriever, where)
    assert caplog.messages == [message]  # logged once


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("year = 'abc'", "year holds numbers, such as 2000, not 'abc'"),
        ("year in ('abc', true)", "year holds numbers, such as 2000, not 'abc'"),
        ("year > '1e999'", "year holds numbers, such as 2000, not '1e999'"),
        (f"year != '{10**30}'", f"year holds numbers, such as 2000, not '{10**30}'"),
        ("year = '2,000'", "year holds numbers, such as 2000, not '2,000'"),
        ("not year = true", "year holds numbers, such as 2000, not true"),
        ("year like '20%'", "year holds numbers, such as 2000, not '20%'"),
        (
            "price > 1",
            "price holds text, such as '0,5', not 1; put text in quotes, or index the f",
        ),
        ("price = 1.5", "price holds text, such as '0,5', not 1.5; put text in quotes"),
        ("id > 1", "id holds text, such as '0', not 1; put text in quotes"),
        ("title = true", "title holds text, such as 'Film 0', not true"),
        ("seen = 1", "seen holds true or false, such as true, not 1"),
        ("seen > 'a'", "seen holds true or false, such as true, not 'a'"),
        (
            "on > 2004",
            "on holds dates, such as '2000-05-01', not 2004; write dates as '2020-05-01'",
        ),
        ("on = 2004", "on holds dates, such as '2000-05-01', not 2004; write dates as"),
        ("on > '01/05/2004'", "on holds dates, such as '2000-05-01', not '01/05/2004'; write dat"),
        ("on = 'May 2004'", "on holds dates, such as '2000-05-01', not 'May 2004'; write dates as"),
        (
            "day > '2004-05-01'",
            "day holds dates that do not sort as text, such as '1/5/2000'; index them as",
        ),
        ("on > 'x'", "on holds dates, such as '2000-05-01', not 'x'; write dates as"),
        (
            "published > '1.5.2004'",
            "published holds text or dates, such as '2001-05-01', not '1.5.2004'; write dates as",
        ),
        ("day between '2/5/2001' and '3/5/2002'", "day holds dates that do not sort as text"),
        ("mixed = true", "mixed holds text or numbers, such as '0', not true"),
        ("maker = 'Ann'", "maker holds objects, not 'Ann'"),
        ("genres = 5.5", "genres holds text, such as 'Drama', not 5.5; put text in quotes"),
        (
            "seen = true and (id = '1' or not year < 'x')",
            "year holds numbers, such as 2000, not 'x'",
        ),
    ],
)
def test_literals_that_a_field_never_holds_are_refused(path, retriever, where, message):
    for use in (
        lambda: found(retriever, where),
        lambda: retriever.index.passages(where=where),
        lambda: retriever.index.delete(where=where),
        lambda: compare_neighbours(path, "film", where=where),
    ):
        with pytest.raises(FilterError, match=f"^where: {re.escape(message)}"):
            use()


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("genres = 'horror'", "; genres = 'horror': did you mean 'Horror'?"),
        ("genres in ('drama ', 'x')", "; genres = 'drama ': did you mean 'Drama'?"),
        (
            "genres = 'Science-Fiction' and year = 2030",
            "; genres = 'Science-Fiction': did you mean 'Science Fiction'?; "
            "year = 2030: nearest: 2009",
        ),
        ("year > 2009", "; year > 2009: nearest: 2009"),
        ("year = 2004.5", "; year = 2004.5: nearest: 2004 or 2005"),
        ("on = '2004-06-01'", "; on = '2004-06-01': nearest: '2004-05-01' or '2005-05-01'"),
        ("title = 'film 3'", "; title = 'film 3': did you mean 'Film 3'?"),
        ("id = 'zz'", "; id = 'zz': nearest: '9'"),
        ("title > 'Film 9'", "; title > 'Film 9': nearest: 'Film 9'"),
        ("price = '3.5'", "; price = '3.5': did you mean '3,5'?"),
        ("mixed = 'zz'", "; mixed = 'zz': nearest: '8'"),
        ("year = 2001 and id = '2'", ""),  # each alone matches
        ("not genres like '%'", ""),
        ("seen = true and seen = false", ""),
        ("nothing = 5", ""),
    ],
)
def test_a_filter_that_matches_nothing_names_the_nearest_values(retriever, caplog, where, hint):
    message = f"where: no document matches{hint}"
    for use in (
        lambda: found(retriever, where),
        lambda: retriever.search("number", where=where, mode="bm25"),
        lambda: retriever.index.passages(where=where).texts,
    ):
        assert not use()
        assert caplog.messages == [message]
    assert retriever.index.delete(where=where) == 0
    assert caplog.messages == [message] * 2


def test_only_the_first_tests_of_a_long_filter_are_explained(retriever, caplog, monkeypatch):
    tried = []
    real = filtering._nearest
    monkeypatch.setattr(
        filtering, "_nearest", lambda state, test: tried.append(test) or real(state, test)
    )
    assert retriever.search("film", where=" or ".join(["year = 2030"] * 300)) == []
    assert "nearest: 2009" in caplog.text
    assert len(tried) <= 20


def test_fields_of_deleted_documents_are_known_until_the_index_is_compacted(tmp_path, caplog):
    with Index.create(tmp_path / "x", ["hashing:8"]) as index:
        index.add([Document("1", "One.", metadata={"prize": "Oscar"}), Document("2", "Two.")])
        index.delete(["1"])
        assert index.fields() == [] == index.info().fields
        with Retriever(index) as retriever:
            assert len(found(retriever, "prize is null and prize != 5")) == 1
            assert found(retriever, "prize = 'Oscar'") == []
            assert caplog.messages == ["where: no document matches"]
            with index.writer() as writer:
                assert writer.verify() == []
                writer.compact()
            with pytest.raises(FilterError, match="no document has a field 'prize'"):
                found(retriever, "prize is null")


def test_the_filter_is_not_blamed_if_no_word_matches(retriever, caplog):
    assert retriever.search("zebra", where="year = 2001", mode="bm25") == []
    assert caplog.messages == []


def test_messages_are_one_line_whatever_the_values_contain(tmp_path, caplog):
    evil = "\x1b[2J\nevil " * 40
    with Index.create(tmp_path / "x", ["hashing:8"]) as index:
        index.add([Document("1", "One.", metadata={evil: evil})])
        name = evil.replace('"', '""')
        with pytest.raises(FilterError) as refused:
            Retriever(index).search("x", where=f'"{name}" = 5.5')
        Retriever(index).search("x", where=f"\"{name}\" = '{evil}x'")
    assert all(text.isprintable() for text in [str(refused.value), *caplog.messages])
    assert max(len(text) for text in [str(refused.value), *caplog.messages]) < 600
    assert len(caplog.messages) == 1


def test_codes_that_look_like_numbers(tmp_path, caplog):
    with Index.create(tmp_path / "x", "hashing") as index:
        for name in ("007", "7", "+7"):
            index.add([Document(name, "text", metadata={"code": name, "n": int(name)})])
        for where, names in [
            ("id = 007", {"007"}),
            ("code in (007, +7)", {"007", "+7"}),
            ("code = 7", {"7"}),
            ("n = 007", {"007", "7", "+7"}),
        ]:
            assert {hit.document_id for hit in index.search("text", where=where)} == names, where
        assert "id holds text; reading 007 as '007'" in caplog.text
        assert index.delete(where="id = 007") == 1
        assert {document.id for document in index} == {"7", "+7"}


@pytest.mark.parametrize(
    "noon",
    [
        "2024-01-03T12:00:00",
        pytest.param("2024-01-03 12:00", marks=pytest.mark.slow),
        pytest.param("2024-01-03T00:00:01Z", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "time",
    [
        *("", " 00:00", "T00:00:00", "T00:00:00Z", "T00:00:00+00:00", "T00:00:00.000Z"),
        " 00:00:00+00:00",  # Python and pandas
        "T00:00:00.000000",
        " 00:00:00+00",  # PostgreSQL
        " 00:00:00.0000000",  # SQL Server
        " 00:00:00.0000000 +00:00",  # its datetimeoffset
        "T00:00:00.000000000",  # NumPy
        " 00:00:00 UTC",  # BigQuery
        "T00:00:00.000+0000",
        "T00:00Z",
    ],
)
def test_a_date_is_its_midnight(tmp_path, time, noon):
    """Workbooks, Parquet and databases store days with a time, tables without one."""
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add(
            Document(day, "text", metadata={"day": f"2024-01-0{day}{time}"}) for day in "1234567"
        )
        index.add([Document("noon", "text", metadata={"day": noon})])
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
        ("2020-01-01 {}:00:00+00:00", "<", "2020-01-01T05:00:00-07:00", " 12:00:00+00:00", "1"),
        ("2020-01-01T{}:00:00+05:00", ">", "2020-01-01T07:00Z", "T12:00:00+05:00", "3"),
        ("2020-01-01T{}:00:00", ">=", "2020-01-01T14:00:00+02:00", "T12:00:00", "23"),
        ("2020-01-01T{}:00:00.000Z", "<=", "2020-01-01T14:00:00+02:00", "T12:00:00.000Z", "12"),
        ("2020-01-01T{}:00Z", "=", "2020-01-01T14:00:00+02:00", "T12:00Z", "2"),
        ("2020-01-01T{}:00:00Z", "!=", "2020-01-01T14:00+02:00", "T12:00:00Z", "13"),
        ("2020-01-01 {}:00:00+0000", ">=", "2020-01-01T12:00:00Z", None, "23"),
        ("2020-01-01T{}:00:00Z", ">=", "2020-01-01T12:00:00.5", None, "3"),
        ("2020-01-01T{}:00:00Z", "<", "2020-01-01T12:00:00.5", None, "12"),
        ("2020-01-01T{}:00:00Z", "!=", "2020-01-01T12:00:00.5", None, "123"),
        ("2020-01-01T{}:00:00+02:00", "<", "9999-12-31T23:59:59Z", None, "123"),
        ("2020-01-01T{}:00:00Z", ">=", "2020-01-01T12:00:00", None, "23"),
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
        first = held.format(11)
        note = f"where: at holds dates such as '{first}'; reading '{given}' as '2020-01-01{reads}'"
        assert caplog.messages == ([note] if reads else [])


def test_times_in_several_notations(tmp_path, caplog):
    """What is equal is found in each of them; an order that may be wrong is reported."""
    with Index.create(tmp_path / "x", "hashing") as index:
        for name, at in enumerate(
            ["2020-05-01", "2020-05-01T12:00:00+02:00", "2020-05-01 10:00:00Z"]
        ):
            index.add([Document(str(name), "text", metadata={"at": at, "list": [at, "2021"]})])

        def found(where):
            return "".join(sorted(hit.document_id for hit in index.search("text", where=where)))

        assert found("at in ('2020-05-01T10:00:00Z', '2020')") == "12"
        assert found("list != '2020-05-01T10:00:00Z'") == "0"
        assert found("at > '2020-05-01'") == "12"
        assert "sort" not in caplog.text
        found("at > '2020-05-01T10:00:00Z'")
        assert (
            "where: at holds times in notations that do not sort together, such as "
            "'2020-05-01T12:00:00+02:00' and '2020-05-01 10:00:00Z', so the filter can be wrong; "
            "index them in one notation"
        ) in caplog.messages


def test_a_list_with_midnight_and_a_later_time_is_later_than_its_day(tmp_path):
    with Index.create(tmp_path / "x", "hashing") as index:
        times = ["2020-05-01T00:00:00Z", "2020-05-01T00:00:30Z"]
        index.add([Document("1", "text", metadata={"at": times})])
        assert index.search("text", where="at > '2020-05-01'")
        assert not index.search("text", where="at > '2020-05-01T00:00:30Z'")


def test_the_notation_is_that_of_the_times_wherever_they_are(tmp_path):
    with Index.create(tmp_path / "x", "hashing:8") as index:
        values = ["2020-05-01", *["2020-05-01T10:00:00.000Z"] * 1200]
        index.add(
            Document(str(number), "text", metadata={"at": at}) for number, at in enumerate(values)
        )
        index.delete([str(number) for number in range(1, 1000)])
        for where in ("at = '2020-05-01T12:00+02:00'", "at >= '2020-05-01T12:00+02:00'"):
            assert len(index.search("text", 1000, where=where)) == 201


@pytest.mark.parametrize("written", ["T11:00:00", " 11:00:00", "T11:00:00+00:00"])
def test_a_time_in_a_notation_outside_the_sample_is_found_as_it_is(tmp_path, monkeypatch, written):
    """Python writes no fraction of a second that is 0."""
    monkeypatch.setattr("semsearch.stores.local.fields.SPREAD_DATES", 1)
    time = f"2020-05-01{written}"
    times = [f"2020-05-01T1{hour}:00:00.5" for hour in range(3)]
    with Index.create(tmp_path / "x", "hashing:8") as index:
        index.add(Document(str(n), "text", metadata={"at": at}) for n, at in enumerate(times))
        index.add([Document("rare", "text", metadata={"at": time})])
        for where, names in [
            (f"at = '{time}'", ["rare"]),
            (f"at != '{time}'", ["0", "1", "2"]),
            (f"at in ('{time}', '2020-05-01T10:00:00.5')", ["0", "rare"]),
            (f"at >= '{time}'", ["1", "2", "rare"]),
            (f"at <= '{time}'", ["0", "rare"]),
            (f"at > '{time}'", ["1", "2"]),
            (f"at < '{time}'", ["0"]),
            (f"at between '{time}' and '{time}'", ["rare"]),
        ]:
            assert found(index, where) == names, where


def test_notations_of_a_field_that_few_documents_have(tmp_path):
    with Index.create(tmp_path / "x", "hashing:8") as index:
        index.add(
            Document(str(n), "text", metadata={"due": time} if n % 20 == 1 else {})
            for n in range(2000)
            for time in ["2024-06-12T00:00:00Z" if n > 1 else "2024-06-12"]
        )
        assert index.count("due = '2024-06-12'") == 100
        assert index.count("due = '2024-06-12T02:00+02:00'") == 100


def test_the_notation_of_a_field_that_the_sample_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr("semsearch.stores.local.fields.SPREAD_DOCUMENTS", 1)
    with Index.create(tmp_path / "x", "hashing:8") as index:
        index.add(Document(str(n), "text") for n in range(3))
        index.add([Document("due", "text", metadata={"due": "2020-05-01T10:00+02:00"})])
        assert index.count("due = '2020-05-01T08:00Z'") == 1
        assert index.count("due < '2020-05-01T08:30Z'") == 1


def test_the_hint_of_a_day_names_what_was_written(retriever, caplog):
    for where, hint in [
        ("on > '2099-01-01'", "on > '2099-01-01': nearest: '2009-05-01'"),
        ("on <= '1999-01-01'", "on <= '1999-01-01': nearest: '2000-05-01'"),
    ]:
        assert not found(retriever, where)
        assert caplog.messages[-1] == f"where: no document matches; {hint}"


def test_long_texts_are_not_compared_by_spelling(path, monkeypatch, caplog):
    monkeypatch.setattr("difflib.get_close_matches", lambda *_: pytest.fail("compared"))
    with Retriever.open(path) as retriever:
        assert not retriever.search("film", where=f"genres = '{'x' * 300}'")
    assert "no document matches" in caplog.text
