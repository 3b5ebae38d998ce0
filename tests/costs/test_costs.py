"""Costs of sessions: counted once, updated, summed by week and project."""

import json
import signal
from datetime import datetime
from pathlib import Path

import pytest

from memoryvault.services.costs import CostRow, costs_by_week, note_costs
from memoryvault.services.indexing import reconcile_now
from memoryvault.sources.transcripts.usage import session_bytes, session_usage
from memoryvault.tests.support.command import Command
from memoryvault.vault.marker import START, Marker, create_marker, mark_reflected, marker_path

from ..review.support import Bed, make_bed

SESSION = "0b54a9e2-4b34-4e0e-9d64-7f0a5f1f2c11"
CACHE = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000}
FORK = "5a54a9e2-4b34-4e0e-9d64-7f0a5f1f2c22"


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "claude"))


def parse_local_day(day: str) -> str:
    """The user's day at 10:00 UTC, when its answers were given."""
    return datetime.fromisoformat(f"{day}T10:00:00+00:00").astimezone().date().isoformat()


def answer(id_: str, minute: int, output: int = 10, **more: object) -> str:
    usage = {"input_tokens": 2, "output_tokens": output, **CACHE}
    message = {"id": id_, "role": "assistant", "model": "claude-sonnet-5", "usage": usage, **more}
    record = {"type": "assistant", "timestamp": f"2026-07-01T10:{minute:02}:00.000Z", "message": message}
    return json.dumps(record) + "\n"


def transcript(
    bed: Bed, *lines: str, session: str = SESSION, cwd: str = "/src/shop", started: str = "2026-07-01T10:00:00Z"
) -> Path:
    path = bed.root / "claude" / "projects" / "-src" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    mark(bed, path, session, cwd, started)
    return path


def mark(bed: Bed, path: Path, session: str, cwd: str = "/src/shop", started: str = "") -> None:
    create_marker(bed.settings.state.markers, Marker(session, started, "startup", str(path), cwd, "claude"))


def test_an_answer_counts_once_however_many_lines_it_has(bed: Bed) -> None:
    lines = [answer("a", 0, 1), answer("a", 0, 10), answer("a", 1, 10), answer("b", 2), "{broken\n", "[]\n"]
    path = transcript(bed, *lines)
    usage = session_usage(path, "claude")
    assert (usage.input_tokens, usage.output_tokens) == (4, 20)
    assert (usage.cache_write_tokens, usage.cache_read_tokens, usage.answers) == (200, 2000, 2)
    assert usage.models == ("claude-sonnet-5",)


def test_sub_agents_count_and_pauses_do_not(bed: Bed) -> None:
    path = transcript(bed, answer("a", 0), answer("b", 4), answer("c", 30), answer("d", 31))
    before = session_bytes(path)
    sub = path.with_suffix("") / "subagents" / "agent-1.jsonl"
    deep = sub.parent / "workflows" / "wf_0a" / "agent-2.jsonl"
    deep.parent.mkdir(parents=True)
    sub.write_text(answer("s", 2, 100))
    deep.write_text(answer("w", 2, 100))
    usage = session_usage(path, "claude")
    assert (usage.output_tokens, usage.answers) == (240, 6)
    assert session_bytes(path) == before + sub.stat().st_size + deep.stat().st_size
    assert (usage.wall_seconds, usage.active_seconds) == (31 * 60, 5 * 60)


def test_host_message_in_place_of_an_answer_costs_nothing(bed: Bed) -> None:
    """For a broken connection or a reached limit, the record looks like an answer of the model `<synthetic>`."""
    refused = answer("x", 1, 0, model="<synthetic>", usage={"input_tokens": 0, "output_tokens": 0})
    path = transcript(bed, answer("a", 0), refused)
    assert session_usage(path, "claude").answers == 1
    path.write_text(refused)
    assert session_usage(path, "claude").is_empty
    assert note_costs(bed.settings, bed.store) == 0


def test_record_without_usage_costs_nothing(bed: Bed) -> None:
    odd = answer("a", 0, 5).replace('"output_tokens": 5', '"output_tokens": "many"')
    path = transcript(bed, odd, json.dumps({"message": {"usage": 7}}) + "\n", answer("x", 0, role="user"))
    assert session_usage(path, "claude").output_tokens == 0
    assert session_usage(path, "copilot").is_empty


def rollout(path: Path, *records: tuple[str, dict[str, object]]) -> Path:
    """A transcript of Codex: records by second since 10:00, (":05.250", payload)."""
    lines = []
    for second, payload in records:
        own = payload.get("type")
        form = "session_meta" if "id" in payload else "turn_context" if own is None else "event_msg"
        lines.append(json.dumps({"timestamp": f"2026-07-01T10:0{second}Z", "type": form, "payload": payload}) + "\n")
    path.write_text("".join(lines))
    return path


def tokens(input_tokens: int, output: int) -> dict[str, object]:
    """Codex's running total."""
    total = {"input_tokens": input_tokens, "cached_input_tokens": 10, "output_tokens": output}
    return {"type": "token_count", "info": {"total_token_usage": total}}


@pytest.mark.parametrize(
    ("totals", "sums"),
    [
        ([("0:00", 50, 7), ("1:00", 90, 7), ("1:00", 90, 7)], (80, 10, 7, 2)),
        ([("0:00", 50, 5), ("1:00", 90, 9), ("2:00", 40, 4), ("3:00", 70, 6)], (140, 20, 15, 4)),
    ],
    ids=["it goes on", "it begins again, as in older versions when a session is resumed"],
)
def test_codex_keeps_a_running_total(
    tmp_path: Path, totals: list[tuple[str, int, int]], sums: tuple[int, int, int, int]
) -> None:
    nothing: dict[str, object] = {"type": "token_count", "info": None}
    figures = [(second, tokens(read, written)) for second, read, written in totals]
    path = rollout(tmp_path / "rollout.jsonl", ("0:00", {"model": "gpt-5"}), ("0:00", nothing), *figures)
    usage = session_usage(path, "codex")
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, usage.answers) == sums
    assert usage.models == ("gpt-5",)


def test_each_session_has_one_entry_that_grows_with_it(bed: Bed) -> None:
    path = transcript(bed, answer("a", 0))
    assert note_costs(bed.settings, bed.store) == 1
    (entry,) = bed.entries()
    assert entry.path == f"personal-projects/shop/session-cost/{SESSION}.md"
    assert (entry.kind, entry.project, entry.extra["output_tokens"]) == ("session-cost", "shop", 10)
    assert entry.created == parse_local_day("2026-07-01")
    assert (entry.sources[0].host, entry.sources[0].session) == ("claude", SESSION)
    before = bed.files()
    assert note_costs(bed.settings, bed.store) == 0
    assert bed.files() == before
    bed.edit(entry.path, "What the session cost", "My remark")
    path.write_text(path.read_text() + answer("b", 1))
    mark_reflected(bed.settings.state.markers, SESSION)
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


@pytest.mark.parametrize("moved", ["personal-projects/store/session-cost/0b54.md", "_archive/a cost.md", "Costs/x.md"])
def test_a_note_that_the_user_moved_is_kept_up_where_it_is(bed: Bed, moved: str) -> None:
    path = transcript(bed, answer("a", 0))
    note_costs(bed.settings, bed.store)
    (old,) = bed.files()
    (bed.vault / moved).parent.mkdir(parents=True, exist_ok=True)
    (bed.vault / old).rename(bed.vault / moved)
    path.write_text(path.read_text() + answer("b", 1))
    assert note_costs(bed.settings, bed.store) == 1
    assert list(bed.files()) == [moved]
    assert bed.entries()[0].extra["output_tokens"] == 20
    Path(bed.settings.state.state_db).unlink()
    assert note_costs(bed.settings, bed.store) == 0


def test_a_session_whose_folder_was_renamed_keeps_its_one_note(bed: Bed) -> None:
    """Its marker names a folder inside a repository that no longer exists, or, a month later, the new one."""
    folder = bed.root / "shop" / "backend"
    folder.mkdir(parents=True)
    (bed.root / "shop" / ".git").mkdir()
    path = transcript(bed, answer("a", 0), cwd=str(folder))
    note_costs(bed.settings, bed.store)
    (bed.root / "shop").rename(bed.root / "store")
    path.write_text(path.read_text() + answer("b", 1))
    assert note_costs(bed.settings, bed.store) == 1
    assert list(bed.files()) == [f"personal-projects/shop/session-cost/{SESSION}.md"]
    Path(marker_path(bed.settings.state.markers, SESSION, START)).unlink()
    transcript(bed, answer("a", 0), answer("b", 1), answer("c", 2), cwd=str(bed.root / "store"))
    assert note_costs(bed.settings, bed.store) == 1
    assert outputs(bed) == {SESSION: 30}


def test_another_note_that_names_the_session_is_not_taken_for_its_cost(bed: Bed) -> None:
    transcript(bed, answer("a", 0), session="s1")
    transcript(bed, answer("b", 0), session="s10")
    note = "---\nkind: {}\nsource:\n- {{host: claude, session: {}}}\n---\n{}\n"
    (bed.vault / "rule.md").write_text(note.format("session-cost", "s10x", "s1 s10"))
    (bed.vault / "memo.md").write_text(note.format("memo", "s1", "session-cost"))
    assert note_costs(bed.settings, bed.store) == 2
    assert {path.rpartition("/")[2] for path in bed.files()} == {"memo.md", "rule.md", "s1.md", "s10.md"}


def outputs(bed: Bed) -> dict[str, object]:
    return {entry.slug: entry.extra["output_tokens"] for entry in bed.entries()}


def test_what_a_fork_was_copied_from_is_not_counted_again(bed: Bed) -> None:
    """Claude Code copies the records with their times under the new session's id."""
    transcript(bed, answer("a", 0), answer("b", 1))
    transcript(bed, answer("a", 0), answer("b", 1), answer("c", 30), session=FORK, started="2026-07-01T10:29:00Z")
    assert note_costs(bed.settings, bed.store) == 2
    assert outputs(bed) == {SESSION: 20, FORK: 10}


def test_transcripts_elsewhere_and_without_usage_have_no_entry(bed: Bed) -> None:
    transcript(bed, '{"type":"user"}\n')
    outside = bed.root / "outside.jsonl"
    outside.write_text(answer("a", 0))
    mark(bed, outside, "s2")
    assert note_costs(bed.settings, bed.store) == 0


def test_costs_answer_no_question_and_are_listed_by_the_filter_the_newest_first(ask: Bed, memory: Command) -> None:
    transcript(ask, answer("a", 0))
    transcript(ask, answer("b", 0).replace("2026-07-01", "2026-07-09"), session="s2")
    note_costs(ask.settings, ask.store)
    reconcile_now(ask.settings)
    question = "what did the session cost by the usage records?"
    assert memory.json("recall", question, "--project", "shop")["hits"] == []
    hits = memory.json("recall", "--filter", "kind=session-cost", "--project", "shop")["hits"]
    assert [hit["created"] for hit in hits] == [parse_local_day("2026-07-09"), parse_local_day("2026-07-01")]
    assert {hit["kind"] for hit in hits} == {"session-cost"}
    memory("recall", "--filter", " ", code=2)


def test_sums_by_week_and_project(ask: Bed, memory: Command) -> None:
    assert "no session's cost" in memory("health", "--costs").out
    transcript(ask, answer("a", 0), answer("b", 2))
    transcript(ask, answer("c", 0), session="s2")
    transcript(ask, answer("d", 0).replace("2026-07-01", "2026-07-09"), session="s3", cwd="/src/blog")
    note_costs(ask.settings, ask.store)
    assert costs_by_week(ask.store) == [
        CostRow("2026-07-06", "blog", 1, 2, 10, 100, 1000, 0),
        CostRow("2026-06-29", "shop", 2, 6, 30, 300, 3000, 120),
    ]
    assert "3,000" in memory("health", "--costs").out


@pytest.mark.slow
@pytest.mark.parametrize("point", ["vault-before-rename", "vault-before-rename@2"])
def test_a_run_that_is_killed_counts_nothing_twice(bed: Bed, point: str) -> None:
    transcript(bed, answer("a", 0))
    transcript(bed, answer("b", 0), session="s2")
    code = (
        "import os\nfrom memoryvault.runtime.settings import load_settings\n"
        "from memoryvault.services.indexing import vault_store\nfrom memoryvault.services.costs import note_costs\n"
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
