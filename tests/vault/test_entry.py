"""Entries as they are read from files, ours and other people's."""

import hashlib
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.hooks.entryfile import EntryFile, read_entry_file
from memoryvault.vault.entry import Source, fingerprint, first_heading, parse_entry, parse_text
from memoryvault.vault.note_text import encode_note


def entry_of(header: str, body: str = "Body.", path: str = "personal-private/preferences/my-note.md") -> Any:
    return parse_entry(path, f"---\n{header}\n---\n\n{body}\n".encode())


def test_all_fields_of_the_design_are_read() -> None:
    entry = entry_of(
        "kind: preferences\nstatus: active\ncreated: 2026-07-01\nupdated: 2026-07-02\ntags: [a, b]\n"
        "group: personal-private\nslug: other\nalways_load: true\nproject: app\nfingerprint: abc123\n"
        "confidence: high\noccurrences: 3\nsource:\n  - host: claude-code\n    session: s1\n"
        "    records: [u1, u2]\n  - agent\nsurfaced_in_session: s9\nsurfaced_at: 2026-07-01T10:00:00Z\n"
        "supersedes: a/b.md\nsuperseded_by: c/d.md\nsuperseded_at: 2026-07-03T00:00:00Z\n"
        "superseded_reason: changed\npriority: high\naliases: [x]\nmood: good",
        "# The title\n\nText.",
    )
    assert (entry.kind, entry.status) == ("preferences", "active")
    assert (entry.created, entry.updated) == ("2026-07-01", "2026-07-02")
    assert (entry.tags, entry.group, entry.slug, entry.always_load) == (("a", "b"), "personal-private", "other", True)
    assert (entry.project, entry.fingerprint, entry.confidence, entry.occurrences) == ("app", "abc123", "high", 3)
    assert entry.sources == (Source("claude-code", "s1", ("u1", "u2")), Source("agent"))
    assert entry.written_by_agent
    assert (entry.surfaced_in_session, entry.surfaced_at) == ("s9", "2026-07-01T10:00:00Z")
    assert (entry.supersedes, entry.superseded_by, entry.superseded_reason) == ("a/b.md", "c/d.md", "changed")
    assert entry.superseded_at == "2026-07-03T00:00:00Z"
    assert (entry.priority, entry.aliases, dict(entry.extra)) == ("high", ("x",), {"mood": "good"})
    assert (entry.title, entry.body) == ("The title", "# The title\n\nText.")
    with pytest.raises(FrozenInstanceError):
        entry.kind = "x"


@pytest.mark.parametrize(
    ("path", "header", "project"),
    [
        ("a.md", "group: projects/agentm/decisions", "agentm"),
        ("a.md", "group: personal-projects/foo", "foo"),
        ("a.md", "group: personal/reference", None),
        ("a.md", "group: projects/", None),
        ("personal-projects/bar/memory/MEMORY.md", "x: 1", "bar"),
        ("personal-projects/bar/memory/MEMORY.md", "project: baz", "baz"),
        ("personal-projects/_archive/x/y.md", "x: 1", None),
        ("personal-projects/b/fix/x.md", "group: personal-projects/a", "b"),
        ("personal-projects/My Shop/fix/x.md", "kind: fix", "my-shop"),
        ("personal-private/preferences/x.md", "group: personal-projects/shop", None),
        ("personal-private/_review/x.md", "group: personal-projects/shop", "shop"),
        ("personal-private/preferences/x.md", "group: projects/agentm", "agentm"),
    ],
)
def test_the_project_is_derived_where_it_is_not_given(path: str, header: str, project: str | None) -> None:
    """By the index and by hooks alike."""
    assert entry_of(header, path=path).project == project
    assert EntryFile(path, f"---\n{header}\n---\n\nBody.\n").project == (project or "")


@pytest.mark.parametrize(
    ("header", "status", "project"),
    [
        ("status:\n  - dismissed", "dismissed", None),
        ("status:\n- dismissed", "dismissed", None),
        ('status: ["dismissed"] # for now', "dismissed", None),
        ("status:\n  - active\n  - Dismissed", "dismissed", None),
        ("status: [active, active]", "active", None),
        ("status: []", "active", None),
        ("status: Active\nkind: fix", "active", None),
        ('project: "[[Shop]]"', "active", "shop"),
        ("project: [[Shop]]", "active", "shop"),
        ('project:\n  - "[[work/My Shop|the shop]]"\nkind: fix', "active", "my-shop"),
        ("project: My shop # ours", "active", "my-shop"),
        ("project: [a, b]", "active", None),
        ("project: null", "active", None),
        ("project: ~ # none\nstatus: ~", "active", None),
        ('project: "null"', "active", "null"),
        ('"project": bank', "active", "bank"),
        ("'status': dismissed", "dismissed", None),
        ("source:\n  - host: x\n    records: [project]\nproject:\n", "active", None),
        ("source:\n  records:\n    - status\nstatus:\n  # comment\n\n  - resolved", "resolved", None),
    ],
)
def test_status_and_project_are_read_as_obsidian_writes_them(header: str, status: str, project: str | None) -> None:
    """By the index and by hooks, which have no time for YAML, alike."""
    entry = entry_of(header)
    assert (entry.effective_status, entry.project) == (status, project)
    shown = EntryFile("personal-private/preferences/my-note.md", f"---\n{header}\n---\n\nBody.\n")
    assert (shown.status, shown.project or None) == (status, project)


@pytest.mark.parametrize(
    "header",
    [
        "status:\n  superseded", "status: >-\n  superseded", "status: !!str superseded", "status: &a superseded",
        "status: [superseded,\n archived]", "project: |\n  bank", "project:\n  bank",
    ],
)  # fmt: skip
def test_what_a_hook_cannot_read_of_status_and_project_is_not_shown_by_it(header: str) -> None:
    entry = entry_of(header)
    assert (entry.effective_status, entry.project) != ("active", None), "YAML says something"
    shown = EntryFile("personal-private/preferences/my-note.md", f"---\n{header}\nkind: fix\n---\n\nBody.\n")
    assert shown.status == "unreadable"


FLAGS = {
    True: ["true", "True", "yes", "on", "[true]", "'true'"],
    False: ["false", "no", "off", "~", "", "[]", "perhaps"],
}


@pytest.mark.parametrize(("flag", "value"), [(flag, value) for flag, values in FLAGS.items() for value in values])
def test_the_flag_of_always_load_is_read_alike(flag: bool, value: str) -> None:
    """By the index and by hooks."""
    assert entry_of(f"always_load: {value}").always_load is flag
    assert EntryFile("a.md", f"---\nalways_load: {value}\n---\n\nBody.\n").always_load is flag
    assert entry_of(f"always_load: {value}", path="personal-private/_always-load/x.md").always_load


def test_a_file_whose_header_goes_on_beyond_what_is_read_is_not_shown(tmp_path: Path) -> None:
    long = f"---\nstatus: superseded\nproject: other\nx: {'y' * 300_000}\n---\n\nThe kettle is upstairs.\n"
    (tmp_path / "a.md").write_text(long)
    assert read_entry_file(str(tmp_path), "a.md") is None


def test_a_list_that_holds_itself_is_no_value() -> None:
    assert entry_of("status: &a [*a]\nslug: s").effective_status == "active"


@pytest.mark.parametrize(
    "data", [b"", b"just text", b"---\nno end", b"\xff\xfe\x80\x01", b"---\n- a\n- b\n---\nx", b"---\n---\n"]
)
def test_without_usable_frontmatter_all_is_null_and_nothing_raises(data: bytes) -> None:
    entry = parse_entry("x/fallback-name.md", data)
    assert entry.slug == "fallback-name"
    assert entry.name == "fallback name"
    assert (entry.kind, entry.status, entry.created, entry.group, entry.project) == (None,) * 5
    assert (entry.tags, entry.fingerprint, entry.occurrences, entry.sources) == ((), None, 1, ())
    assert entry.effective_status == "active"
    assert entry.content_hash == hashlib.sha256(data).hexdigest()


def test_one_mistyped_line_does_not_hide_the_others() -> None:
    entry = entry_of('status: rejected\nkind: "unclosed\ntags: [a, b]\ncreated: 2026-13-45\nslug: s')
    assert (entry.status, entry.slug, entry.tags) == ("rejected", "s", ("a", "b"))
    assert (entry.kind, entry.created) == (None, None)


def test_tags_in_the_ways_obsidian_knows_are_read() -> None:
    assert entry_of("tags: a, b").tags == ("a", "b")
    assert entry_of("tags:\n- '#a'\n- b/c\n- 2026\n- a").tags == ("a", "b/c", "2026")
    assert entry_of("tags: solo").tags == ("solo",)
    assert entry_of("tags:").tags == ()


@pytest.mark.parametrize("bad", ["0", "-3", "many", "1.5", "9999999999999999999999", "true", "[1]", ""])
def test_odd_occurrences_count_as_one(bad: str) -> None:
    assert entry_of(f"occurrences: {bad}").occurrences == 1


@pytest.mark.parametrize(
    "giant", ["0x" + "f" * 4_000, "0b" + "1" * 20_000, "1" + ":59" * 3_000, "9" * 400, "-1_" + "0" * 5_000]
)
@pytest.mark.parametrize("field", ["kind: {}", "tags: [{}]", "? {}\n: x", "guard: {}", "probability: {}", "name: {}"])
def test_a_whole_number_of_too_many_digits_is_left_out(field: str, giant: str) -> None:
    """Python refuses to print such a number."""
    entry = entry_of(f"slug: y\n{field.format(giant)}")
    assert (entry.kind, entry.tags, entry.guard, entry.probability, dict(entry.extra)) == (None, (), "", 0.0, {})


def test_yaml_that_unfolds_to_a_giant_is_dropped_not_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    entry = entry_of("\n".join(lines) + "\nkind: y")
    assert entry.kind == "y"
    assert len(str(dict(entry.extra))) < 1_000_000


def test_python_objects_in_yaml_are_never_built() -> None:
    entry = entry_of("kind: x\nevil: !!python/object/apply:os.system ['false']")
    assert entry.kind == "x"
    assert "evil" not in entry.extra


@pytest.mark.parametrize(
    ("body", "heading"),
    [
        ("# One\n\n# Two", "One"),
        ("intro\n\n#  Spaced  #", "Spaced"),
        ("#nospace", None),
        ("```\n# code\n```\n# Real", "Real"),
        ("~~~~ md\n# code\n~~~\n# still code\n~~~~\n# Real", "Real"),
        ("# C# and F#", "C# and F#"),
        ("# Carriage\r\ntext", "Carriage"),
        ("", None),
    ],
)
def test_the_title_is_the_first_level_one_heading_outside_code(body: str, heading: str | None) -> None:
    assert first_heading(body) == heading


def test_case_and_white_space_do_not_change_a_fingerprint_nor_does_a_version_and_words_do() -> None:
    assert fingerprint("body") == "230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5"
    assert fingerprint("The  Quick   Brown Fox\n\n  jumps\t lazy  \n") == fingerprint("the quick brown fox\njumps lazy")
    assert fingerprint("line one\r\nline two\r\n") == fingerprint("line one\nline two\n")
    assert fingerprint("we should use sqlite") != fingerprint("we should not use sqlite")
    assert fingerprint("see [[note-a]]") != fingerprint("see [[note-b]]")


@given(
    st.text(st.sampled_from("ab:-#?&*!|>'\"[]{},%@` \t\n\r01.~<=\u2028\x85é"), max_size=120).map(str.encode)
    | st.binary(max_size=400)
)
def test_no_header_can_make_reading_raise(header: bytes) -> None:
    parse_entry("a.md", header)
    entry = parse_entry("a.md", b"---\n" + header + b"\n---\n\nbody\n")
    assert isinstance(entry.tags, tuple)


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("# Tabs\n\nUse tabs.", "Tabs"),
        ("Use tabs. They are what the others use.", "Use tabs"),
        ("- [ ] Which version, e.g. 3.11?\n- No.", "Which version, e.g. 3.11?"),
        ("word " * 40, " ".join(["word"] * 16) + " …"),
        ("## Why\n\nSo.", "Why"),
        ("```\nmake\n```", "al"),
        ("", "al"),
        ("Where x > 4, step 1) comes first.", "Where x > 4, step 1) comes first"),
    ],
)
def test_a_note_without_a_heading_is_listed_by_its_first_sentence(body: str, title: str) -> None:
    entry = parse_entry("personal-private/_always-load/al.md", f"---\nkind: preferences\n---\n\n{body}\n".encode())
    assert entry.title == title
    assert entry.name == ("Tabs" if title == "Tabs" else "al"), "its index is not made anew, nor does it rank anew"


def test_windows_line_ends_and_a_byte_order_mark_are_read_and_every_byte_is_kept() -> None:
    data = b"\xef\xbb\xbf---\r\nkind: x\r\ntags:\r\n  - a\r\n---\r\n\r\n# T\r\nbody \xff\xe9\r\n"
    entry = parse_entry("a.md", data)
    assert (entry.kind, entry.tags, entry.title) == ("x", ("a",), "T")
    assert encode_note(entry.text) == data
    assert parse_text("a.md", entry.text) == entry
