import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.index.query import DENSE_CHARACTERS, MAX_WORDS, analyse, refine
from memoryvault.index.stemming import stems
from memoryvault.index.vocabulary import IndexVocabulary


@dataclass
class Terms(IndexVocabulary):
    """A vocabulary with these terms."""

    counts: Mapping[str, int] = field(default_factory=dict)
    chunk_count: int = 100

    def document_frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        return {term: self.counts[term] for term in terms if term in self.counts}

    def spelling_candidates(self, term: str) -> list[str]:
        return [each for each in self.counts if each[0] == term[0]]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How do I evolve a memory entry?", ("evolve", "memory", "entry")),
        ("Caroline's identity", ("caroline", "identity")),
        ("Wann veröffentlichen wir Releases?", ("veröffentlichen", "releases")),
        ("数据库密码放在哪里？", ("数据", "据库", "库密", "密码", "码放", "放在")),
        ("リリースはいつ行う？", ("リリース",)),
        ("テストを並列で実行できる？", ("テスト", "並列", "実行")),
    ],
)
def test_the_words_of_a_question_are_those_of_content_in_their_order(question: str, words: tuple[str, ...]) -> None:
    assert analyse(question).words == words


@pytest.mark.parametrize("text", ["", "   ", "x", "hello!", "ok thanks", "what is it?", "yes please", "👍", "\x00"])
def test_a_prompt_that_says_nothing_has_no_words_and_no_expression(text: str) -> None:
    query = analyse(text)

    assert query.words == ()
    assert query.fts_match is None


def test_of_the_pairs_of_a_run_those_count_that_a_note_has() -> None:
    query = refine(analyse("数据库密码放在哪里？"), Terms({"数据": 3, "据库": 3, "密码": 1}))

    assert query.words == ("数据", "据库", "密码", "放在")


@pytest.mark.parametrize(
    "identifier",
    ["get_user_id", "getUserId", "src/foo/bar.py", "E0502", "ECONNRESET", "v2.13", "problem+json".replace("+", "-")],
)
def test_identifiers_are_seen(identifier: str) -> None:
    assert identifier in analyse(f"why does {identifier} fail").identifiers


def test_an_identifier_is_also_asked_as_the_phrase_it_is() -> None:
    match = analyse("get_user_id").fts_match

    assert match is not None
    assert '"get user id"' in match


def test_a_rare_word_weighs_more_than_a_common_one_and_the_weights_sum_to_one() -> None:
    query = refine(analyse("widget quokka"), Terms({"widget": 90, "quokka": 1}))

    weights = {term.word: term.weight for term in query.terms}
    assert weights["quokka"] > 10 * weights["widget"]
    assert sum(weights.values()) == pytest.approx(1)


def test_a_misspelt_word_also_asks_for_the_one_the_vault_has() -> None:
    query = refine(analyse("kuberntes limits"), Terms({"kubernet": 3, "limit": 5, "kubectl": 1}))

    assert query.terms[0].corrections == ("kubernet",)
    assert refine(analyse("serevr logs"), Terms({"server": 3})).terms[0].corrections == ("server",), (
        "a swap is one edit"
    )
    assert query.fts_match == '"kuberntes" OR "kubernet" OR "limits"'


def test_a_word_that_the_vault_has_has_no_corrections_nor_a_short_or_a_numbered_one() -> None:
    query = refine(analyse("port pot e0502"), Terms({"port": 3, "pod": 2, "e0503": 1}))

    assert [term.corrections for term in query.terms] == [(), (), ()]


def test_of_a_pasted_page_the_rarest_words_are_asked() -> None:
    page = " ".join(f"word{number:03d}x" for number in range(300))
    query = refine(analyse(page + " quokka"), Terms({stems(f"word{n:03d}x")[0]: 50 for n in range(300)}))

    assert len(query.terms) == MAX_WORDS
    assert "quokka" in query.words
    assert len(query.dense_text) <= DENSE_CHARACTERS + 3


@given(st.text(max_size=300))
def test_any_text_makes_an_expression_that_fts5_accepts(text: str) -> None:
    query = refine(analyse(text), Terms({"limit": 1}))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(title, tags, body, tokenize='porter unicode61')")
        if query.fts_match is not None:
            connection.execute("SELECT * FROM t WHERE t MATCH ?", (query.fts_match,)).fetchall()


@given(st.lists(st.sampled_from(["running", "Größe", "deploys", "caresses", "E0502", "naïve", "日本"]), min_size=1))
def test_stems_are_those_of_the_index(words: list[str]) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61 remove_diacritics 2')")
        connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, row)")
        connection.execute("INSERT INTO t VALUES (?)", (" ".join(words),))
        indexed = {row[0] for row in connection.execute("SELECT term FROM v")}
    assert set(stems(" ".join(words))) == indexed


def test_in_a_large_vault_a_passage_must_have_one_of_the_rarer_words_and_the_others_still_count() -> None:
    counts = {"deploy": 5_000, "server": 40_000, "stage": 700, "get": 30_000, "quota": 90, "id": 60_000}

    match = refine(analyse("deploy the staging server with get_quota_id"), Terms(counts, 100_000)).fts_match

    assert match is not None
    required, _, every = match.partition(" AND ")
    rare = {'"get quota id"', '"getquotaid"', '"quota"', '"staging"', '"deploy"'}
    assert set(required.strip("()").split(" OR ")) == rare
    assert {'"server"', '"id"', *rare} <= set(every.strip("()").split(" OR "))
    small = refine(analyse("deploy the staging server"), Terms(counts, 5_000))
    assert small.fts_match == '"deploy" OR "staging" OR "server"'


def test_words_that_are_nowhere_do_not_make_a_large_vault_silent() -> None:
    match = refine(analyse("zzyzx server"), Terms({"server": 40_000, "build": 40_000}, 100_000)).fts_match

    assert match == '"zzyzx" OR "server"'
    both = refine(analyse("zzyzx server build"), Terms({"server": 40_000, "build": 40_000}, 100_000)).fts_match
    assert both == '("zzyzx" OR "server") AND ("zzyzx" OR "server" OR "build")'


def test_half_a_surrogate_pair_reaches_no_tokenizer() -> None:
    """As of an emoji that a host cut through; `encode` would raise."""
    query = analyse("releases \ud83d on Tuesday")
    assert query.words == ("releases", "tuesday")
    assert "releases" in query.dense_text.encode("utf-8").decode("utf-8")
