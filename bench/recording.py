"""Records the terminal session of docs/how-to/first-session.md: real commands in a fresh home, on their own terminal.

    python -m memoryvault.bench.recording       makes the page's block and docs/session.cast anew (`make recording`)

Nothing of what is shown is written by hand. The home folder's path is shown as `~`; of a bar that moves only its last
state stands in the block, and all of them in the cast (asciinema, version 2).
"""

import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HISTORY = ROOT / "demo" / "session.jsonl"
CAST = ROOT / "docs" / "session.cast"
PAGE = ROOT / "docs" / "how-to" / "first-session.md"
BEGIN, END = "<!-- session -->\n```text\n", "```\n<!-- /session -->"
COLUMNS, ROWS = 120, 40
ANSWERED = "[y/N] "
COMMAND_SECONDS = 180.0
SCENE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("memory init", ("y", "", "")),
    ("memory doctor", ()),
    ("memory recall --project shop 'which day is good for putting the new version into production?'", ()),
    ("memory uninstall", ()),
)
"""Each command, and what is typed at its questions: go ahead, and no to both consents by Return alone."""


@dataclass(frozen=True)
class TerminalOutput:
    """What a terminal was given: seconds since the beginning, and text."""

    seconds: float
    text: str


def record() -> list[TerminalOutput]:
    """Play the scene in a home folder that is made for it and removed. Raises RuntimeError when a command fails."""
    with tempfile.TemporaryDirectory(prefix="memoryvault-session-") as folder:
        home = os.path.realpath(folder)
        history = Path(home) / ".claude" / "projects" / "-home-dev-shop" / "3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11.jsonl"
        history.parent.mkdir(parents=True)
        history.write_bytes(HISTORY.read_bytes())
        (Path(home) / "Notes" / ".obsidian").mkdir(parents=True)
        env = {
            "HOME": home,
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "COLUMNS": str(COLUMNS),
        }
        started = time.monotonic()
        shown: list[TerminalOutput] = []
        try:
            for command, answers in SCENE:
                shown.append(TerminalOutput(time.monotonic() - started, f"$ {command}\r\n"))
                shown += _play(command, answers, env, started)
        finally:
            subprocess.run(["memory", "uninstall"], env=env, cwd=home, capture_output=True, check=False)
        return _without(home, shown)


def text_of(shown: list[TerminalOutput]) -> str:
    """What is left on the screen: of a line that was drawn again its last state."""
    lines = "".join(one.text for one in shown).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rsplit("\r", 1)[-1].rstrip() for line in lines).rstrip() + "\n"


def shape_of(text: str) -> str:
    """The text without what differs from run to run: figures, and names made of them."""
    text = re.sub(r"-[0-9a-f]{16}\b", "-ID", text)
    text = re.sub(r", \d+ without a vector\b", "", text)  # They are still being embedded: on a busy machine for longer.
    text = re.sub(r"\d+(?:[.,:-]\d+)*", "N", text)
    return re.sub(r" {2,}", "  ", re.sub(r"\[#* *\] +", "[] ", text))


def recorded() -> str:
    """The block as the page has it."""
    return PAGE.read_text("utf-8").split(BEGIN, 1)[1].split(END, 1)[0]


def write(shown: list[TerminalOutput]) -> None:
    """The page's block and the cast."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{text_of(shown)}{END}{rest.partition(END)[2]}", "utf-8")
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "MemoryVault: from nothing to a memory"}
    events = [json.dumps([round(one.seconds, 3), "o", one.text], ensure_ascii=False) for one in shown]
    CAST.write_text("\n".join([json.dumps(header), *events]) + "\n", "utf-8")


def _play(command: str, answers: tuple[str, ...], env: Mapping[str, str], started: float) -> list[TerminalOutput]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], env=dict(env), cwd=env["HOME"], stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown: list[TerminalOutput] = []
    left = list(answers)
    seen = ""
    until = time.monotonic() + COMMAND_SECONDS
    try:
        while select.select([ours], [], [], max(0.0, until - time.monotonic()))[0]:
            try:
                data = os.read(ours, 65536)
            except OSError:  # Linux says so of a terminal whose other side is closed.
                data = b""
            if not data:
                break
            text = data.decode("utf-8", "replace")
            shown.append(TerminalOutput(time.monotonic() - started, text))
            seen += text
            if seen.endswith(ANSWERED) and left:
                seen = ""
                os.write(ours, f"{left.pop(0)}\n".encode())
        if process.wait(max(1.0, until - time.monotonic())) != 0:
            raise RuntimeError(f"{command} failed:\n{text_of(shown)}")
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return shown


def _without(home: str, shown: list[TerminalOutput]) -> list[TerminalOutput]:
    """The same without the folder's real path; a path that came in two pieces is put together first."""
    if "".join(one.text for one in shown).count(home) != sum(one.text.count(home) for one in shown):
        shown = [TerminalOutput(shown[0].seconds, "".join(one.text for one in shown))]
    return [TerminalOutput(one.seconds, one.text.replace(home, "~")) for one in shown]


if __name__ == "__main__":
    write(record())
