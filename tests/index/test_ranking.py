from dataclasses import replace
from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from memoryvault.index.query import QueryAnalysis, analyse
from memoryvault.index.ranking import (
    SCORE_SLOTS_AT_HIGH_OVERLAP,
    SEMANTIC_SLOTS_AT_HIGH_OVERLAP,
    DenseHit,
    EntryFacts,
    KeywordHit,
    ScoredEntry,
    WordEvidence,
    fuse,
    fuse_by_kind,
    is_near_duplicate,
)

QUERY = analyse("dropping a column without downtime")


def facts(**paths: EntryFacts | None) -> dict[int, EntryFacts]:
    return {n: given or EntryFacts(f"{path}.md") for n, (path, given) in enumerate(paths.items(), 1)}


def order(ranked: list[ScoredEntry]) -> list[int]:
    return [row.entry_rowid for row in ranked]


def test_the_best_chunk_counts_for_its_entry() -> None:
    dense = [DenseHit(10, 1, 0.2), DenseHit(11, 1, 0.6), DenseHit(20, 2, 0.4)]

    ranked = fuse(QUERY, dense, [], facts(a=None, b=None))

    assert [(row.entry_rowid, row.chunk_rowid) for row in ranked] == [(1, 11), (2, 20)]


def test_ties_go_by_path_and_the_folders_own_note_first() -> None:
    keyword = [KeywordHit(n, n, 1.0) for n in (1, 2, 3)]
    entries = {1: EntryFacts("charlie.md"), 2: EntryFacts("alpha.md"), 3: EntryFacts("z/_index.md")}

    assert order(fuse(QUERY, [], keyword, entries)) == [3, 2, 1]


def test_priors_do_not_overturn_a_clear_answer() -> None:
    dense = [DenseHit(1, 1, 0.6), DenseHit(2, 2, 0.4)]
    entries = {
        1: EntryFacts("old.md", updated=date(2019, 1, 1)),
        2: EntryFacts("new.md", updated=date(2026, 1, 1), occurrences=60),
    }
    evidence = {1: WordEvidence(0.5, 0.0, 0.8), 2: WordEvidence(0.4, 0.0, 0.8)}

    assert order(fuse(QUERY, dense, [], entries, evidence)) == [1, 2]


def test_an_entry_out_of_scope_is_left_out() -> None:
    assert fuse(QUERY, [DenseHit(1, 9, 0.9)], [], facts(a=None)) == []


ANSWER, ASIDE = WordEvidence(0.3, 0.1, 0.5), WordEvidence(0.0, 0.15, 0.0)
"""Of what answers a prompt, and of what only lies beside it."""


def _among(
    notes: dict[int, tuple[float, WordEvidence]], skills: dict[int, tuple[float, WordEvidence]]
) -> list[ScoredEntry]:
    """Ranked as for a prompt: (cosine, evidence) of each note and skill."""
    every = notes | skills
    entries = {n: EntryFacts(f"{n:02}.md", kind="skill" if n in skills else "fix") for n in every}
    dense = [DenseHit(n, n, cosine) for n, (cosine, _) in every.items()]
    return fuse_by_kind(QUERY, dense, [], entries, {n: evidence for n, (_, evidence) in every.items()})


def test_what_lies_around_a_note_are_notes_not_skills() -> None:
    alone = {row.entry_rowid: row for row in _among({1: (0.4, ASIDE)}, {})}
    beside = {row.entry_rowid: row for row in _among({1: (0.4, ASIDE)}, dict.fromkeys(range(10, 40), (0.35, ASIDE)))}

    assert beside[1] == alone[1]


def test_near_duplicates_are_told_from_notes_about_the_same_thing() -> None:
    first = "Start at 200 ms, double each time, at most five tries, and add full jitter."

    assert is_near_duplicate(first, first.replace("Start", "Begin"))
    assert not is_near_duplicate(first, "Retries of the uploader start at 200 ms and stop after five tries.")
    assert not is_near_duplicate("", "")


def _echoes_and_an_answer(
    coverage: float = 0.7, *, as_near: int = 0, query: QueryAnalysis = QUERY
) -> list[ScoredEntry]:
    """Entries 1 to 6 have this share of the question's words, 7 means it; 8 has half of the words too. `as_near` more
    are nearly as near as any, but answer nothing."""
    names = dict.fromkeys([*"abcdefgh", *(f"z{n:02}" for n in range(as_near))])
    dense = [*[DenseHit(n, n, 0.45) for n in range(1, 7)], DenseHit(7, 7, 0.35), DenseHit(8, 8, 0.35)]
    dense += [DenseHit(n, n, 0.34) for n in range(9, 9 + as_near)]
    evidence = {n: WordEvidence(same=0.4 - n / 100, related=0.1, coverage=coverage) for n in range(1, 7)}
    evidence[7] = WordEvidence(same=0.0, related=0.25, coverage=0.0)
    evidence[8] = WordEvidence(same=0.1, related=0.2, coverage=0.5)
    evidence |= {n: WordEvidence(0.0, 0.0, 0.0) for n in range(9, 9 + as_near)}
    return fuse(query, dense, [], facts(**names), evidence)


def test_what_answers_without_the_words_has_a_place_among_the_five_behind_notes_that_echo_them() -> None:
    assert order(_echoes_and_an_answer())[:5] == [1, 2, 3, 7, 4]


def test_where_the_first_has_all_the_words_only_one_more_is_shown_for_them_first() -> None:
    assert order(_echoes_and_an_answer(coverage=0.9))[:5] == [1, 2, 7, 3, 4]
    # Unless all are about as near: then the words are what there is to go by.
    assert order(_echoes_and_an_answer(coverage=0.9, as_near=40))[:5] == [1, 2, 3, 7, 9]


def test_a_question_of_a_name_or_two_is_answered_by_all_that_bear_it() -> None:
    ranked = _echoes_and_an_answer(coverage=0.9, query=analyse("ERR_9931"))
    assert order(ranked)[:5] == [1, 2, 3, 4, 5]


def _by_words_or_by_vector(background: float, query: QueryAnalysis = QUERY) -> list[ScoredEntry]:
    """1 has more of the words, 2 is the nearest; forty others are as near as `background`."""
    dense = [DenseHit(1, 1, 0.4), DenseHit(2, 2, 0.6), *(DenseHit(n, n, background) for n in range(3, 43))]
    evidence = {1: WordEvidence(0.45, 0.0, 0.7), 2: WordEvidence(0.25, 0.0, 0.4)}
    evidence |= {n: WordEvidence(0.0, 0.0, 0.0) for n in range(3, 43)}
    names = dict.fromkeys(f"n{n:02}" for n in range(1, 43))
    return fuse(query, dense, [], facts(**names), evidence)[:2]


def test_the_vectors_count_for_more_where_the_nearest_stands_out() -> None:
    assert order(_by_words_or_by_vector(background=0.1)) == [2, 1]
    # Between turns of one conversation all are about as near, and the vectors say little about this question.
    assert order(_by_words_or_by_vector(background=0.35)) == [1, 2]


def test_the_vectors_of_a_misspelt_question_count_for_no_more() -> None:
    misspelt = replace(QUERY, terms=tuple(replace(term, corrections=("column",)) for term in QUERY.terms))

    assert order(_by_words_or_by_vector(background=0.1, query=misspelt)) == [1, 2]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.floats(-1, 1)), max_size=20),
    st.lists(st.tuples(st.integers(1, 5), st.floats(0, 50)), max_size=20),
)
def test_fusion_gives_each_entry_once_in_falling_order_but_for_the_places_of_meaning(
    dense: list[tuple[int, float]], keyword: list[tuple[int, float]]
) -> None:
    ranked = fuse(
        QUERY,
        [DenseHit(n, entry, value) for n, (entry, value) in enumerate(dense)],
        [KeywordHit(100 + n, entry, value) for n, (entry, value) in enumerate(keyword)],
        facts(a=None, b=None, c=None, d=None, e=None),
    )

    assert len({row.entry_rowid for row in ranked}) == len(ranked)
    assert {row.entry_rowid for row in ranked} == {entry for entry, _ in [*dense, *keyword]}
    for part in (
        ranked[:SCORE_SLOTS_AT_HIGH_OVERLAP],
        ranked[SCORE_SLOTS_AT_HIGH_OVERLAP + SEMANTIC_SLOTS_AT_HIGH_OVERLAP :],
    ):
        assert [row.score for row in part] == sorted((row.score for row in part), reverse=True)
