"""List the agent hosts whose transcripts can be read.

A new host needs a module with a reader, a row here, and its folder in `Settings.session_folders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...vault.marker import is_session_id
from . import antigravity, claude, codex, copilot, gemini, opencode
from .lines import as_text, complete_lines, parse_object
from .reader import TranscriptReader

SNIFFED_LINES = 20


@dataclass(frozen=True)
class TranscriptHost:
    name: str
    reader: type[TranscriptReader]
    find: Callable[[Path], Iterator[Path]]
    """Finds the sessions under a root."""
    named: tuple[str, ...]
    """Glob patterns, relative to the root, for the transcript of `{session}`."""
    record_types: frozenset[str]
    """Values of a record's `type` that only this host writes."""
    header_field: str = ""
    """A field that only this host's headers have, for hosts whose record types are not unique."""


def _files(pattern: str) -> Callable[[Path], Iterator[Path]]:
    """Return a function that yields the files of this pattern under a root, in order of name."""
    return lambda root: (path for path in sorted(root.glob(pattern)) if path.is_file())


HOSTS: Mapping[str, TranscriptHost] = {
    host.name: host
    for host in (
        TranscriptHost(
            "claude",
            claude.ClaudeReader,
            claude.transcript_files,
            ("*/{session}.jsonl",),
            frozenset({"user", "assistant", "file-history-snapshot", "queue-operation", "summary", "attachment"}),
        ),
        TranscriptHost(
            "codex",
            codex.CodexReader,
            codex.transcript_files,
            ("*/*/*/rollout-*-{session}.jsonl", "rollout-*-{session}.jsonl"),
            frozenset({"session_meta", "event_msg", "response_item", "turn_context"}),
        ),
        TranscriptHost(
            "copilot",
            copilot.CopilotReader,
            _files("*/events.jsonl"),
            ("{session}/events.jsonl",),
            frozenset({"session.start", "user.message", "assistant.message", "hook.start"}),
        ),
        TranscriptHost(
            "antigravity",
            antigravity.AntigravityReader,
            _files(f"antigravity*/brain/*/{antigravity.LOG}"),
            (f"antigravity*/brain/{{session}}/{antigravity.LOG}",),
            frozenset({"USER_INPUT", "PLANNER_RESPONSE", "CONVERSATION_HISTORY", "CHECKPOINT"}),
        ),
        TranscriptHost(
            "opencode", opencode.OpenCodeReader, opencode.transcript_files, (), frozenset({opencode.HEADER})
        ),
        TranscriptHost(
            "gemini",
            gemini.GeminiReader,
            _files("*/chats/session-*.jsonl"),  # Those of sub-agents lie in other folders.
            ("*/chats/session-*-{session:.8}.jsonl",),
            frozenset({"gemini"}),
            header_field="projectHash",
        ),
    )
}


def host_of(path: Path, lines: int | None = SNIFFED_LINES) -> str | None:
    """Return the host that wrote a transcript, judged by its first `lines` (None: all); None if no record is known.

    Raises OSError.
    """
    for line in islice(complete_lines(path), lines):
        record = None if line.too_long else parse_object(line.data)
        kind = as_text(record.get("type")) if record else ""
        for host in HOSTS.values():
            if kind in host.record_types or (record and host.header_field and host.header_field in record):
                return host.name
    return None


def find_session(session: str, host: str, roots: Iterable[Path]) -> Path | None:
    """Find the transcript of a session by its id: of several the last written one; None if there is none."""
    if host not in HOSTS or not is_session_id(session):
        return None
    patterns = [pattern.format(session=session) for pattern in HOSTS[host].named]
    found = [path for root in roots for pattern in patterns for path in root.glob(pattern) if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def holds_records(path: Path) -> bool:
    """Whether any line is a JSON object. Raises OSError."""
    return any(not line.too_long and parse_object(line.data) is not None for line in complete_lines(path))


def open_transcript(path: Path, offset: int = 0, host: str | None = None, read_until: int = 0) -> TranscriptReader:
    """Return the reader of a session; its arguments are those of TranscriptReader.

    A host that is neither given nor recognised is taken for Claude Code, whose reader accepts unknown records.
    Raises KeyError for an unknown host, OSError for a file that can't be read.
    """
    return HOSTS[host or host_of(path) or "claude"].reader(path, offset, read_until)
