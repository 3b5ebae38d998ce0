"""The log as hooks write it."""

import json
import multiprocessing
import stat
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memoryvault.runtime.hooklog import MAX_LINE_BYTES, append, format_line


def test_a_line_is_json_with_a_utc_time(tmp_path: Path) -> None:
    file = tmp_path / "memoryvault.log"
    append(str(file), "info", "stop", session="abc", ms=3.5, queued=True, note=None, n=2)
    line = json.loads(file.read_text())
    assert line["level"] == "info"
    assert line["time"].endswith("Z")
    assert (line["session"], line["ms"], line["queued"], line["note"], line["n"]) == ("abc", 3.5, True, None, 2)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    append(str(tmp_path / "absent" / "x.log"), "info", "e")
    append(str(tmp_path), "info", "e")
    append("bad\0path", "info", "e")


def test_a_symbolic_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "x.log").symlink_to(tmp_path / "precious")
    append(str(tmp_path / "x.log"), "info", "e")
    assert not (tmp_path / "precious").exists()


@given(st.text(), st.dictionaries(st.text(), st.text() | st.floats() | st.integers() | st.none() | st.booleans()))
def test_every_line_is_one_line_of_json(event: str, fields: dict[str, object]) -> None:
    line = format_line("info", event, fields, 1751364000.5)
    assert "\n" not in line
    assert json.loads(line)["event"] == event or "event" in fields


def test_a_huge_field_cannot_break_the_line(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    append(str(file), "info", "e", **{f"f{n}": "ä" * 1000 for n in range(20)})
    assert len(file.read_bytes()) < MAX_LINE_BYTES
    assert json.loads(file.read_text())["truncated"] is True


def _write_many(file: str, number: int) -> None:
    for count in range(100):
        append(file, "info", "e", writer=number, count=count, padding="x" * 500)


def test_lines_of_several_processes_never_mix(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(str(file), n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(20)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len({(line["writer"], line["count"]) for line in lines}) == 400
