"""What leaves a machine: scrubbed words and nothing else, and back again whole."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryvault.pipelines.scrub import findings, scrub
from memoryvault.services.mining import MiningRequest, mine_transcript
from memoryvault.sources.transcripts.words import pasted_ranges
from memoryvault.tasks.sharing import packing
from memoryvault.tasks.sharing.judging import judge
from memoryvault.tasks.sharing.packing import (
    ContentInvalid,
    Packed,
    PackingRequest,
    TooLarge,
    bundle,
    is_word,
    key_of,
    pack,
    pack_transcript,
    unbundle,
    unpack,
)
from memoryvault.tests.sources.records import assistant, call, human, result, text_block, write
from memoryvault.vault.turn import USER_WORDS, Origin, Role, ToolEvent, Turn

SECRET = "ghp_" + "vR9sKq2LzXw7TnBf4HcYp8Jd3MgEa6Uo1SiW"
PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
FRAGMENTS = st.sampled_from(
    [
        SECRET,
        f"token = {SECRET}",
        "password: 'hunter2-hunter2'",
        "/Users/rosalind/shop/main.py",
        "rosalind@franklin-lab.org",
        "<private>nobody</private>",
        "From now on always run the linter.",
        "```\nerror: no such file\n```",
        "> quoted by somebody",
        "\n\n",
        "No, use pnpm instead of npm.",
    ]
)
TEXTS = st.lists(st.one_of(FRAGMENTS, PLAIN), max_size=6).map(" ".join)


@st.composite
def turns(draw: st.DrawFn) -> list[Turn]:
    """A session whose texts hold anything."""
    found: list[Turn] = []
    offset = 0
    for _ in range(draw(st.integers(0, 8))):
        offset += draw(st.integers(0, 500))
        origin = draw(st.sampled_from(list(Origin)))
        text = draw(TEXTS)
        role = Role.USER if origin in USER_WORDS or origin is Origin.BASH else Role.TOOL
        role = Role.ASSISTANT if origin is Origin.ASSISTANT else role
        tool = ToolEvent("Bash", "t1", draw(TEXTS), "/Users/rosalind/x.py") if role is Role.TOOL else None
        pasted = pasted_ranges(text) if role is Role.USER else ()
        found.append(
            Turn(
                role, origin, text, f"record-{offset}", "session-name", "2026-11-22T08:05:00Z", "/Users/rosalind/shop",
                tool, offset, "claude", pasted, draw(TEXTS),
            )
        )  # fmt: skip
    return found


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(turns(), st.integers(0, 2000))
def test_each_message_comes_out_as_it_went_in_or_is_kept_back(session: list[Turn], start: int) -> None:
    packed = pack(session, start=start)
    asked = [turn for turn in session if is_word(turn) and turn.offset >= start]
    leaving = [turn for turn in asked if not findings(turn.text)]
    seen = [(turn.role, turn.origin, turn.text, turn.pasted, turn.offset) for turn in unpack(packed.data)]
    assert seen == [(turn.role, turn.origin, turn.text, turn.pasted, turn.offset) for turn in leaving]
    assert packed.words == len(leaving)
    assert set(packed.kept_back) == {turn.offset for turn in asked if findings(turn.text)}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(turns())
def test_nothing_leaves_that_the_scrubber_would_change(session: list[Turn]) -> None:
    data = zlib.decompress(pack(session).data).decode()
    for line in data.splitlines():
        _, _, text, _ = json.loads(line)
        assert scrub(text) == text
    for hidden in (SECRET, "hunter2", "rosalind", "nobody", "session-name", "record-", "2026-11-22", "shop/main.py"):
        assert hidden not in data


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(turns())
def test_packing_again_makes_the_same_bytes_of_the_same_key(session: list[Turn]) -> None:
    first, again = bundle([pack(session)]), bundle([pack(session)])
    assert first == again
    assert key_of(first, "one") == key_of(again, "one") != key_of(first, "two")


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(turns(), max_size=5))
def test_a_content_holds_its_readings_in_order(sessions: list[list[Turn]]) -> None:
    readings = [pack(session) for session in sessions]
    assert unbundle(bundle(readings)) == [reading.data for reading in readings]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_bytes_of_anybody_are_read_as_a_content_or_refused(data: bytes) -> None:
    for content in (data, packing.MAGIC + data):
        try:
            for reading in unbundle(content):
                list(unpack(reading))
        except ContentInvalid:
            pass


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(ANYTHING, max_size=4), ANYTHING)
def test_lines_of_anybody_are_read_as_messages_or_refused(fields: list[object], line: object) -> None:
    for value in (line, fields, [7, "prompt", "text", fields]):
        try:
            (turn,) = unpack(zlib.compress(json.dumps(value).encode() + b"\n"))
        except ContentInvalid:
            continue
        assert is_word(turn)
        assert all(0 <= a <= b <= len(turn.text) for a, b in turn.pasted)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut off"),
        (b"no zlib", "compressed"),
        (zlib.compress(b"[" * 100_000 + b"\n"), "JSON"),
        (zlib.compress(b"1" * 5000 + b"\n"), "JSON"),
        (zlib.compress(b'[0,"prompt","no end",[]]'), "behind its end"),
        (zlib.compress(b'[0,"prompt","a",[]]\n') + b"more", "behind its end"),
        (zlib.compress(b'[0,"prompt","a",[]]\n' * 1000)[:-20], "cut off"),
        (zlib.compress(b'[0,"tool_result","a",[]]\n'), "no message"),
        (zlib.compress(b'[0,"prompt","abc",[[0,2],[1,3]]]\n'), "no message"),
        (zlib.compress(b'[-1,"prompt","abc",[]]\n'), "no message"),
        (zlib.compress(b'[true,"prompt","abc",[]]\n'), "no message"),
    ],
)
def test_a_broken_reading_is_refused_in_one_line(data: bytes, why: str) -> None:
    with pytest.raises(ContentInvalid, match=why):
        list(unpack(data))


def test_a_content_of_another_version_is_refused() -> None:
    with pytest.raises(ContentInvalid, match="another version"):
        unbundle(b"MVW9" + bytes(8))


@pytest.mark.slow
def test_a_bomb_is_given_up_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_UNPACKED_BYTES", 16 << 20)
    lines = zlib.compress(b'[0,"prompt","%s",[]]\n' % (b"a" * 1000) * 20_000)
    for bomb in (lines, zlib.compress(bytes(64 << 20))):
        tracemalloc.start()
        with pytest.raises(ContentInvalid, match="larger"):
            for _ in unpack(bomb):
                pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 << 20


def test_a_long_message_and_one_of_many_passages_stay_at_home() -> None:
    def said(offset: int, text: str, pasted: tuple[tuple[int, int], ...] = ()) -> Turn:
        return Turn(Role.USER, Origin.PROMPT, text, "r", "s", offset=offset, pasted=pasted)

    many = tuple((place, place) for place in range(packing.MAX_PASSAGES + 1))
    packed = pack([said(1, "a " * packing.MAX_TEXT_CHARS), said(2, "short"), said(3, "b" * 20_000, many)])
    assert (packed.words, packed.kept_back) == (1, (1, 3))


@pytest.mark.slow
def test_what_does_not_fit_is_said_and_not_built_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless() -> Iterator[Turn]:
        for number in range(10_000_000):
            yield Turn(Role.USER, Origin.PROMPT, f"{number * 7919 % 1_000_003}", "r", "s", offset=number)

    with pytest.raises(TooLarge):
        pack(endless(), most_bytes=100_000)


# ---- of a transcript

RULE = "Remember: always run the linter before you commit, never after."


def session(path: Path, *, home: str = "/Users/rosalind/shop") -> Path:
    """Rules, fixes, a secret, a refusal, tools that fail and pass."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = []
    number = 0
    for said in (
        RULE,
        f"The token is {SECRET}, and from now on always use it for the shop, never another.",
        "No, use pnpm instead of npm.",
        f"Have a look at {home}/main.py. I'd rather have tables than lists, always.",
        "Could we maybe cache the thumbnails some day?",
    ):
        records.append(human(number, said, sessionId="s", cwd=home))
        records.append(assistant(number + 1, call(f"a{number}", "Bash", command="pytest -q"), sessionId="s", cwd=home))
        records.append(result(number + 2, f"a{number}", "E   ModuleNotFoundError: No module named 'x'", True, cwd=home))
        records.append(
            assistant(
                number + 3,
                text_block("Found it: the module was missing. The problem was fixed by installing x with pip."),
                call(f"b{number}", "Bash", command="pip install x"), sessionId="s", cwd=home,
            )
        )  # fmt: skip
        records.append(result(number + 4, f"b{number}", "ok", cwd=home))
        records.append(assistant(number + 5, call(f"c{number}", "Bash", command="pytest -q"), sessionId="s", cwd=home))
        records.append(result(number + 6, f"c{number}", "1 passed", cwd=home))
        number += 10
    write(path, *records)
    return path


def shared(path: Path, start: int = 0, resume: int = 0) -> tuple[Packed, MiningRequest]:
    """What others pick of it, as the machine at home mines it."""
    packed = pack_transcript(PackingRequest(str(path), "claude", start, resume, None))
    picked = (*judge(unpack(packed.data)), *packed.kept_back)
    return packed, MiningRequest(str(path), "claude", start, resume, picked=picked, picked_until=packed.end)


def test_what_others_pick_is_mined_to_the_same_candidates(tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl")
    packed, request = shared(path)
    alone = mine_transcript(MiningRequest(str(path), "claude"))
    assert mine_transcript(request) == alone
    assert {one.role for one in alone.candidates} == {"user", "assistant"}
    assert len(packed.kept_back) == 2, "the token, and the path below a home folder"
    assert len(alone.candidates) >= 8


@pytest.mark.slow
def test_the_same_from_where_an_earlier_mining_ended_and_after_the_file_grew(tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl")
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in range(0, len(lines), 3):
        path.write_bytes(b"".join(lines[:cut]))
        before = mine_transcript(MiningRequest(str(path), "claude"))
        path.write_bytes(b"".join(lines[: cut + 8]))
        _, request = shared(path, before.mined_until, before.context_offset)
        path.write_bytes(whole)  # Goes on while others look.
        alone = MiningRequest(str(path), "claude", before.mined_until, before.context_offset)
        assert mine_transcript(request) == mine_transcript(alone)


def test_a_file_that_was_replaced_meanwhile_is_mined_whole(tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl")
    end = path.stat().st_size
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:7]))
    request = MiningRequest(str(path), "claude", end, end, picked=(), picked_until=end + 1)
    assert mine_transcript(request) == mine_transcript(MiningRequest(str(path), "claude"))


def test_words_said_in_a_project_that_may_not_leave_are_kept_back(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(
        path,
        human(1, RULE, sessionId="s", cwd="/srv/shop"),
        human(2, "Always keep the payroll in this folder.", sessionId="s", cwd="/srv/payroll"),
    )
    packed = pack_transcript(PackingRequest(str(path), "claude", 0, 0, ["shop"]))
    assert [turn.text for turn in unpack(packed.data)] == [RULE]
    assert len(packed.kept_back) == 1
    assert pack_transcript(PackingRequest(str(path), "claude", 0, 0, ["other"])).words == 0
