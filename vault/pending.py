"""Which notes are pending, that is, wait for a decision of the user: by their paths alone, the same everywhere.

A proposal is a note in `_review`. A note there that asks about an idea is counted as a question, not as a proposal,
since the idea itself is counted, too. Nothing in an archive is pending.

Light module: hooks import it.
"""

from __future__ import annotations

import os

from ..runtime.layout import ARCHIVE, DEFAULT_GROUP, INBOX, INCUBATOR, REVIEW, TRASH, WATCHLIST, is_conflict_copy
from .wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PENDING_FOLDERS = {REVIEW: "proposals", INBOX: "inbox", INCUBATOR: "ideas", WATCHLIST: "patterns"}
"""The special folders of pending notes, each with the place under which its notes are counted."""
IDEA_NOTE = "_index.md"
INCUBATOR_FOLDER = f"{DEFAULT_GROUP}/{INCUBATOR}"
IDEAS_LIST = f"{DEFAULT_GROUP}/{REVIEW}/ideas-nobody-came-back-to.md"
"""Path of the question about several ideas at once."""
_STORABLE = {ord(character): "-" for character in '<>:"|?*\\'}
_QUESTION_PREFIX = f"{DEFAULT_GROUP}/{REVIEW}/surface-"
_MAX_SLUG_BYTES, _KEPT_CHARACTERS = 180, 40
"""Most characters of the slug, so that the rest fits into a file name's 200 bytes."""


def question_path(slug: str) -> str:
    """Return the path of the note that asks whether the idea may be put into Ideas.md; `slug`: name of its folder."""
    name, data = slug.translate(_STORABLE), slug.encode("utf-8", "surrogatepass")
    if name != slug or len(data) > _MAX_SLUG_BYTES:
        from binascii import crc32

        # "What now?" and "What now*" are two ideas: the answer to one must not take away the question about the other.
        name = f"{name[:_KEPT_CHARACTERS]}-{crc32(data):08x}"
    return f"{_QUESTION_PREFIX}{name}.md"


def is_idea_path(path: str) -> bool:
    """Whether this is the note of an idea in the incubator, not in its archive."""
    folder, _, name = path.rpartition("/")
    parent, _, slug = folder.rpartition("/")
    return name == IDEA_NOTE and parent == INCUBATOR_FOLDER and slug[:1] not in ("_", "")


def pending_folder(path: str) -> str:
    """Return the folder of PENDING_FOLDERS in which a vault-relative path is pending; '' for none."""
    folders = path.split("/")[:-1]
    special = next((name for name in folders if name[:1] == "_"), "")
    return special if special in PENDING_FOLDERS and ARCHIVE not in folders and TRASH not in folders else ""


def group_by_place(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the pending ones of vault-relative `paths`, keyed by `proposals`, `questions`, `inbox`, `ideas` and
    `patterns`.

    `patterns` are all notes of the watchlist: whether one is still pending is in its frontmatter alone.
    """
    groups: dict[str, list[str]] = {"proposals": [], "questions": [], "inbox": [], "ideas": [], "patterns": []}
    possible_questions = []
    folder_of: dict[str, str] = {}  # Thousands of notes share a few folders.
    for path in paths:
        if "_" not in path:  # Of all notes of a vault, most.
            continue
        parent = path.rpartition("/")[0]
        folder = folder_of.get(parent)
        if folder is None:
            folder = folder_of[parent] = pending_folder(path)
        if not folder or (folder == INCUBATOR and not is_idea_path(path)):
            continue
        if path == IDEAS_LIST:
            groups["questions"].append(path)
        elif path.startswith(_QUESTION_PREFIX):
            possible_questions.append(path)
        else:
            groups[PENDING_FOLDERS[folder]].append(path)
    # The slug of a rule may begin with that prefix, too: only next to an idea of that name is the note a question.
    questions = {question_path(path.split("/")[-2]) for path in groups["ideas"]}
    for path in possible_questions:
        groups["questions" if path in questions else "proposals"].append(path)
    return groups


_IN_REVIEW = {
    "proposals": ("proposal", "proposals"),
    "questions": ("question about ideas", "questions about ideas"),
    "copies": ("conflict copy", "conflict copies"),
}
_ELSEWHERE = {
    "inbox": ("in the inbox", "in the inbox"),
    "ideas": ("idea", "ideas"),
    "patterns": ("pattern to adopt", "patterns to adopt"),
}


def describe_review(counts: Mapping[str, int]) -> list[str]:
    """Return phrases for the questions of `memory review`: `["8 proposals", "1 question about ideas"]`."""
    return [counted(number, *nouns) for place, nouns in _IN_REVIEW.items() if (number := counts.get(place, 0))]


def describe_other_places(counts: Mapping[str, int]) -> dict[str, str]:
    """Return phrases for what is pending outside of the review, by place: `{"inbox": "3 in the inbox"}`."""
    return {place: counted(number, *nouns) for place, nouns in _ELSEWHERE.items() if (number := counts.get(place, 0))}


def describe_pending(counts: Mapping[str, int]) -> str:
    """Return all counts as one text: `8 proposals, 1 question about ideas, 3 in the inbox, 21 ideas`; `nothing`."""
    return ", ".join([*describe_review(counts), *describe_other_places(counts).values()]) or "nothing"


def find_pending_notes(vault: str) -> Iterator[str]:
    """Yield vault-relative paths of pending notes, except for patterns, without walking the whole vault.

    Only the folders that may hold such notes are listed: a group has at most one slash. No link is followed.
    """
    for group in list_groups(vault, ""):
        for folder in list_groups(vault, group + "/"):
            for name in (REVIEW, INBOX):
                yield from _walk_notes(vault, f"{group}/{folder}/{name}/")
        for name in (REVIEW, INBOX):
            yield from _walk_notes(vault, f"{group}/{name}/")
    for slug in list_groups(vault, INCUBATOR_FOLDER + "/"):
        path = f"{INCUBATOR_FOLDER}/{slug}/{IDEA_NOTE}"
        if os.path.isfile(f"{vault}/{path}"):
            yield path


def list_groups(vault: str, prefix: str) -> list[str]:
    """Return the names of the folders below `prefix` ('' or ending in a slash) that are neither hidden nor special."""
    try:
        with os.scandir(f"{vault}/{prefix}") as children:
            return [
                child.name for child in children if child.name[0] not in "._" and child.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _walk_notes(vault: str, prefix: str) -> Iterator[str]:
    if not os.access(f"{vault}/{prefix}", os.R_OK):  # Most groups have no such folder: quicker than an exception.
        return
    folders = []
    try:
        with os.scandir(f"{vault}/{prefix}") as children:
            for child in children:
                name = child.name
                if name[0] == ".":
                    continue
                if name.endswith(".md") and child.is_file(follow_symlinks=False):
                    if not is_conflict_copy(name):
                        yield prefix + name
                elif name not in (ARCHIVE, TRASH) and child.is_dir(follow_symlinks=False):
                    folders.append(name)
    except OSError:
        return
    for name in folders:
        yield from _walk_notes(vault, f"{prefix}{name}/")
