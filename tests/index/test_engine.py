"""The recall engine over real files and a real index: scope, filters, checks, fallbacks."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unicodedata import normalize
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryvault.index import file_check
from memoryvault.index.embedder import EncodedTexts
from memoryvault.index.engine import RecallQuery
from memoryvault.index.filters import MOST_CLAUSES, parse_filter
from memoryvault.index.scope import Scope
from memoryvault.index.store import row_of
from memoryvault.tests.index.bed import TODAY, Bed, slugs
from memoryvault.tests.support.fake_embedder import FakeEmbedder
from memoryvault.tests.support.files import put
from memoryvault.tests.support.hurry import patience
from memoryvault.vault.entry import parse_entry


@pytest.fixture
def notes(bed: Bed) -> Bed:
    """The example vault of the first implementation's end-to-end test."""
    for path, body, status, tags in (
        ("_always-load/always-pref", "Already in session context.", "active", "[evolve]"),
        ("preferences/bulleted-status", "Use bulleted lists for status reports per task.", "active", "[dev-flow]"),
        ("workflow/evolve-pattern", "When preferences change, use /memory evolve.", "active", "[memory, audit-trail]"),
        ("workflow/release-pair", "Toolkit and markers ship as coordinated release pairs.", "active", "[coordination]"),
        ("preferences/superseded-pref", "This should never surface.", "superseded", "[]"),
        ("_inbox/inbox-idea", "Inbox candidate.", "active", "[evolve, brainstorm]"),
        ("_archive/archived-entry", "Archived content.", "superseded", "[release]"),
    ):
        bed.write(f"personal-private/{path}.md", body, status=status, tags=tags)
    bed.refresh()
    return bed


@pytest.mark.parametrize("dense", [True, False])
def test_the_example_vault_gives_what_its_users_expect(notes: Bed, dense: bool) -> None:
    def found(text: str, **options: Any) -> list[str]:
        return slugs(notes.recall(text, dense=dense, **options))

    assert "evolve-pattern" in found("evolve")
    assert "bulleted-status" in found("status reports bulleted")
    assert "superseded-pref" not in found("superseded never surface", apply_threshold=False)
    assert "archived-entry" not in found("archived content release", apply_threshold=False)
    assert "inbox-idea" not in found("inbox candidate brainstorm", apply_threshold=False)
    assert "inbox-idea" in found("inbox candidate brainstorm", include=frozenset({"_inbox"}))
    assert found("release pair coordination", k=1) == ["release-pair"]
    assert found("x") == []
    assert found("evolve", k=0) == []
    assert "always-pref" not in found("evolve", exclude_always_load=True)


# Scope


@pytest.fixture
def projects(bed: Bed) -> Bed:
    for project in ("shop", "blog"):
        bed.write(f"personal-projects/{project}/fix/{project}-cache.md", "Clear the cache.", status="active")
    bed.write("personal-private/fix/any-cache.md", "Clear the cache.", status="active")
    bed.refresh()
    return bed


@pytest.mark.parametrize("dense", [True, False])
def test_entries_of_another_project_stay_out(projects: Bed, dense: bool) -> None:
    def found(**options: Any) -> list[str]:
        return slugs(projects.recall("clear the cache", dense=dense, **options))

    assert sorted(found(project="shop")) == ["any-cache", "shop-cache"]
    assert found() == ["any-cache"]
    assert found(project="third") == ["any-cache"]
    assert sorted(found(all_projects=True)) == ["any-cache", "blog-cache", "shop-cache"]
    assert found(project="shop", filter="project=blog") == ["blog-cache"]


@pytest.mark.parametrize(
    ("path", "status", "shown_by_default", "asked"),
    [
        ("a/_dream-staging/x.md", "active", False, {"include": frozenset({"_dream-staging"})}),
        ("a/_archive/x.md", "superseded", False, {"include": frozenset({"_archive"})}),
        ("a/_inbox/x.md", "inbox", False, {"filter": "status=inbox"}),
        ("a/_review/x.md", "pending", False, {"filter": "folder=_review"}),
        ("a/_shelf/x.md", "active", True, {}),
        ("a/reference/inbox-notes.md", "active", True, {}),
        ("_meta/skill-discovery-cache/x.md", "active", False, {"include": frozenset({"_meta"})}),
        ("a/_idea-incubator/x/_index.md", "incubating", False, {"statuses": frozenset({"active", "incubating"})}),
        ("a/_idea-incubator/x/_index.md", "active", True, {}),
        ("a/fix/x.md", "superseded", False, {"filter": "status=superseded"}),
        ("a/_archive/x.md", "superseded", False, {"filter": "NOT status=active"}),
        ("a/_review/x.md", "pending", False, {"filter": "status!=active AND NOT kind=fix"}),
        ("a/fix/x.md", "Draft", True, {"filter": "NOT status=active"}),
        ("a/fix/x.md", "Draft", True, {"filter": "status=draft"}),  # Only our own words take a note out of use.
    ],
)
def test_what_is_hidden_appears_only_when_it_is_named(
    bed: Bed, path: str, status: str, shown_by_default: bool, asked: dict[str, Any]
) -> None:
    bed.write(path, "The quokka migration.", status=status)
    bed.refresh()
    assert bool(bed.recall("quokka migration").hits) is shown_by_default
    assert bool(bed.recall("quokka migration", dense=False).hits) is shown_by_default
    put(bed.vault / "a/plain.md", "The quokka migration, in a note without a header.")
    bed.refresh()
    found = [hit.path for hit in bed.recall("quokka migration", **asked).hits]
    assert found.count(path) == 1
    assert ("a/plain.md" in found) == ("filter" not in asked)


def test_a_statement_without_a_confidence_counts_as_said_plainly(bed: Bed) -> None:
    """`memory save` writes none."""
    odds: list[float] = []
    for confidence in ({}, {"confidence": "HIGH"}, {"confidence": "LOW"}):
        fields = {"status": "active", "kind": "preferences", **confidence}
        path = bed.write("a/preferences/x.md", "The quokka migration.", **fields)
        bed.refresh()
        (hit,) = bed.recall("quokka migration", is_prompt=True, apply_threshold=False).hits
        assert hit.answers is not None
        odds.append(hit.answers)
        path.unlink()
        bed.index()
    assert odds[0] == odds[1]
    assert odds[0] > odds[2]


@pytest.mark.parametrize("dense", [True, False])
def test_no_prompt_is_answered_from_a_special_folder_of_the_users_own(bed: Bed, dense: bool) -> None:
    """Who asks finds what lies there; the cold hook, lists and figures leave it out as well."""
    said = {"_drafts": "needs a ship", "_idea-incubator/x": "could fly", "_always-load": "rests", "fix": "is on"}
    for folder, text in said.items():
        bed.write(f"personal-private/{folder}/of-{folder[:4]}.md", f"The quokka migration {text}.", status="active")
    bed.refresh()
    asked = {"is_prompt": True, "dense": dense, "apply_threshold": False}
    assert sorted(slugs(bed.recall("quokka migration plan", **asked))) == ["of-_alw", "of-fix"]
    assert len(bed.recall("quokka migration plan", dense=dense, apply_threshold=False).hits) == 4
    assert "of-_dra" in slugs(bed.recall("quokka migration plan", include=frozenset({"_drafts"}), **asked))


def test_paths_and_groups_can_be_asked_for(projects: Bed) -> None:
    projects.write("personal-private/fix/grouped.md", "Clear the cache.", group="personal/reference", status="active")
    projects.index()
    assert slugs(projects.recall("cache", dense=False, group="personal")) == ["grouped"]
    excluded = frozenset({"personal-private/fix/grouped.md"})
    assert slugs(projects.recall("cache", dense=False, exclude_paths=excluded)) == ["any-cache"]


# Filters


@pytest.mark.parametrize("clause", ["tag=security", "group=personal-private", "(kind=fix AND tag=security)"])
def test_the_longest_filter_is_still_one_the_index_can_answer(notes: Bed, clause: str) -> None:
    """SQLite refuses a longer one, which would pass for damage to the index."""
    clauses = MOST_CLAUSES // (1 + clause.count("AND"))
    result = notes.recall("release pair", filter=" OR ".join([clause] * clauses))
    assert result.degraded == ()


def test_when_no_word_matches_the_filter_alone_still_answers(bed: Bed) -> None:
    bed.write("new.md", "Completely unrelated filler text.", kind="convention", updated="2026-03-01")
    bed.write("old.md", "More of that.", kind="convention", updated="2025-03-01")
    bed.write("other.md", "More of that.", kind="fix")
    bed.refresh()
    result = bed.recall("zzzznomatchzzzz", filter="kind=convention")
    assert slugs(result) == ["new", "old"]
    assert all(hit.score == 0 for hit in result.hits)


WORDS = ("cache", "deploy", "token", "branch", "server", "quokka", "migration")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Any:
    bed = Bed(tmp_path_factory.mktemp("many"))
    for number in range(240):
        words = " ".join(WORDS[(number * factor) % 7] for factor in (1, 3, 5)) + f" item{number}"
        kind = ("fix", "workflow", "idea")[number % 3]
        fields = {"tags": f"[t{number % 5}, u{number % 11}]", "updated": f"2026-0{1 + number % 6}-10"}
        bed.write(f"notes/n{number:03}.md", words, kind=kind, status="active", **fields)
    bed.refresh()
    yield bed
    bed.close()


clauses = st.sampled_from(
    ["kind=fix", "tag=t1", "tag=u7", "NOT kind=idea", "updated>2026-03", "updated since 30d", "(tag=t2 OR tag=u3)"]
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(clauses, min_size=1, max_size=3), st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.booleans()
)
def test_the_filtered_answer_is_the_unfiltered_one_over_the_filtered_subset(
    many: Bed, parts: list[str], words: list[str], dense: bool
) -> None:
    """240 notes, more than either arm's limit: a filter applied after the search would lose some."""
    expression, text = " AND ".join(parts), " ".join(words)
    tree = parse_filter(expression, TODAY)
    rows = {path: row_of(parse_entry(path, (many.vault / path).read_bytes())) for path in many.walk()}
    admitted = [path for path, row in rows.items() if Scope(filter=tree).admits(row)]
    others = frozenset(set(many.walk()) - set(admitted))
    filtered = many.recall(text, dense=dense, filter=expression, k=20, apply_threshold=False)
    # The subset, asked without a filter: everything else is excluded by its path.
    subset = many.recall(text, dense=dense, exclude_paths=others, k=20, apply_threshold=False)
    if admitted and subset.hits:
        assert [(hit.path, hit.score) for hit in filtered.hits] == [(hit.path, hit.score) for hit in subset.hits]
    assert {hit.path for hit in filtered.hits} <= set(admitted)
    assert len(filtered.hits) >= min(len(subset.hits), 20)
    if dense:
        # Meaning ranks everything: asked of the nearest 60 of all, the scope would leave too few.
        assert len(filtered.hits) == min(len(admitted), 20)


# Order


def test_ties_are_broken_by_path(bed: Bed) -> None:
    for name in ("charlie", "alpha", "bravo"):
        bed.write(f"{name}.md", "# Same\n\nshared identical content for the tie-break test", status="active")
    bed.refresh()
    assert slugs(bed.recall("shared identical content")) == ["alpha", "bravo", "charlie"]
    assert slugs(bed.recall("shared identical content", is_prompt=True)) == ["alpha"]


def test_as_many_notes_as_were_asked_for_are_found_by_words(bed: Bed) -> None:
    for number in range(60):
        bed.write(f"note-{number}.md", f"# Note {number}\n\nThe quokka has keeper number {number}.", status="active")
    bed.refresh()
    assert len(bed.recall("quokka keeper", dense=False, k=100, apply_threshold=False).hits) == 60


def test_a_note_of_today_about_what_was_said_long_ago_is_not_fresh_until_it_is_touched(bed: Bed) -> None:
    """Mined from old sessions, all notes are of one day."""
    day = {"created": "2026-01-01", "updated": "2026-01-01"}
    bed.write("a-said-long-ago.md", "# Same\n\nidentical insight", surfaced_at="2020-03-01T10:00:00Z", **day)
    bed.write("b-said-that-day.md", "# Same\n\nidentical insight", surfaced_at="2026-01-01T10:00:00Z", **day)
    bed.refresh()
    assert slugs(bed.recall("identical insight")) == ["b-said-that-day", "a-said-long-ago"]
    touched = {**day, "updated": "2026-01-02"}
    bed.write("a-said-long-ago.md", "# Same\n\nidentical insight", surfaced_at="2020-03-01T10:00:00Z", **touched)
    bed.index()
    assert slugs(bed.recall("identical insight")) == ["a-said-long-ago", "b-said-that-day"]


def test_a_rare_word_outranks_a_common_one_and_a_deep_passage_is_found(bed: Bed) -> None:
    bed.write("common.md", "# Same\n\nwidget widget widget")
    bed.write("rare.md", "# Same\n\nwidget quokka")
    bed.write("other.md", "# Same\n\nwidget nothing")
    filler = "\n\n".join("Filler text about nothing in particular. " * 15 for _ in range(3))
    bed.write("long.md", f"{filler}\n\nquokka migration patterns discussed here in depth.\n\n{filler}")
    bed.refresh()
    found = slugs(bed.recall("widget quokka", apply_threshold=False))
    assert found.index("rare") < found.index("common")
    (deep,) = bed.recall("quokka migration patterns", k=1).hits
    assert deep.slug == "long"
    assert "discussed here in depth" in deep.excerpt
    assert deep.ordinal > 0


def test_one_word_is_a_question_to_who_asks_and_in_a_prompt_where_one_note_has_it(bed: Bed) -> None:
    texts = ("Deploy on Tuesdays only.", "Apply tags in order.", "Apply the patch.", "部署只在星期二")
    for number, text in enumerate(texts):
        bed.write(f"{number}.md", text, status="active")
    bed.index()
    assert slugs(bed.recall("tuesdays", is_prompt=True)) == ["0"]
    assert slugs(bed.recall("部署", is_prompt=True)) == ["3"]
    assert slugs(bed.recall("apply", is_prompt=True)) == [], "an answer to the agent"
    assert sorted(slugs(bed.recall("apply"))) == ["1", "2"]
    assert slugs(bed.recall("zebra")) == []


# Files


def test_when_the_file_of_the_best_hit_is_gone_nothing_else_is_shown_for_its_sake(bed: Bed) -> None:
    answer = bed.write("answer.md", "The release pair coordinates on the calendar.", status="active")
    bed.write("beside.md", "A pair of shoes stands in the hall.", status="active")
    for number in range(30):
        bed.write(f"tides/{number}.md", f"Tides of harbour{number} are in local time.", status="active")
    bed.index()
    assert slugs(bed.recall("release pair calendar", dense=False, is_prompt=True)) == ["answer"]
    answer.unlink()
    assert slugs(bed.recall("release pair calendar", dense=False, is_prompt=True)) == []


def test_where_a_note_has_no_created_its_date_counts(bed: Bed) -> None:
    bed.write("note.md", "The quokka migration needs a ship.", date="2024-03-01")
    bed.index()
    (hit,) = bed.recall("quokka migration ship", dense=False).hits
    assert hit.created == "2024-03-01"


def test_a_hit_whose_file_changed_is_read_again_and_not_shown_if_it_was_superseded(notes: Bed) -> None:
    notes.write("personal-private/workflow/release-pair.md", "Release coordination: three pairs now.", status="active")
    (hit,) = notes.recall("release pair coordination", k=1).hits
    assert hit.excerpt == "Release coordination: three pairs now."
    notes.write("personal-private/workflow/release-pair.md", "Release coordination.", status="superseded")
    assert "release-pair" not in slugs(notes.recall("release pair coordination"))


# Fallbacks


def test_without_an_index_the_files_are_scanned(notes: Bed) -> None:
    notes.close_store()
    for file in Path(notes.state.root).glob("index.db*"):
        file.unlink()
    result = notes.recall("release pair coordination", k=1)
    assert slugs(result) == ["release-pair"]
    assert result.degraded == ("no-index",)
    assert slugs(notes.recall("archived content release")) == ["release-pair"]
    assert slugs(notes.recall("release", filter="slug=other")) == []
    assert slugs(notes.recall("coordinating", filter="slug=release-pair")) == ["release-pair"]


def test_of_another_project_the_files_say_nothing_unless_all_are_asked(bed: Bed) -> None:
    bed.write("personal-projects/shop/fix/a.md", "The quokka of the shop.")
    assert slugs(bed.recall("quokka")) == []
    assert slugs(bed.recall("quokka", project="shop")) == ["a"]
    assert slugs(bed.recall("quokka", all_projects=True)) == ["a"]
    assert slugs(bed.recall("quokka", filter="project=shop")) == ["a"]


def test_a_scan_of_the_files_looks_at_notes_alone(bed: Bed) -> None:
    """What is never indexed is not found where there is no index either; and a pipe hangs nobody."""
    outside = bed.root / "outside.md"
    outside.write_text("The quokka of another folder.")
    bed.write("a/real.md", "The quokka of a note.")
    bed.write("a/real (conflicted copy 2026-01-01).md", "The quokka of a copy.")
    bed.write("a/real.sync-conflict-20260101-101010-ABCDEFG.md", "The quokka of a copy.")
    (bed.vault / "a/link.md").symlink_to(outside)
    os.mkfifo(bed.vault / "a/pipe.md")
    begun = time.monotonic()
    assert slugs(bed.recall("quokka")) == ["real"]
    assert time.monotonic() - begun < 5


def test_a_note_that_became_a_link_out_of_the_vault_or_a_pipe_is_not_shown(
    notes: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two walks the index still knows it, and a hit whose file has changed is read again."""
    with monkeypatch.context() as patch:
        assert "release-pair" in slugs(notes.engine().recall(RecallQuery("release pair coordination")))
        patch.setattr(file_check, "open", Mock(side_effect=PermissionError), raising=False)  # Root may read all.
        assert slugs(notes.engine().recall(RecallQuery("release pair coordination"))) == []
    outside = notes.root / "outside.md"
    outside.write_text("The release pair of another folder: hunter22.")
    note = notes.vault / "personal-private/workflow/release-pair.md"
    note.unlink()
    note.symlink_to(outside)
    engine = notes.engine()
    assert not any("hunter22" in hit.excerpt for hit in engine.recall(RecallQuery("release pair coordination")).hits)
    assert "release-pair" not in slugs(engine.recall(RecallQuery("release pair coordination")))
    folder = notes.vault / "personal-private/workflow"
    note.unlink()
    folder.rename(notes.root / "moved")
    (notes.root / "moved/release-pair.md").write_text("The release pair of another folder: hunter22.")
    folder.symlink_to(notes.root / "moved")
    assert "release-pair" not in slugs(engine.recall(RecallQuery("release pair coordination")))
    folder.unlink()
    folder.mkdir()
    os.mkfifo(note)
    begun = time.monotonic()
    assert "release-pair" not in slugs(engine.recall(RecallQuery("release pair coordination")))
    assert time.monotonic() - begun < 5


@pytest.mark.hurried
def test_a_scan_keeps_its_budget(bed: Bed) -> None:
    for number in range(400):
        bed.write(f"n{number}.md", f"Note {number} about the quokka.")
    start = time.monotonic()
    result = bed.engine().recall(RecallQuery("quokka"), budget_ms=60)
    assert time.monotonic() - start < 0.5 * patience()
    assert result.degraded == ("no-index",)


def test_a_question_in_letters_that_the_model_lacks_is_answered_by_keywords(bed: Bed) -> None:
    """Of Chinese an English model knows a third: what it makes of the rest is the same for any text."""

    class English(FakeEmbedder):
        def encode(self, texts: Any, *, query: bool = False) -> EncodedTexts:
            encoded = super().encode(texts, query=query)
            return replace(encoded, unknown=tuple(0.0 if text.isascii() else 0.7 for text in texts))

    bed.embedder = English()
    bed.write("passwords.md", "数据库密码保存在公司的密码管理器里，不要写进配置文件。")
    bed.write("images.md", "图片上传之前要先压缩到一兆以内。")
    bed.refresh()
    result = bed.recall("数据库密码放在哪里？")
    assert (slugs(result), result.degraded) == (["passwords"], ("model-unread",))
    assert bed.recall("passwords").degraded == ()


def test_a_question_is_embedded_once(notes: Bed) -> None:
    engine = notes.engine()
    notes.embedder.calls.clear()
    for _ in range(3):
        engine.recall(RecallQuery("release pair"))
    assert len(notes.embedder.calls) == 1


@pytest.mark.parametrize(
    "text", ["", "   ", "\0", '"', "AND OR NOT", "NEAR(a b)", "a* ^b -c {d}:e", "😀", "x" * 100_000]
)
def test_no_text_breaks_it(notes: Bed, text: str) -> None:
    notes.recall(text)


@pytest.mark.parametrize("dense", [True, False])
def test_the_index_is_only_read(notes: Bed, dense: bool) -> None:
    notes.close_store()
    before = notes.index_db.read_bytes()
    notes.recall("release pair coordination", dense=dense)
    assert notes.index_db.read_bytes() == before


# A note and a question meet in whatever Unicode form each was written: half-width, full-width, decomposed


FORMS = {
    "guard": ("認証ガードはｶﾞｰﾄﾞﾚｰﾙより先に登録する。", "ガードレール登録"),
    "gateway": ("ＡＰＩ ｇａｔｅｗａｙ の証明書は毎月更新する。", "api gateway certificate"),
    "resume": (normalize("NFD", "The résumé parser falls back to Tesseract."), "résumé parser"),
    "rollout": ("배포는 항상 화요일에 한다.", normalize("NFD", "배포 화요일")),
    "traffic": ("Der Verkehr läuft über den Spiegel in Zürich.", normalize("NFD", "Verkehr Zürich Spiegel")),
    "invoice": ("The oﬃce ﬁle of invoices is kept in Basel.", "office file invoices"),
}


@pytest.fixture
def written(bed: Bed) -> Bed:
    for slug, (body, _) in FORMS.items():
        bed.write(f"personal-private/convention/{slug}.md", body, kind="convention", status="active")
    return bed


@pytest.mark.parametrize("slug", FORMS)
@pytest.mark.parametrize("place", ["index", "files"])
def test_words_alone_find_the_note(written: Bed, slug: str, place: str) -> None:
    if place == "index":
        written.index()
    assert slugs(written.recall(FORMS[slug][1], dense=False))[:1] == [slug]


def test_the_words_that_are_embedded_are_those_of_the_question(written: Bed) -> None:
    written.refresh()
    assert slugs(written.recall("ガードレール"))[:1] == ["guard"]
    assert slugs(written.recall("ＴＥＳＳＥＲＡＣＴ ｐａｒｓｅｒ"))[:1] == ["resume"]


def test_what_is_shown_is_as_the_user_wrote_it(written: Bed) -> None:
    before = (written.vault / "personal-private/convention/guard.md").read_bytes()
    written.index()
    (hit, *_) = written.recall("ガードレール登録", dense=False).hits
    assert "ｶﾞｰﾄﾞﾚｰﾙ" in hit.excerpt
    assert (written.vault / "personal-private/convention/guard.md").read_bytes() == before
    assert "ｶﾞｰﾄﾞﾚｰﾙ" in parse_entry("a.md", before).body
