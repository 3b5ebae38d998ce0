"""Find an entry by a name that a command, the console or an agent gives (path, slug, title), or by its fingerprint."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ..pipelines.review import former_path
from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import EntryInvalid, EntryNotFound, UsageError
from ..runtime.layout import ARCHIVE, INCUBATOR, META, special_folder
from ..runtime.normal_form import composed
from ..vault.entry import ACTIVE, Entry
from ..vault.frontmatter import require_sound
from ..vault.store import VaultStore
from ..vault.wording import one_line

LIVING = frozenset({"active", "pending", "inbox", "incubating", "resolved"})
MOST_NAMED = 8
"""How many matching entries an error names."""
MOST_MEANT, MOST_COMPARED, LEAST_ALIKE = 3, 2_000, 0.75


def refuse_secrets(*names: str | None) -> None:
    """Raise UsageError if a name that a note, its kind or its folder is given holds a secret: names are not scrubbed.

    They are written in small letters, in which some keys have no mark.
    """
    for name in filter(None, names):
        if any(scrub(text, Policy.SECRETS) != text for text in (name, name.upper())):
            raise UsageError("a name must not hold a secret: choose another")


def find_entry(store: VaultStore, name: str, *, living_first: bool = True) -> Entry:
    """Find the entry at a path (relative, absolute, after `~/`, without .md), or with this slug or title, or the
    superseded entry that had this path or slug.

    With `living_first`, an active entry precedes others of its name. Raises EntryNotFound, EntryInvalid (the only match
    cannot be read), PathRefused, and UsageError, listing the matches, if there are several.
    """
    try:
        path = _path_called(store, name)
    except EntryNotFound:
        if not (superseded := [*store.readable(_of_superseded(store, _relative(store, name)))]):
            raise
        return _only(store, name, superseded)
    if path is not None:
        return store.read(path)
    named = _of_slug(store, name)
    found = [*store.readable(named)]
    if not found and len(named) == 1:
        store.read(named[0])  # Raises why it cannot be read.
    found = found or _of_title(name, store.readable()) or [*store.readable(_of_superseded(store, name))]
    living = [entry for entry in found if is_living(entry)] if living_first else []
    # A proposal to replace an entry often has its name.
    return _only(store, name, [entry for entry in living if entry.effective_status == ACTIVE] or living or found)


def resolve_entry(store: VaultStore, name: str) -> str:
    """Return the path of an active entry, found as by `find_entry`; at a path, whatever note is there.

    Raises as `find_entry`, and EntryInvalid if the only match is no longer active.
    """
    path = _path_called(store, name)
    return path if path is not None else require_living(store, find_entry(store, name).path).path


def is_living(entry: Entry) -> bool:
    """Whether the entry is in use or may come to be."""
    return entry.effective_status in LIVING and entry.special != ARCHIVE


def require_living(store: VaultStore, path: str) -> Entry:
    """Return the entry if it may be superseded. Raises EntryNotFound, EntryInvalid."""
    try:
        entry = store.read(path)
    except EntryNotFound as error:
        raise EntryNotFound(f"{error}: `memory list` shows what there is") from error
    require_sound(entry.text, path)
    if not is_living(entry):
        raise EntryInvalid(f"{path} can't be evolved: its status is {entry.effective_status}")
    return entry


def _path_called(store: VaultStore, name: str) -> str | None:
    """Return the path of the note at this path; None if the name is not a path. Raises EntryNotFound, PathRefused, and
    UsageError for an empty name, as from an unset shell variable."""
    if not name.strip():
        raise UsageError("which entry? give its path, its file name, or its title: `memory list` shows what there is")
    relative = _relative(store, name)
    for path in (relative, f"{relative}.md"):
        # For a note in the vault's top folder, the path is also a file name.
        if path.endswith(".md") and ("/" in path or path == relative) and store.exists(path):
            return path
    wanted = f"{composed(relative.removesuffix('.md'))}.md"
    if "/" not in wanted:
        return None
    for path in () if wanted.isascii() else store.walk():  # macOS normalises accents differently.
        if composed(path) == wanted:
            return path
    if " " in relative and not relative.endswith(".md"):  # A title may contain a slash, too.
        return None
    raise _not_found(store, name)


def _of_slug(store: VaultStore, name: str) -> list[str]:
    slug = composed(name.removesuffix(".md"))
    return [path for path in store.walk() if f"/{composed(path)}".endswith((f"/{slug}.md", f"/{slug}/_index.md"))]


def _of_superseded(store: VaultStore, name: str) -> list[str]:
    """Return the archived path of what was superseded at this path or with this slug."""
    wanted = f"/{composed(name.removesuffix('.md'))}.md"
    return [
        path for path in store.walk() if (was := former_path(path)) is not None and f"/{composed(was)}".endswith(wanted)
    ]


def _of_title(name: str, entries: Iterable[Entry]) -> list[Entry]:
    wanted = _as_title(name)
    return [entry for entry in entries if _as_title(entry.title) == wanted] if wanted else []


def _as_title(text: str) -> str:
    """Ignore a final full stop: lists print or cut it."""
    return composed(one_line(text)).casefold().rstrip(".")


def _only(store: VaultStore, name: str, found: Sequence[Entry]) -> Entry:
    if not found:
        raise _not_found(store, name)
    if len(found) > 1:
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        paths = ", ".join(entry.path for entry in found[:MOST_NAMED])
        raise UsageError(f"{name} is the name of several entries; give the path: {paths}{more}")
    return found[0]


def _not_found(store: VaultStore, name: str) -> EntryNotFound:
    wanted = composed(name.removesuffix(".md").rpartition("/")[2]).casefold()
    living = (path for path in store.walk() if special_folder(path) not in (ARCHIVE, META, INCUBATOR))
    slugs = {path.removesuffix(".md").rpartition("/")[2]: None for path in living}
    begun = [slug for slug in slugs if wanted and composed(slug).casefold().startswith(wanted)]
    # Comparing takes about 0.1 ms a name.
    near = begun or get_close_matches(wanted, [*slugs][:MOST_COMPARED], n=MOST_MEANT, cutoff=LEAST_ALIKE)
    meant = f"; did you mean {' or '.join(near[:MOST_MEANT])}?" if near else ": `memory list` shows what there is"
    return EntryNotFound(f"there is no entry {shlex.quote(name) if ' ' in name else name}{meant}")


def _relative(store: VaultStore, name: str) -> str:
    named = os.path.expanduser(name) if name.startswith("~/") else name
    for root in (str(store.vault), str(store.vault.resolve())):
        if named.startswith(root.rstrip("/") + "/"):
            return named[len(root.rstrip("/")) + 1 :]
    return name


def find_by_fingerprint(store: VaultStore, fingerprint: str) -> list[Entry]:
    """Find every entry with this fingerprint, whatever its status and folder, sorted by path.

    YAML is parsed only where the bytes of the fingerprint occur. A file that vanishes or cannot be read is skipped.
    Raises VaultUnavailable when the vault is gone.
    """
    candidates = sorted(path for path, data in store.contents() if fingerprint.encode("ascii") in data)
    found = [entry for entry in store.readable(candidates) if entry.fingerprint == fingerprint]
    store.require_vault()  # A vault that was unmounted half-way has not been searched.
    return found
