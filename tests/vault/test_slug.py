"""Slugs, and which names are allowed."""

import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.runtime.errors import EntryInvalid
from memoryvault.runtime.slug import (
    NAME_PATTERN,
    free_slug,
    further_slug,
    idea_slug,
    mining_slug,
    slugify,
    source_slug,
    title_slug,
    validate_group,
    validate_name,
    validate_note_name,
)
from memoryvault.vault.project import project_slug


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Always lint before pushing.", "always-lint-before-pushing"),
        ("No, use pnpm instead of npm for the shop.", "use-pnpm-instead-of-npm"),
        ("can you take a look at: The wrapper functions are unused", "take-look-wrapper-functions-unused"),
        ("Always ask me before you add a dependency.", "always-ask-add-dependency"),
        ("Do not use npm", "do-not-use-npm"),
        ("Always use snake_case for python variables.", "always-use-snake-case-for-python"),
        ("No, 🎉", "no"),
        ("", "candidate"),
    ],
)
def test_a_mined_slug_is_six_words_from_the_first_that_says_something(text: str, slug: str) -> None:
    assert mining_slug(text) == slug


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("The first part is not correct, for manual-commits we use git hooks", "first-part-not-correct-manual-commits"),
        ("Can you help me change it so I have an environment variable", "help-change-environment-variable"),
        ("Be brief", "be-brief"),
        ("That was it", "files-pending-changes"),
    ],
)
def test_a_mined_slug_that_would_tell_little_leaves_out_function_words(text: str, slug: str) -> None:
    asked = "“Which files have pending changes?”"
    assert mining_slug(text, asked, "fix-2026-01-08") == slug
    for nothing in ("", "“What's your preference?”"):
        assert mining_slug("That was it", nothing, "fix-2026-01-08") == "fix-2026-01-08"


@pytest.mark.parametrize(
    ("slug", "said", "further"),
    [
        ("mise-run-lint-failed", "`mise run lint` failed; it passed after a change to setup.go", "change-setup"),
        ("always-ship-on-tuesday", "Always ship on Tuesday, and on Thursday.", "thursday"),
        ("be-brief", "Be brief.", ""),
        ("a" * 75, "Always ship on Thursday.", ""),
    ],
)
def test_a_second_note_of_a_name_gets_the_last_words_that_tell_them_apart(slug: str, said: str, further: str) -> None:
    assert further_slug(slug, said) == (f"{slug}-{further}" if further else slug)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Add /memory inspect command", "add-memory-inspect-command"),
        ("let's add a linear issue for that please", "add-a-linear-issue-for-that-please"),
        ("!!!", "untitled-idea"),
        ("A command that shows which rules were broken", "command-that-shows-which-rules"),
    ],
)
def test_an_ideas_slug_has_whole_words_of_what_it_is_about_and_forty_characters(title: str, slug: str) -> None:
    assert idea_slug(title) == slug


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Crème Brûlée", "creme-brulee"),
        ("Straße nach Łódź, smørrebrød", "strasse-nach-lodz-smorrebrod"),
        ("ﬁne ① Ｆｕｌｌ width", "fine-1-full-width"),
    ],
)
def test_letters_with_an_ascii_spelling_are_spelled_out(title: str, slug: str) -> None:
    assert slugify(title) == slug


def test_titles_in_other_scripts_get_distinct_stable_names() -> None:
    russian, japanese = slugify("Всегда запускай тесты"), slugify("必ずテストを実行する")
    assert re.fullmatch(r"note-[0-9a-f]{8}", russian)
    assert re.fullmatch(r"note-[0-9a-f]{8}", japanese)
    assert russian != japanese
    assert slugify("ВСЕГДА запускай тесты") == russian


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Всегда запускай тесты", "всегда-запускай-тесты"),
        ("必ずテストを実行する。常に", "必ずテストを実行する-常に"),
        ("हिन्दी में लिखो", "हिन्दी-में-लिखो"),
        ("測" * 90, "測" * 40),
    ],
)
def test_a_note_that_is_named_once_keeps_the_letters_of_its_script(
    said: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mining_slug(said) == idea_slug(said) == validate_note_name(name) == name
    assert validate_note_name(f"{name}-2")
    for other in (f"{name}/x", f"{name}\u202e", f"{name} x", name.replace("в", "В") + "-"):
        with pytest.raises(EntryInvalid):
            validate_note_name(other)
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "ascii")
    assert mining_slug(said) == slugify(said), "no file could be called so"


@pytest.mark.parametrize(
    ("url", "slug"),
    [
        (
            "https://raw.githubusercontent.com/Shubhamsaboo/awesome-llm-apps/main/README.md",
            "shubhamsaboo-awesome-llm-apps",
        ),
        ("https://github.com/foo/bar.git", "foo-bar"),
        ("https://github.com/foo/bar?tab=readme", "foo-bar"),
    ],
)
def test_a_discovery_source_is_named_after_its_repository(url: str, slug: str) -> None:
    assert source_slug(url) == slug
    assert re.fullmatch(r"url-[0-9a-f]{8}", source_slug("https://example.com/x.md"))


@pytest.mark.parametrize(("slug", "taken", "free"), [("x", [], "x"), ("x", ["x"], "x-2"), ("x", ["x", "x-2"], "x-3")])
def test_a_taken_slug_gets_the_next_free_number(slug: str, taken: list[str], free: str) -> None:
    assert free_slug(slug, taken) == free
    assert free_slug(slug, lambda candidate: candidate in taken) == free


@pytest.mark.parametrize("validate", [partial(validate_name, what) for what in ("kind", "slug", "tag")])
@pytest.mark.parametrize("bad", ["Bad_Slug", "UPPER", "a b", "", "a/b", "..", "ä", "a\n", "x" * 201])
def test_a_bad_name_is_refused_in_one_line(validate: object, bad: str) -> None:
    assert callable(validate)
    with pytest.raises(EntryInvalid) as caught:
        validate(bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", ["a/b/c", "A", "", "a/", "/a", "a//b", "../a", "_inbox"])
def test_a_group_has_one_or_two_names(bad: str) -> None:
    for good in ("personal-private", "personal-projects/foo"):
        assert validate_group(good) == good
    with pytest.raises(EntryInvalid):
        validate_group(bad)


@pytest.mark.parametrize(
    ("title", "limit", "slug"),
    [
        ("Review pull requests with two agents", 20, "review-pull-requests"),
        ("Review pull requests with two agents", 3, "rev"),
        ("!!!", 20, "untitled"),
    ],
)
def test_the_slug_of_a_long_title_ends_with_a_word(title: str, limit: int, slug: str) -> None:
    assert title_slug(title, limit) == slug


@given(st.text(), st.integers(1, 300))
def test_a_title_that_fits_has_the_same_slug_cut_or_not(title: str, limit: int) -> None:
    slug = title_slug(title, limit)
    assert slugify(title, limit).startswith(slug)
    assert slug == slugify(title, limit) or len(slugify(title, 10_000)) > limit


@given(st.text(), st.integers(1, 300))
def test_every_title_gives_a_valid_slug_that_is_its_own_slug(title: str, limit: int) -> None:
    slug = slugify(title, limit)
    assert NAME_PATTERN.fullmatch(slug)
    assert len(slug) <= max(limit, 13)
    assert slugify(slug, max(limit, 13)) == slug
    for made in (mining_slug(title), idea_slug(title)):
        assert validate_note_name(made) == made


@pytest.mark.parametrize("name", ["CON", "aux", "Nul", "com1", "LPT9"])
def test_no_name_is_made_that_windows_reserves(name: str) -> None:
    made = {slugify(name), title_slug(name), mining_slug(name), idea_slug(name), project_slug(name)}
    assert made == {f"{name.lower()}-it"}
    assert slugify(f"{name} 2") == f"{name.lower()}-2"


@pytest.mark.parametrize("validate", [partial(validate_name, "kind"), partial(validate_name, "slug"), validate_group])
def test_a_name_that_windows_reserves_is_refused(validate: Callable[[str], str]) -> None:
    with pytest.raises(EntryInvalid, match="a name that Windows reserves"):
        validate("con")
    assert validate_name("tag", "con") == "con", "a tag is no name of a file"
