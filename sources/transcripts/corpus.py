"""Find the transcripts of old sessions on disk, and describe each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...runtime.json_text import parse_json
from .claude import transcript_files
from .compressed import last_written, open_bytes, transcript_status
from .hosts import HOSTS, host_of, open_transcript
from .lines import complete_lines

IDENTITY_BYTES = 64 << 10
"""Most bytes of the first line that go into a transcript's identity; they do not change while the file grows."""
DEFAULT_CLEANUP_DAYS = 30
"""Claude Code deletes transcripts this many days after the last write, unless its settings say otherwise."""
MAX_SETTINGS_BYTES = 1 << 20


@dataclass(frozen=True)
class Transcript:
    """One session of a person, on disk."""

    path: Path
    host: str
    session: str
    identity: str
    """`<host>-<16 hex digits>`, a hash of the session's id and the file's first line: the same for a copy."""
    size: int
    """Bytes."""
    modified: float
    """Unix seconds."""
    cwd: str
    """The folder that the session ran in; '' when unknown."""


@dataclass(frozen=True)
class TranscriptSearch:
    """The result of a search for transcripts."""

    transcripts: tuple[Transcript, ...]
    """Oldest first. Of several copies of one session, the longest."""
    headless: int
    """Number of sessions that a program ran; they are never mined."""
    unreadable: tuple[tuple[Path, str], ...]
    """Files that cannot be read, each with the reason."""


def find_transcripts(places: Iterable[tuple[str | None, Path]]) -> TranscriptSearch:
    """Find the sessions under each (host or None for any, folder). A missing folder has none."""
    longest: dict[str, Transcript] = {}
    unreadable: list[tuple[Path, str]] = []
    headless = 0
    for host, root in places:
        for path in files_of(host, root):
            try:
                transcript = describe(path, host)
            except OSError as error:
                unreadable.append((path, error.strerror or type(error).__name__))
                continue
            if transcript is None:
                headless += 1
                continue
            known = longest.get(transcript.identity)
            if known is None or _preference(transcript) > _preference(known):
                longest[transcript.identity] = transcript
    ordered = sorted(longest.values(), key=lambda each: (each.modified, each.identity))
    return TranscriptSearch(tuple(ordered), headless, tuple(unreadable))


def newest_transcript(
    places: Iterable[tuple[str | None, Path]], is_wanted: Callable[[Transcript], bool]
) -> Transcript | None:
    """Return the wanted session under these folders that was written last; None if there is none."""
    files: list[tuple[float, Path, str | None]] = []
    for host, root in places:
        for path in files_of(host, root):
            with suppress(OSError):
                files.append((last_written(path), path, host))
    for _, path, host in sorted(files, key=lambda each: each[:2], reverse=True):
        with suppress(OSError):
            transcript = describe(path, host)
            if transcript is not None and is_wanted(transcript):
                return transcript
    return None


def _preference(transcript: Transcript) -> tuple[int, float, str]:
    return transcript.size, transcript.modified, str(transcript.path)


def files_of(host: str | None, root: Path) -> Iterator[Path]:
    """Yield the transcripts under the folder of a host, or under any folder; none if it is missing."""
    if not root.is_dir():
        return iter(())
    if host is not None:
        return HOSTS[host].find(root)
    # For any folder, such as a backup, the rules of Claude Code's own folder hold.
    return transcript_files(root)


def describe(path: Path, host: str | None = None) -> Transcript | None:
    """Describe the session in a file; None when it is empty, or no person typed in it. Raises OSError."""
    status = transcript_status(path)
    host = host or host_of(path)
    first = next(iter(complete_lines(path, 0, IDENTITY_BYTES)), None)
    if host is None or first is None:
        return None
    header = open_transcript(path, 0, host).header()
    if header.headless:
        return None
    beginning = first.data
    if first.too_long:
        with open_bytes(path) as file:
            beginning = file.read(IDENTITY_BYTES)
    digest = hashlib.blake2b(header.session.encode("utf-8", "replace"), digest_size=8)
    digest.update(b"\0" + beginning.rstrip())
    identity = f"{host}-{digest.hexdigest()}"
    return Transcript(path, host, header.session, identity, status.size, status.modified, header.cwd or "")


def claude_cleanup_days(config_dir: Path) -> int:
    """Return `cleanupPeriodDays` of Claude Code's settings, or its default where it is missing or unreadable."""
    with suppress(OSError, ValueError):
        with (config_dir / "settings.json").open("rb") as file:
            value = parse_json(file.read(MAX_SETTINGS_BYTES))
        days = value.get("cleanupPeriodDays") if isinstance(value, dict) else None
        if isinstance(days, int | float) and not isinstance(days, bool) and 0 <= days < 1e6:
            return int(days)
    return DEFAULT_CLEANUP_DAYS
