"""BM25 finds words however they are written, in scripts with spaces and without them."""

from __future__ import annotations

import sqlite3
import unicodedata
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semsearch import Document, Index
from semsearch.errors import ArgumentError
from semsearch.storage.words import MAX_QUERY_WORDS, Analyser

ENGLISH = Analyser()

TEXTS = {
    "english": (
        "The naïve runners were running to the café: 2 cafés co\u00adoperate, ﬁnally. 𝐇₂O."
    ),
    "german": "Die Straße der Übergröße führt über den Fluß.",
    "polish": "Łódź leży w środku Polski.",
    "turkish": "Işıklar söndü, İstanbul'da ılık çorba içtik.",
    "danish": "Bøger om Ærø på dansk.",
    "russian": "Старый за\u0301мок стоит у реки, пьют чай. Ещё рано.",
    "greek": "Η Αθήνα είναι πόλη· ο δρόμος, ἡ ὁδὸς τῶν Ἀθηνῶν.",
    "arabic": "ذَهَبَ مُحَمَّدٌ إِلَى المدرســـة ﻛﺘﺎﺏ أحمد",
    "persian": "من به خانه می‌روم",
    "hebrew": "שָׁלוֹם לְכֻלָּם",
    "hindi": "मैं हिन्दी की किताबें पढ़ता हूँ।",
    "chinese": "我在北京大学学习计算机科学。2024年",
    "japanese": "東京の天気は晴れ。Pythonでパソコンを使う。",
    "korean": "나는 서울에서 학교에 다닌다.",
    "thai": "ฉันมีแมวสองตัวและหมาหนึ่งตัว",
    "khmer": "ខ្ញុំស្រលាញ់ភាសាខ្មែរ",
}

#: Words of each text above, in other forms.
FOUND = {
    "english": "naive NAÏVE run cafe Cafés cooperating finally ﬁnally 2 H2O",
    "german": "STRASSE strasse straße übergröße UBERGROSSE fluss FÜHRT",
    "polish": "Łódź łódź ŁÓDŹ lodz Łodz srodku",
    "turkish": "ışıklar IŞIKLAR Işıklar isiklar İSTANBUL istanbul ILIK ilik",
    "danish": "bøger BØGER boger Ærø aero pa",
    "russian": "замок ЗАМОК за\u0301мок чай ЧАЙ реки ещё еще ЕЩЁ",
    "greek": "Αθήνα ΑΘΉΝΑ δρόμος ΔΡΌΜΟΣ ὁδὸς ΠΌΛΗ",
    "arabic": "محمد مُحَمَّد ذهب المدرسة كتاب ﻛﺘﺎﺏ أحمد احمد الى إلي",
    "persian": "می\u200cروم مي\u200cروم روم خانه",
    "hebrew": "שלום שָׁלוֹם לכלם",
    "hindi": "हिन्दी हिन्\u200dदी किताबें हूँ हूं पढ\u093cता पढ\u093cता",
    "chinese": "北京 大学 北京大学 计算机 科学 学 机 2024 年 ２０２４",
    "japanese": "天気 東京 東京タワー 晴 Python パソコン ﾊﾟｿｺﾝ 使う で",
    "korean": "서울 서울에서 학교 학교를 나",
    "thai": "แมว หมา สอง แมวสองตัว ตัว",
    "khmer": "ភាសា ខ្មែរ",
}

#: Words and parts of words that a text does not have: й is another letter than и.
NOT_FOUND = {
    "english": "caf unner tree",
    "german": "gröse stra",
    "russian": "чаи мок",
    "greek": "αθην δρομ",
    "arabic": "حمد درسة",
    "hindi": "ह हिन्द दी किताब मे हिनदी",
    "chinese": "京北 学大 上海 東",
    "japanese": "京東 気天 ソパ",
    "korean": "울서 부산",
    "thai": "ตส แม่ หมี",
}


@pytest.fixture(scope="module")
def find(tmp_path_factory):
    path = tmp_path_factory.mktemp("languages") / "x"
    with Index.create(path, ["hashing:8"]) as index:
        index.add(
            Document(name, unicodedata.normalize("NFD", text)) for name, text in TEXTS.items()
        )
        yield lambda query: {hit.document_id for hit in index.search(query, k=100, mode="bm25")}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("language", TEXTS)
def test_words_are_found(find, language, form):
    for query in FOUND[language].split(" "):
        assert language in find(unicodedata.normalize(form, query)), query
    for query in NOT_FOUND.get(language, "").split():
        assert language not in find(unicodedata.normalize(form, query)), query


def test_pairs_of_characters():
    assert ENGLISH.searchable("東京都へGo!") == "東京 京都 都へ へ go"
    assert ENGLISH.query_terms("東京都へGo!") == ['"東京"', '"京都"', '"都へ"', '"go"']
    assert ENGLISH.query_terms("京 b") == ['"京" *', '"b"']
    assert ENGLISH.query_terms("ตัวก") == ['"ตัว"', '"วก"']  # a character keeps its signs


def test_ascii_is_left_to_fts5():
    """So that rankings in English do not change."""
    text = "The cat's not_at_all, e.g. 3.5 MB (naps)!"
    assert ENGLISH.searchable(text) == text
    words = ["cat", "not_at_all", "e", "g", "3", "5", "mb", "naps"]  # without stop words
    assert ENGLISH.query_terms(text) == [f'"{word}"' for word in words]


def test_stop_words_are_left_out_of_queries_that_have_three_others():
    """Frequent words, which are many in an index, are left out of queries that have any others."""
    payment = ENGLISH.query_terms("My payment did NOT go through")
    assert payment == ['"payment"', '"go"', '"through"']
    assert Analyser(frequent_words=["go"]).query_terms("Payment go through") == payment[::2]
    assert ENGLISH.query_terms("The payment failed") == ['"the"', '"payment"', '"failed"']
    assert Analyser(frequent_words=["the"]).query_terms("The sting of it") == [
        f'"{word}"' for word in ["sting", "of", "it"]
    ]
    assert ENGLISH.query_terms("To be, or not to be") == [
        f'"{word}"' for word in ["to", "be", "or", "not", "to", "be"]
    ]
    assert ENGLISH.match_expression("the", ["to be or"]) == '"the" OR "to be or"'
    assert ENGLISH.words("Don't GO, 東京 Ärzte") == {"don", "t", "go", "ärzte"}


def test_signs_belong_to_words():
    """And a dot ends a sentence, as an ellipsis does."""
    texts = [
        "We use C++ here.",
        "Built with C#, F#",
        "C is old.",
        "The .NET runtime ...and more",
        "É# ",
    ]
    for query, expected in {
        "C++": [0],
        "c#": [1],
        "F#": [1],
        "C": [2],
        ".net": [3],
        "é#": [4],
    }.items():
        assert places(texts, query) == expected, query
    assert tokens(ENGLISH.searchable("x+y #tag ...and .5 a.b end. Next")) == [
        *("x", "y", "tag", "and", "5", "a", "b", "end", "next")
    ]


def test_pairs_count_as_words():
    assert places(["東京"], "東" * (MAX_QUERY_WORDS + 1)) == []
    with pytest.raises(ArgumentError):
        ENGLISH.match_expression("東" * (MAX_QUERY_WORDS + 2))


def places(texts, query):
    """The positions of the texts that FTS5 finds, best first."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE VIRTUAL TABLE t USING fts5(x, tokenize="{ENGLISH.tokenizer}")')
        rows = enumerate(map(ENGLISH.searchable, texts))
        connection.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", rows)
        match = ENGLISH.match_expression(query)
        found = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank, rowid"
        return [] if match is None else [row[0] for row in connection.execute(found, [match])]


def tokens(text):
    """The terms that FTS5 stores for a text."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE VIRTUAL TABLE t USING fts5(x, tokenize="{ENGLISH.tokenizer}")')
        connection.execute("INSERT INTO t VALUES (?)", [text])
        connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
        return [term for (term,) in connection.execute('SELECT term FROM v ORDER BY "offset"')]


letters = st.characters(exclude_categories=["Cs", "Cn"], exclude_characters="\0")
languages = st.sampled_from(list(TEXTS.values()))
some_text = st.text(letters, max_size=12) | languages


@settings(max_examples=150)
@given(some_text)
def test_normal_forms_of_a_text_are_equal(text):
    expected = ENGLISH.searchable(text)
    for form in ("NFC", "NFD"):
        assert ENGLISH.searchable(unicodedata.normalize(form, text)) == expected


@pytest.mark.parametrize("sign", ["\u20bd", "\u20bf", "\U0001f923", "\u2066", "\u2e3c"])
def test_symbols_newer_than_fts5_separate_words(sign):
    for query in ("funny", "film", f"funny{sign}", f"{sign}film"):
        assert places([f"funny{sign}{sign}film"], query) == [0]
    assert places([f"funny{sign}{sign}film"], sign) == []


@settings(max_examples=100)
@given(st.text(st.characters(categories=["L", "M", "N", "P", "Z", "Co"]), max_size=12) | languages)
def test_a_text_is_found_by_itself(text):
    """Queries are analysed as the stored texts are."""
    assert places([text], text) == ([0] if tokens(ENGLISH.searchable(text)) else [])
