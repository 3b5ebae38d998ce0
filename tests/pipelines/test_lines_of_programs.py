"""A line that no person types into a prompt as prose, and one that only begins like it."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.routing import Tier, tier_of
from memoryvault.vault.turn import Origin, Role, Turn


def said(text: str) -> list[Candidate]:
    return mine([Turn(Role.USER, Origin.PROMPT, text, "record", "session", cwd="/home/dev/shop", confirmed=True)])


@pytest.mark.parametrize(
    "text",
    [
        "ok always use uv",
        "ok great, thanks. Always use uv.",
        "ok so the build is green again. Going forward, please use uv.",
        "ok now the header\nand from now on use tabs",
        "ok 1 more thing. Never push to main.",
        "ok 2 things: the header is too big. From now on, use tabs.",
    ],
)
def test_who_begins_with_ok_speaks(text: str) -> None:
    assert Tier.HIGH in {tier_of(candidate)[0] for candidate in said(text)}


@pytest.mark.parametrize(
    "line",
    [
        "ok 12 - parses a list",
        "ok 3 parses two lists",
        "not ok 3 - it fails",
        "ok  \texample.com/shop/cart\t0.012s",
        "ok: [web1]",
    ],
)
def test_a_line_of_a_test_run_is_pasted(line: str) -> None:
    assert not any(candidate.from_user for candidate in said(f"{line}\nalways use uv\n{line}"))
