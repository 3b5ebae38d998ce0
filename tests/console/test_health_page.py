"""Health and its charts."""

from __future__ import annotations

import fcntl
import json
import re
import socket
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from memoryvault.console.charts import Series, bar_chart, line_chart
from memoryvault.console.pages import health
from memoryvault.console.times import ago, lasting, short, size, when_iso
from memoryvault.runtime.layout import leave_socket_folder, make_socket_folder
from memoryvault.services.hook_log import HookRun
from memoryvault.services.spending import SpendingBook
from memoryvault.services.trends import growth_by_week, hooks_by_day
from memoryvault.tests.review.support import Bed

from .support import Front, visible
from .test_search_page import index, rule

TODAY = date(2026, 11, 20)  # a Friday


def test_an_empty_vault_is_well_and_has_nothing_to_draw(front: Front) -> None:
    text = visible(front.get("health", view="whole"))
    assert "All is well. No worker runs now: memory service up" in text
    assert text.count("Nothing to draw yet.") == 3


def test_a_recall_service_that_hangs_is_not_said_to_run(bed: Bed, front: Front) -> None:
    state = bed.settings.state
    state.ensure()
    make_socket_folder(state.recall_socket)
    with socket.socket(socket.AF_UNIX) as silent, open(state.recall_lock, "w") as lock:
        silent.bind(state.recall_socket)
        silent.listen()
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        assert "Recall service does not answer process 4711" in visible(front.get("health", view="whole"))
    leave_socket_folder(state.recall_socket)


@pytest.mark.slow
def test_charts_have_a_name_a_description_and_their_figures_as_a_table(bed: Bed, front: Front) -> None:
    now = datetime.now(UTC)
    for number in range(3):
        rule(bed, f"rule-{number}", "Something.", created=(now - timedelta(weeks=number)).date())
    bed.note("_meta/corpus-digest.md", "# What old sessions said", kind="corpus-digest", created=now.date())
    bed.note("personal-private/_review/r.md", "# A proposal", kind="preferences", created=now.date())
    index(bed)
    book = SpendingBook(bed.settings.state.state_db, "mining")
    book.settle(book.reserve("s1", {"tokens": 900}), {"tokens": 765})
    hook = {"time": now.isoformat(), "event": "hook", "hook": "UserPromptSubmit", "duration_ms": 61.4}
    Path(bed.settings.state.log_file).write_text(json.dumps(hook) + "\n", "utf-8")
    answer = front.get("health", view="whole")
    drawings = [
        ElementTree.fromstring(found) for found in re.findall(r"<svg viewBox=.*?</svg>", answer.text, re.DOTALL)
    ]
    assert len(drawings) == 3
    for drawing in drawings:
        assert drawing.get("role") == "img"
        named = {element.get("id"): element.text for element in drawing if element.tag in ("title", "desc")}
        assert all(named[name] for name in str(drawing.get("aria-labelledby")).split())
    text = visible(answer)
    for figure in ("61", "3 now, 3 more than", "765"):
        assert figure in text
    assert " style=" not in answer.text


def test_what_looks_at_every_note_is_not_waited_for(bed: Bed, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(*args: object) -> None:
        raise AssertionError("the page looks at every note before it is shown")

    rule(bed, "a-rule", "Something.")
    with monkeypatch.context() as patched:
        for name in ("count_active", "hooks_by_day"):
            patched.setattr(health, name, looks)
        page = front.get("health")
    assert "All is well." in visible(page)
    for part in ("charts", "entries"):
        assert re.search(rf'hx-get="[^"]*/health/{part}" hx-trigger="load"', page.text), part
    assert "<svg" not in page.text


def test_the_parts_of_the_page_are_pieces_that_need_the_session(bed: Bed, front: Front) -> None:
    rule(bed, "a-rule", "Something.")
    charts, entries = front.get("health/charts"), front.get("health/entries")
    assert visible(entries) == "All 1 personal-private 1"
    assert visible(charts).count("Nothing to draw yet.") == 3
    whole = visible(front.get("health", view="whole"))
    for part in (charts, entries):
        assert "<html" not in part.text
        assert visible(part) in whole
    front.client.cookies.clear()
    for part in ("charts", "entries"):
        assert front.get(f"health/{part}").status_code in (401, 403)


def test_without_the_vault_the_rest_is_told(bed: Bed, front: Front) -> None:
    bed.vault.rmdir()
    assert visible(front.get("health/entries")) == "They cannot be counted now."
    assert visible(front.get("health/charts")).count("Nothing to draw yet.") == 3
    assert "Memory" in visible(front.get("health", view="whole"))


def test_hooks_are_summed_up_by_day_and_days_without_any_are_gaps() -> None:
    def run(ms: float | None, day: str, event: str = "UserPromptSubmit") -> HookRun:
        return HookRun(event, datetime.fromisoformat(f"{day}T12:00").astimezone().timestamp(), ms, "ok", False)

    runs = [
        *(run(10, "2026-11-18"), run(30, "2026-11-18"), run(50, "2026-11-20"), run(99, "2026-10-01")),
        *(run(7, "2026-11-19", "Stop"), run(None, "2026-11-19")),
    ]
    days = hooks_by_day(runs, "UserPromptSubmit", TODAY, days=3)
    assert [(one.count, one.p50_ms, one.p95_ms) for one in days] == [(2, 10, 30), (0, None, None), (1, 50, 50)]


def test_growth_counts_what_there_was_at_the_end_of_each_week() -> None:
    made = {"": 5, "2026-01-01": 10, "2026-11-09": 1, "2026-11-15": 1, "2026-11-16": 1}
    assert growth_by_week(made, TODAY, weeks=3) == [
        (date(2026, 11, 2), 10),
        (date(2026, 11, 9), 12),
        (date(2026, 11, 16), 13),
    ]


def test_a_line_ends_at_a_gap_and_nothing_leaves_the_drawing() -> None:
    chart = line_chart("a", "A", "Says.", ["1", "2", "3", "4"], [Series("s", [1, 1e9, None, 3])], unit="", limit=2e9)
    (line,) = chart.lines
    assert len(line.pieces) == 1
    assert len(line.dots) == 3
    assert all(chart.left <= x <= chart.right and 0 <= y <= chart.bottom for x, y in line.dots)
    assert chart.limit is not None
    assert 0 <= chart.limit <= chart.bottom
    assert chart.rows[2] == ("3", "–")


def test_bars_are_as_high_as_their_figures_say() -> None:
    chart = bar_chart("b", "B", "Says.", ["1", "2", "3"], [Series("s", [10, 0, 5])], unit="tokens")
    high, low = chart.bars
    assert round(high.height / low.height, 1) == 2.0
    assert bar_chart("b", "B", "Says.", [], [Series("s", [])], unit="").empty


def test_times_and_sizes_are_told_in_few_words() -> None:
    assert [ago(at, 1000.0) for at in (None, 0.0, 990.0, 1180.0)] == ["–", "–", "10 s ago", "in 3 min"]
    assert [lasting(s) for s in (0.42, 59, 600, 9000, 999_999)] == ["0.4 s", "59 s", "10 min", "2 h", "12 days"]
    assert [size(n) for n in (12, 4_000, 5_600_000)] == ["12 bytes", "4 kB", "5.6 MB"]
    assert [short(n) for n in (0, 250, 1200, 3e6)] == ["0", "250", "1.2k", "3M"]
    assert [when_iso(text) for text in ("2026-05-04", "soon", None)] == ["4 May 2026", "soon", "–"]
