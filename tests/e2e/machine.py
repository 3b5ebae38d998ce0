"""A developer's machine in a temporary folder: home, project, vault, the real client."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from ...index.client import RecallClient, ServiceUnavailable
from ...runtime.layout import StatePaths, config_path, state_root, vault_id
from ...vault.marker import Marker, list_markers, marker_path, read_marker
from ..support.files import put
from .install_client import client_binary
from .terminal import Terminal

API_KEY = "sk-ant-stand-in-" + "0" * 40
APPROVED_KEY_CHARACTERS = 20
POLL_SECONDS = 0.05
RULE = "Always run the linter before you push to the main branch."
QUESTION = "Do I have to run the linter before I push to main?"
PROPOSAL = "Releases are cut from the trunk on Mondays."
MEMORY = Path(sys.executable).parent / "memory"
FAILING = "echo \"Error: Cannot find module '@shop/ui'\" >&2; exit 1"
MISSING = "Error: Cannot find module '@shop/ui'"
TYPING_PAUSE_SECONDS = 0.5
"""The client takes an Enter that follows sooner for a part of pasted text."""

SETTINGS_BEFORE = """{
    "theme":   "dark",
    "permissions": { "deny": ["WebFetch"] },
    "hooks": {
        "PreCompact": [
            {"hooks": [{"type": "command", "command": "true"}]}
        ]
    }
}
"""
"""A user's own settings, with a hook and an unusual formatting."""


def model_env(url: str) -> dict[str, str]:
    """What has Claude Code ask this model and nobody else."""
    switches = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER")
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": API_KEY, **dict.fromkeys(switches, "1")}


class Machine:
    """Use `with Machine(model_url) as machine:`; at its end all its files and processes are removed."""

    def __init__(self, model_url: str, extra_env: Mapping[str, str] | None = None) -> None:
        # Short names, and not below the test runner's folder: a socket's path has 104 bytes.
        self.root = Path(tempfile.mkdtemp(prefix="mve-", dir="/tmp")).resolve()
        self.home = self.root / "h"
        self.project = self.root / "orchard"
        self.vault = self.home / "Notes" / "MemoryVault"
        self.temporary = self.root / "tmp"
        self.claude_folder = self.home / ".claude"
        self.settings_file = self.claude_folder / "settings.json"
        self._model_url = model_url
        self._extra_env = dict(extra_env or {})

    def __enter__(self) -> Self:
        for folder in (self.home, self.project, self.vault.parent, self.temporary, self.claude_folder):
            folder.mkdir()
        self.settings_file.write_text(SETTINGS_BEFORE)
        answered = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [API_KEY[-APPROVED_KEY_CHARACTERS:]], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(answered))
        return self

    def __exit__(self, *error: Any) -> None:
        self.end_processes()
        shutil.rmtree(self.state.sockets, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def state(self) -> StatePaths:
        """Where MemoryVault keeps this machine's state."""
        env = self.base_env
        return StatePaths(os.path.join(state_root(env), vault_id(str(self.vault))))

    @property
    def base_env(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            # It would be unpacked for each machine.
            "MEMORY_REFLECTION_SECOND_MODEL": "false",
        }

    def run(
        self, *argv: str | Path, env: Mapping[str, str], cwd: Path | None = None, stdin: str = "", seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the project. An exit code other than 0 fails the test."""
        done = subprocess.run(
            argv,
            env=env,
            cwd=cwd or self.project,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            input=stdin,
        )
        assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.log()}"
        return done

    def memory(self, *arguments: str) -> str:
        return self.run(MEMORY, *arguments, env=self.base_env).stdout

    def work(self) -> None:
        self.memory("service", "worker", "--until-idle")

    def marker(self) -> Marker:
        """Of the one session that is recorded."""
        (session,) = list_markers(self.state.markers)
        marker = read_marker(marker_path(self.state.markers, session))
        assert marker is not None
        return marker

    def learned(self, words: str, host: str) -> None:
        """The one entry that holds them was said in a session of the host; if it waits, the person confirms it."""
        (entry,) = self.entries_holding(words.rstrip("."))
        assert f"host: {host}" in self.entries()[entry]
        if "_review" in entry:  # Without the model.
            self.memory("review", "--decide", f"{Path(entry).stem}=approve")
            self.work()

    def proposed(self) -> None:
        """PROPOSAL waits for the user, and is known for an agent's."""
        (path,) = self.entries_holding(PROPOSAL)
        assert path.startswith("personal-private/_review/")
        assert "source: agent" in self.entries()[path]

    def cured(self, command: str, symptom: str, cure: str) -> None:
        """A note as the reflection of a session writes it, indexed."""
        note = self.vault / "personal-private" / "_inbox" / f"{command}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        text = f"`{command}` failed with “{symptom}”; it passed after `{cure}`"
        note.write_text(f"---\nkind: fix\nstatus: inbox\n---\n\n{text}\n")
        self.memory("vault", "reindex")

    def init(self, host: str = "claude", *, autostart: bool = True) -> None:
        if not autostart:
            self.configure("[memory]\nautostart = false\n")
        self.memory("init", "--yes", "--vault", str(self.vault), "--host", host)

    def configure(self, settings: str) -> None:
        """Replace MemoryVault's settings file; `init` adds the vault's path to what it finds."""
        put(Path(config_path(self.base_env)), settings)

    def open_client(self) -> ClientSession:
        return ClientSession(self)

    def client_env(self) -> dict[str, str]:
        return {
            **self.base_env,
            "TERM": "screen-256color",
            **model_env(self._model_url),
            **self._extra_env,
        }

    def entries(self) -> dict[str, str]:
        """Return the text of every markdown file by its vault-relative path."""
        return {str(path.relative_to(self.vault)): path.read_text() for path in sorted(self.vault.rglob("*.md"))}

    def entries_holding(self, words: str) -> list[str]:
        return [path for path, text in self.entries().items() if words.lower() in text.lower()]

    def let_time_pass(self, seconds: float) -> None:
        """Set the times of all transcripts and session markers `seconds` back."""
        now = time.time()
        transcripts = [
            *self.claude_folder.glob("projects/**/*.jsonl"),
            *self.home.glob(".codex/sessions/**/*.jsonl"),
            *self.home.glob(".gemini/tmp/*/chats/*.jsonl"),
        ]
        for path in (*transcripts, *Path(self.state.markers).iterdir()):
            os.utime(path, (now - seconds, now - seconds))

    def log(self) -> str:
        """MemoryVault's own log, for a failure's message."""
        # Only in the state folders: a client's folders come and go.
        states = Path(state_root(self.base_env))
        return "\n".join(path.read_text() for path in states.glob("*/log/memoryvault.log"))

    def log_records(self) -> list[dict[str, Any]]:
        """Return the log."""
        return [json.loads(line) for line in self.log().splitlines() if line.strip()]

    def hooks(self) -> list[tuple[str, str]]:
        """Return (hook, result) of each hook in the log."""
        return [(record["hook"], record["result"]) for record in self.log_records() if record.get("event") == "hook"]

    def save(self, name: str, words: str, *options: str) -> None:
        self.memory("save", "preferences", name, "--body", words, *options)
        self.work()

    def wait_for_warm_recall(self) -> None:
        """Wait until the recall service, which the session's first hook starts, holds its model."""
        self.wait_until(self._recall_is_warm, "the recall service to hold its model", seconds=45)

    def _recall_is_warm(self) -> bool:
        try:
            with RecallClient(self.state.recall_socket) as client:
                answer = client.ping()
        except ServiceUnavailable:
            return False
        return bool(answer.get("model")) and not answer.get("loading")

    def wait_until(self, condition: Callable[[], object], what: str, *, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds:g} s for {what}; the log was:\n{self.log()}")
            time.sleep(POLL_SECONDS)

    def end_processes(self) -> None:
        """Kill what was started on this machine and still runs: a worker, the recall service."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + 5
        while self.processes() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def processes(self) -> list[int]:
        """Running processes whose environment or command names a folder of this machine."""
        return [pid for pid, text in _process_texts() if str(self.root) in text]


class Conversation:
    """An interactive client in a terminal: `with … as client:` its prompt is there."""

    prompt: ClassVar[str]
    """What the screen shows when words can be typed."""
    start_seconds: ClassVar[float] = 40
    pauses: ClassVar[int] = 2
    """Of TYPING_PAUSE_SECONDS, before an Enter and after the start."""

    def __init__(self, machine: Machine, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self._machine = machine
        self.terminal = Terminal(argv, env=env, cwd=machine.project, sockets=machine.root)

    def __enter__(self) -> Self:
        self.terminal.__enter__()
        try:
            seconds = self.start_seconds
            self.terminal.wait_until(lambda screen: self.prompt in screen, "the client's prompt", seconds=seconds)
        except BaseException:
            self.terminal.__exit__(None, None, None)
            raise
        self.pause(self.pauses)
        return self

    def __exit__(self, *error: Any) -> None:
        self.terminal.__exit__(*error)

    def pause(self, number: int) -> None:
        time.sleep(number * TYPING_PAUSE_SECONDS)

    def submit(self, words: str) -> None:
        """Type one line as a person does, and send it."""
        self.terminal.type(words)
        self.terminal.wait_until(lambda screen: words[:40] in screen, f"the typed words {words!r}")
        self.pause(self.pauses)
        self.terminal.press("Enter")


class ClientSession(Conversation):
    """Claude Code, from its first prompt to `exit` or `kill`."""

    prompt = "for shortcuts"
    pauses = 1

    def __init__(self, machine: Machine) -> None:
        self.id = str(uuid.uuid4())
        super().__init__(machine, [str(client_binary()), "--session-id", self.id], machine.client_env())

    def ask(self, text: str) -> None:
        """Submit and wait until the turn has ended, its Stop hooks included."""
        before = self.ended_turns()
        self.submit(text)
        self.wait_for_turn(before)

    def wait_for_turn(self, before: int) -> None:
        self._machine.wait_until(lambda: self.ended_turns() > before, "the end of the turn", seconds=20)

    def reject_tool(self, feedback: str) -> None:
        """Answer the permission dialog with its last choice and say what to do instead."""
        before = self.ended_turns()
        self.terminal.wait_until(lambda screen: "Do you want to proceed?" in screen, "the permission dialog")
        self.choose("❯ 3. No")
        self.terminal.press("Tab")
        self.terminal.wait_until(lambda screen: "tell Claude what to do differently" in screen, "the feedback field")
        self.submit(feedback)
        self.wait_for_turn(before)

    def choose(self, mark: str) -> None:
        """Move the cursor of a menu down until the screen shows `mark`."""
        for _ in range(5):
            if mark in self.terminal.screen():
                return
            self.terminal.press("Down")
            time.sleep(TYPING_PAUSE_SECONDS / 2)
        raise AssertionError(f"the menu has no {mark!r}:\n{self.terminal.screen()}")

    def exit(self) -> None:
        self.submit("/exit")
        self.terminal.wait_for_end()

    def kill(self) -> None:
        self.terminal.kill()

    def ended_turns(self) -> int:
        return sum(record.get("subtype") == "turn_duration" for record in self.records())

    def records(self) -> list[dict[str, Any]]:
        """The transcript so far; a half-written last line is left out."""
        found = list(self._machine.claude_folder.glob(f"projects/*/{self.id}.jsonl"))
        if not found:
            return []
        complete, _, _ = found[0].read_text().rpartition("\n")
        return [json.loads(line) for line in complete.splitlines() if line.strip()]

    def subagent_records(self) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for path in self._machine.claude_folder.glob(f"projects/*/{self.id}/subagents/*.jsonl")
            for line in path.read_text().splitlines()
        ]


def _process_texts() -> Iterator[tuple[int, str]]:
    """(pid, environment and command line as one text) of every other process that may be read."""
    proc = Path("/proc")
    if proc.is_dir():
        for folder in proc.iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                try:
                    texts = [(folder / name).read_text(errors="replace") for name in ("environ", "cmdline")]
                except OSError:
                    continue
                yield int(folder.name), " ".join(texts)
        return
    listing = subprocess.run(["ps", "-axEwwo", "pid=,command="], capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        pid, _, rest = line.strip().partition(" ")
        if pid.isdigit() and int(pid) != os.getpid():
            yield int(pid), rest
