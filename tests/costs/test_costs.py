"""What sessions cost: counted once, kept up, told by week and project."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.sources.transcripts.usage import copied_bytes, session_usage
from memoryvault.tasks.costs import CostRow, costs_by_week, note_costs
from memoryvault.tasks.indexing import reconcile_now
from memoryvault.vault.marker import Marker, create_marker, mark_reflected

from ..review.support import Bed

SESSION = "0b54a9e2-4b34-4e0e-9d64-7f0a5f1f2c11"
FORK = "5a54a9e2-4b34-4e0e-9d64-7f0a5f1f2c22"


def parse_local_day(day: str) -> str:
    """The user's day at 10:00 UTC, when the answers of that day were given."""
    return datetime.fromisoformat(f"{day}T10:00:00+00:00").astimezone().date().isoformat()


def answer(id_: str, minute: int, output: int = 10, **more: object) -> str:
    usage = {
        "input_tokens": 2,
        "output_tokens": output,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 1000,
    }
    message = {"id": id_, "role": "assistant", "model": "claude-sonnet-5", "usage": usage, **more}
    return (
        json.dumps({"type": "assistant", "timestamp": f"2026-07-01T10:{minute:02}:00.000Z", "message": message}) + "\n"
    )


def transcript(
    bed: Bed, *lines: str, session: str = SESSION, cwd: str = "/src/shop", started: str = "2026-07-01T10:00:00Z"
) -> Path:
    path = bed.root / "claude" / "projects" / "-src" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    marker = Marker(
        session_id=session,
        started_at=started,
        source="startup",
        transcript=str(path),
        cwd=cwd,
        host="claude",
    )
    create_marker(bed.settings.state.harness, marker)
    return path


def test_an_answer_counts_once_however_many_lines_it_has(bed: Bed) -> None:
    path = transcript(
        bed, answer("a", 0, 1), answer("a", 0, 10), answer("a", 1, 10), answer("b", 2), "{broken\n", "[]\n"
    )
    usage = session_usage(path, "claude")
    assert (usage.input_tokens, usage.output_tokens) == (4, 20)
    assert (usage.cache_write_tokens, usage.cache_read_tokens, usage.answers) == (200, 2000, 2)
    assert usage.models == ("claude-sonnet-5",)


def test_sub_agents_count_and_pauses_do_not(bed: Bed) -> None:
    path = transcript(bed, answer("a", 0), answer("b", 4), answer("c", 30), answer("d", 31))
    sub = path.with_suffix("") / "subagents" / "agent-1.jsonl"
    sub.parent.mkdir(parents=True)
    sub.write_text(answer("s", 2, 100))
    usage = session_usage(path, "claude")
    assert (usage.output_tokens, usage.answers) == (140, 5)
    assert (usage.wall_seconds, usage.active_seconds) == (31 * 60, 5 * 60)


def test_what_is_no_usage_costs_nothing(bed: Bed) -> None:
    odd = answer("a", 0, 5).replace('"output_tokens": 5', '"output_tokens": "many"')
    path = transcript(bed, odd, json.dumps({"message": {"usage": 7}}) + "\n", answer("x", 0, role="user"))
    assert session_usage(path, "claude").output_tokens == 0
    assert session_usage(path, "copilot").is_empty


def test_codex_keeps_a_running_total(tmp_path: Path) -> None:
    def count(minute: int, total: int) -> str:
        figures = {"input_tokens": total, "cached_input_tokens": total - 10, "output_tokens": 7}
        payload = {"type": "token_count", "info": {"total_token_usage": figures}}
        return json.dumps({"timestamp": f"2026-07-01T10:0{minute}:00Z", "type": "event_msg", "payload": payload}) + "\n"

    path = tmp_path / "rollout.jsonl"
    empty = json.dumps({"type": "event_msg", "payload": {"type": "token_count", "info": None}}) + "\n"
    model = json.dumps({"type": "turn_context", "payload": {"model": "gpt-5"}}) + "\n"
    path.write_text(model + empty + count(0, 50) + count(1, 90) + count(1, 90))
    usage = session_usage(path, "codex")
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, usage.answers) == (10, 80, 7, 2)
    assert usage.models == ("gpt-5",)


def test_each_session_has_one_entry_that_grows_with_it(bed: Bed) -> None:
    path = transcript(bed, answer("a", 0))
    assert note_costs(bed.settings, bed.store) == 1
    (entry,) = bed.entries()
    assert entry.path == f"personal-projects/shop/session-cost/{SESSION}.md"
    assert (entry.kind, entry.project, entry.created, entry.extra["output_tokens"]) == (
        "session-cost",
        "shop",
        parse_local_day("2026-07-01"),
        10,
    )
    assert (entry.sources[0].host, entry.sources[0].session) == ("claude", SESSION)
    before = bed.files()
    assert note_costs(bed.settings, bed.store) == 0
    assert bed.files() == before
    bed.edit(entry.path, "What the session cost", "My remark")
    path.write_text(path.read_text() + answer("b", 1))
    mark_reflected(bed.settings.state.harness, SESSION)
    assert note_costs(bed.settings, bed.store) == 1
    (entry,) = bed.entries()
    assert entry.extra["output_tokens"] == 20
    assert "My remark" in entry.body


def test_a_lost_state_makes_no_second_entry(bed: Bed) -> None:
    transcript(bed, answer("a", 0))
    note_costs(bed.settings, bed.store)
    before = bed.files()
    Path(bed.settings.state.state_db).unlink()
    assert note_costs(bed.settings, bed.store) == 0
    assert bed.files() == before


def record(uuid: str, minute: int) -> str:
    return answer(f"m-{uuid}", minute).replace("{", f'{{"uuid": "{uuid}", ', 1)


def copy_of(bed: Bed, first: Path, *lines: str, session: str = FORK, started: str = "2026-07-01T12:00:00Z") -> Path:
    text = first.read_text().replace(SESSION, session)
    return transcript(bed, '{"type":"summary"}\n', text, *lines, session=session, started=started)


def outputs(bed: Bed) -> dict[str, object]:
    return {entry.slug: entry.extra["output_tokens"] for entry in bed.entries()}


def test_what_a_forked_session_begins_with_is_counted_once(bed: Bed) -> None:
    """Claude Code copies the records under the new session's id; each keeps its uuid and its answer's id."""
    first = transcript(bed, record("a", 0), record("b", 1))
    fork = copy_of(bed, first, record("c", 30))
    first.write_text(first.read_text() + record("d", 40))
    assert note_costs(bed.settings, bed.store) == 2
    assert outputs(bed) == {SESSION: 30, FORK: 10}
    (entry,) = (entry for entry in bed.entries() if entry.slug == FORK)
    assert (entry.extra["answers"], entry.extra["wall_seconds"]) == (1, 0)
    first.unlink()  # As the host does after 30 days.
    fork.write_text(fork.read_text() + record("e", 31))
    note_costs(bed.settings, bed.store)
    assert outputs(bed) == {SESSION: 30, FORK: 20}


def test_a_fork_of_a_fork_and_one_that_said_nothing_yet(bed: Bed) -> None:
    first = transcript(bed, record("a", 0))
    fork = copy_of(bed, first)
    note_costs(bed.settings, bed.store)
    assert outputs(bed) == {SESSION: 10}
    fork.write_text(fork.read_text() + record("b", 5))
    copy_of(bed, fork, record("c", 6), session=FORK.replace("a", "b"), started="2026-07-01T13:00:00Z")
    note_costs(bed.settings, bed.store)
    assert sum(map(int, map(str, outputs(bed).values()))) == 30


def test_a_session_that_only_names_records_of_another_is_no_copy(bed: Bed) -> None:
    first = transcript(bed, record("a", 0), record("b", 1))
    transcript(
        bed, json.dumps({"uuid": "z", "text": first.read_text()}) + "\n", record("a", 2), session=FORK,
        started="2026-07-01T12:00:00Z",
    )  # fmt: skip
    note_costs(bed.settings, bed.store)
    assert outputs(bed) == {SESSION: 20, FORK: 10}


@pytest.mark.parametrize(
    ("started", "is_compared"),
    [("2026-07-01T10:00:05Z", False), ("2026-07-01T12:00:00+02:00", False), ("2026-07-01T10:01:00Z", True), ("", True)],
)
def test_other_transcripts_are_read_only_for_a_session_that_is_younger_than_its_first_record(
    tmp_path: Path, started: str, is_compared: bool
) -> None:
    """There may be thousands in a folder, of megabytes each."""
    path = tmp_path / f"{FORK}.jsonl"
    path.write_text('{"uuid": "a", "timestamp": "2026-07-01T10:00:00.250Z"}\n')
    asked: list[Path] = []

    def others() -> Iterator[Path]:
        asked.append(path)
        yield path

    assert copied_bytes(path, others(), started) == (path.stat().st_size if is_compared else 0)
    assert bool(asked) == is_compared


def test_transcripts_elsewhere_and_without_usage_have_no_entry(bed: Bed) -> None:
    transcript(bed, '{"type":"user"}\n')
    outside = bed.root / "outside.jsonl"
    outside.write_text(answer("a", 0))
    marker = Marker(
        session_id="s2", started_at="", source="startup", transcript=str(outside), cwd="/src/shop", host="claude"
    )
    create_marker(bed.settings.state.harness, marker)
    assert note_costs(bed.settings, bed.store) == 0


def test_costs_are_queried_by_kind_and_answer_no_question_by_themselves(bed: Bed) -> None:
    transcript(bed, answer("a", 0))
    note_costs(bed.settings, bed.store)
    reconcile_now(bed.settings)
    engine = RecallEngine(Path(bed.settings.state.index_db), bed.vault, None)
    try:
        asked = RecallQuery("what did the session cost by the usage records?", project="shop")
        assert engine.recall(asked).hits == ()
        named = RecallQuery("sessions", project="shop", filter="kind=session-cost")
        assert [hit.kind for hit in engine.recall(named).hits] == ["session-cost"]
    finally:
        engine.close()


def test_costs_are_listed_by_the_filter_alone_the_newest_first(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in bed.env.items():
        monkeypatch.setenv(name, value)
    transcript(bed, answer("a", 0))
    transcript(bed, answer("b", 0).replace("2026-07-01", "2026-07-09"), session="s2")
    note_costs(bed.settings, bed.store)
    reconcile_now(bed.settings)
    assert main(["recall", "--filter", "kind=session-cost", "--project", "shop", "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert [hit["created"] for hit in hits] == [parse_local_day("2026-07-09"), parse_local_day("2026-07-01")]
    assert {hit["kind"] for hit in hits} == {"session-cost"}
    assert main(["recall", "--filter", " "]) == 2


def test_sums_by_week_and_project(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in bed.env.items():
        monkeypatch.setenv(name, value)
    assert main(["health", "--costs"]) == 0
    assert "no session's cost" in capsys.readouterr().out
    transcript(bed, answer("a", 0), answer("b", 2))
    transcript(bed, answer("c", 0), session="s2")
    transcript(bed, answer("d", 0).replace("2026-07-01", "2026-07-09"), session="s3", cwd="/src/blog")
    note_costs(bed.settings, bed.store)
    assert costs_by_week(bed.store) == [
        CostRow("2026-07-06", "blog", 1, 2, 10, 100, 1000, 0),
        CostRow("2026-06-29", "shop", 2, 6, 30, 300, 3000, 120),
    ]
    assert main(["health", "--costs"]) == 0
    assert "3,000" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("point", ["vault-before-rename", "cost-written"])
def test_a_run_that_is_killed_counts_nothing_twice(bed: Bed, point: str) -> None:
    transcript(bed, answer("a", 0))
    transcript(bed, answer("b", 0), session="s2")
    code = (
        "import os\nfrom memoryvault.vault.settings import load_settings\n"
        "from memoryvault.tasks.indexing import vault_store\nfrom memoryvault.tasks.costs import note_costs\n"
        "s = load_settings(os.environ); note_costs(s, vault_store(s))\n"
    )
    assert bed.run_python(code, point) == -signal.SIGKILL
    assert bed.run_python(code) == 0
    assert len(bed.files()) == 2


def test_a_project_that_is_a_link_out_of_the_vault_keeps_no_other_session_back(bed: Bed) -> None:
    (bed.root / "elsewhere").mkdir()
    (bed.vault / "personal-projects").mkdir()
    (bed.vault / "personal-projects" / "shop").symlink_to(bed.root / "elsewhere")
    for number, cwd in enumerate(("/src/shop", "/src/blog", "/src/shop", "/src/web")):
        transcript(bed, answer("m", 1), session=f"{number}{SESSION[1:]}", cwd=cwd)
    assert note_costs(bed.settings, bed.store) == 2
    assert sorted(entry.project or "" for entry in bed.entries()) == ["blog", "web"]
    assert list((bed.root / "elsewhere").iterdir()) == []
