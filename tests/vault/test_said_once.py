"""A note as its reader sees it: each thing once."""

from __future__ import annotations

import pytest

from memoryvault.vault.note_text import is_title_cut, said_once

EVIDENCE = "## Evidence\n\nProposed because: it was said twice.\n\n"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("# Use pnpm\n\nUse pnpm.\n\n" + EVIDENCE + "> use pnpm\n\nSession a", EVIDENCE + "Session a"),
        ("Use pnpm.\n\n" + EVIDENCE + "> No, use pnpm", EVIDENCE + "> No, use pnpm"),
        (
            "# Use pnpm\n\nUse pnpm instead of npm.\n\n> Use pnpm instead\n> of npm.",
            "Use pnpm instead of npm.",
        ),
        ("# Another heading\n\nUse it.", "# Another heading\n\nUse it."),
        ("# Use pnpm", ""),
        ("", ""),
    ],
)
def test_what_only_repeats_the_title_or_the_statement_is_left_out(body: str, left: str) -> None:
    assert said_once(body, "Use pnpm") == left


def test_a_title_that_is_the_statement_cut_off_is_known() -> None:
    title = "If the disk is full, stop …"
    body = f"# {title}\n\nif the disk is full, stop and\ntell me.\n\n## Evidence\n\nSession a"
    assert is_title_cut(body, title)
    assert not is_title_cut("# Use pnpm …\n\nUse npm.", "Use pnpm …")
    assert not is_title_cut("# Use pnpm\n\nUse pnpm instead.", "Use pnpm")


def test_words_of_the_user_below_are_kept_whatever_they_repeat() -> None:
    body = "Use pnpm.\n\nMy remark.\n\nUse pnpm."
    assert said_once(body, "Tools") == body
