"""Read an entry right before a hook prints it, so that no deleted or edited entry is shown."""

from __future__ import annotations

import os
import stat

from ..runtime.layout import ALWAYS_LOAD, is_conflict_copy, special_folder
from ..vault.evidence import strip_evidence
from ..vault.header import UNREADABLE, UNREADABLE_STATUS, is_open, out_of_use, skim
from ..vault.project import project_of_note
from ..vault.statuses import is_in_use, meant_status

READ_LIMIT_BYTES = 256 * 1024
TRUE = ("true", "yes", "on")
_DATALESS = 0x40000000  # macOS SF_DATALESS: a cloud client has the content, this disk does not.


class EntryFile:
    """One markdown file of the vault, with the fields that `vault.render` asks for."""

    @property
    def is_in_use(self) -> bool:
        """Whether its status is one of entries in use."""
        return self.status != "unreadable" and is_in_use(self.status)

    def __init__(self, path: str, text: str) -> None:
        fields, self.body = skim(text)
        self.path = path
        """Relative to the vault."""
        self.slug = fields.get("slug") or fields.get("name") or path.rsplit("/", 1)[-1].removesuffix(".md")
        self.kind = fields.get("kind", "")
        self.confidence = fields.get("confidence", "")
        # What is said in a way that is not read here may say that it is not active, or another project's.
        self.status = out_of_use(path, text) or (
            UNREADABLE_STATUS if UNREADABLE in fields else meant_status(fields.get("status", "active").lower())
        )
        self.always_load = fields.get("always_load", "").lower() in TRUE or special_folder(path) == ALWAYS_LOAD
        self.project = project_of_note(path, fields.get("project", ""), fields.get("group", ""))
        occurrences = fields.get("occurrences", "")
        self.occurrences = int(occurrences) if occurrences.isdecimal() and len(occurrences) < 10 else 1
        self.guard = fields.get("guard", "").lower()
        self.priority = fields.get("priority", "")
        self.created = fields.get("created", "") or fields.get("date", "")
        self.updated = fields.get("updated", "")
        self.surfaced_at = fields.get("surfaced_at", "")
        self.session = ""
        self.is_whole = True
        """False when the file is longer than READ_LIMIT_BYTES."""
        self.excerpt = strip_evidence(self.body)
        self.is_mined = self.excerpt != self.body and "source" not in fields
        """Whether it was made of what somebody said in a session: `source` is a list then, which is not read here."""


def read_entry_file(vault: str, path: str) -> EntryFile | None:
    """Read the entry at `path` in `vault`; None when it is no file, outside the vault or not on this disk."""
    absolute = f"{vault}/{path}"
    try:
        real = os.path.realpath(absolute)
        if real != absolute and not real.startswith(os.path.realpath(vault) + "/"):
            return None
        if getattr(os.stat(real), "st_flags", 0) & _DATALESS:
            return None
        # O_NONBLOCK: a named pipe called x.md must not hang the reader.
        with open(os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(READ_LIMIT_BYTES)
    except (OSError, ValueError):
        return None
    text = data.decode("utf-8", "replace")
    if len(data) == READ_LIMIT_BYTES and is_open(text):
        return None  # Its header goes on: whose it is, and whether it is active, is not known.
    entry = EntryFile(path, text.replace("\r\n", "\n"))
    entry.is_whole = len(data) < READ_LIMIT_BYTES
    return entry


def is_entry_name(name: str) -> bool:
    """Whether a file of this name is an entry: markdown, not hidden, not a conflict copy of a sync client."""
    return name.endswith(".md") and name[0] not in "._" and not is_conflict_copy(name)
