"""Handle each event once, even if the hook is installed twice: the first process claims it by a file."""

from __future__ import annotations

import os
import time

IDENTIFIED_SECONDS = 60.0
"""How far apart two installations of one hook may handle an event that has the host's id of the prompt."""
UNIDENTIFIED_SECONDS = 2.0
"""The same for an event without an id: two events with the same payload may be different ones."""
MAX_CLAIM_AGE_SECONDS = 3600.0


def claim_event(run: str, event: str, session: str, prompt_id: str, payload: bytes) -> bool:
    """Claim the event for this process; False if another one has (the hook is installed twice). Raises OSError.

    `prompt_id`: the host's id of the prompt, '' for none; `payload`: what identifies the event then.
    """
    if not session:  # No host omits it; without one a repetition looks like a second question.
        return True
    from binascii import crc32

    window = IDENTIFIED_SECONDS if prompt_id else UNIDENTIFIED_SECONDS
    key = f"{session}\n{prompt_id}".encode("utf-8", "replace") if prompt_id else payload
    stem = f"{run}/once/{event}-{crc32(key):08x}-{len(key)}-"
    now = time.time()
    slot = int(now / window)
    try:
        # The other installation may have run at the end of the previous slot.
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


def delete_old_claims(run: str) -> None:
    """Delete claims so old that no other hook can meet them. Never raises."""
    try:
        with os.scandir(f"{run}/once") as claims:
            for claim in claims:
                if time.time() - claim.stat().st_mtime > MAX_CLAIM_AGE_SECONDS:
                    os.unlink(claim.path)
    except OSError:
        return
