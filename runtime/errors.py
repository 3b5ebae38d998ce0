"""The errors that a user can do something about, in one tree.

`str(error)` is one clear line which says what is wrong and what to do. The command prints that line on stderr and exits
with `exit_code`; anything outside this tree is a bug and keeps its traceback. Errors of one module are defined there.
"""

from __future__ import annotations


class MemoryVaultError(Exception):
    """Root of all errors that are reported to the user in one line."""

    exit_code = 1

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


class UsageError(MemoryVaultError):
    """The command was called with arguments that make no sense."""

    exit_code = 2


class SettingsError(MemoryVaultError):
    """A setting is unknown or has a value that is not allowed."""


class VaultUnavailable(MemoryVaultError):
    """The vault folder is missing, read-only, full, or another process has held its lock too long."""


class EntryExists(MemoryVaultError):
    """There is already a file at the path of the new entry."""


class EntryNotFound(MemoryVaultError):
    """There is no file at the path of the entry."""


class EntryInvalid(MemoryVaultError):
    """The text, or one of its fields, cannot be an entry."""


class EditConflict(MemoryVaultError):
    """The file on disk is no longer the one that was read; nothing was written."""


class PathRefused(MemoryVaultError):
    """The path is absolute, leaves the vault, or is not a name that every platform can store."""


class BoundaryRefused(MemoryVaultError):
    """A write outside the vault was not approved by the user."""


class OutsideUnavailable(MemoryVaultError):
    """A file outside the vault, such as Ideas.md, cannot be read or written; the vault itself is well."""


class IndexUnavailable(MemoryVaultError):
    """The index cannot be opened; deleting it is always safe."""


class QueueUnavailable(MemoryVaultError):
    """queue.db cannot be opened, is locked, or is damaged."""


class ModelUnavailable(MemoryVaultError):
    """The embedding model is not installed or its files are not the expected ones."""


class SchemaTooNew(MemoryVaultError):
    """The database was written by a newer version of MemoryVault."""


class WorkerRunning(MemoryVaultError):
    """Another worker serves this state folder; `holder` is its process, where that is known."""

    def __init__(self, holder: int | None) -> None:
        said = "a worker is already running for this state folder"
        if holder is not None:
            # SIGTERM drains. A service manager starts it again.
            said += (
                f" (pid {holder}); `kill {holder}` ends it when its jobs are done, "
                "`memory service remove` if it is a service"
            )
        super().__init__(said)
