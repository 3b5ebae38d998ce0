"""What a session already holds: acting once per event, and not printing an entry twice."""

from __future__ import annotations

import os
import time

MOMENT_SECONDS = 60.0
"""Two installations of one hook run within this time; for an event with the host's id of the prompt."""
UNNAMED_SECONDS = 2.0
"""The same for an event that carries none: its payload is all there is to tell two events apart."""
SWEEP_AFTER_SECONDS = 3600.0


def is_first(run: str, event: str, session: str, moment: str, payload: bytes) -> bool:
    """False when this very event was already acted upon (the hook is installed twice). Raises OSError."""
    if not session:  # No host leaves it out; then nothing tells a repetition from a second question.
        return True
    from binascii import crc32

    window = MOMENT_SECONDS if moment else UNNAMED_SECONDS
    key = f"{session}\n{moment}".encode("utf-8", "replace") if moment else payload
    stem = f"{run}/once/{event}-{crc32(key):08x}-{len(key)}-"
    now = time.time()
    slot = int(now / window)
    try:
        # The other installation may have run just before the clock went over to this slot.
        if now - os.stat(f"{stem}{slot - 1}").st_mtime < window:
            return False
    except FileNotFoundError:
        pass
    return _claim(run, f"{stem}{slot}")


def _claim(run: str, name: str) -> bool:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        os.close(os.open(name, flags, 0o600))
    except FileExistsError:
        return False
    except FileNotFoundError:
        os.makedirs(f"{run}/once", 0o700, exist_ok=True)
        return _claim(run, name)
    return True


def sweep(run: str) -> None:
    """Delete claims that no hook can ask for any more. Never raises."""
    try:
        with os.scandir(f"{run}/once") as claims:
            for claim in claims:
                if time.time() - claim.stat().st_mtime > SWEEP_AFTER_SECONDS:
                    os.unlink(claim.path)
    except OSError:
        return


def injected_path(harness: str, session: str) -> str:
    """The file that lists, one vault-relative path a line, what was put before the session's model."""
    return f"{harness}/injected-{session}"


def read_injected(harness: str, session: str) -> set[str]:
    """Vault-relative paths of the entries the session holds."""
    try:
        with open(injected_path(harness, session), "rb") as file:
            return set(file.read().decode("utf-8", "surrogateescape").split("\n")) - {""}
    except OSError:
        return set()


def add_injected(harness: str, session: str, paths: list[str]) -> None:
    """Note that the session now holds `paths`. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(injected_path(harness, session), flags, 0o600)
    try:
        os.write(descriptor, "".join(f"{path}\n" for path in paths).encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)


def forget_injected(harness: str, session: str) -> None:
    """The session's context was compacted or cleared: it holds nothing any more."""
    try:
        os.truncate(injected_path(harness, session), 0)
    except FileNotFoundError:
        return
