"""What was made to survive a power cut."""

import os

import pytest


def record_syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes of the files and folders that are synced from now on, in order."""
    synced: list[int] = []
    sync = os.fsync

    def recorded(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    return synced
