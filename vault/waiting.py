"""What waits for the user, told by where notes lie: each thing once, by one name everywhere.

A proposal is a note in `_review`. What asks there about an idea is no thing of its own beside that idea, so it is
counted apart, as a question. In an archive nothing waits.

Light module: hooks import it.
"""

from __future__ import annotations

import os

from .layout import ARCHIVE, DEFAULT_GROUP, INBOX, INCUBATOR, REVIEW, TRASH, WATCHLIST, is_conflict_copy
from .wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PLACES = {REVIEW: "proposals", INBOX: "inbox", INCUBATOR: "ideas", WATCHLIST: "patterns"}
IDEA_NOTE = "_index.md"
INCUBATOR_FOLDER = f"{DEFAULT_GROUP}/{INCUBATOR}"
IDEAS_LIST = f"{DEFAULT_GROUP}/{REVIEW}/ideas-nobody-came-back-to.md"
"""Asks about several ideas at once."""
_ABOUT_ONE = f"{DEFAULT_GROUP}/{REVIEW}/surface-"


def question_path(slug: str) -> str:
    """The note that asks whether the idea may be put into Ideas.md."""
    return f"{_ABOUT_ONE}{slug}.md"


def is_idea_path(path: str) -> bool:
    """Is this the note of an idea in the incubator, not in its archive?"""
    folder, _, name = path.rpartition("/")
    parent, _, slug = folder.rpartition("/")
    return name == IDEA_NOTE and parent == INCUBATOR_FOLDER and slug[:1] not in ("_", "")


def waiting_folder(path: str) -> str:
    """The folder of PLACES that a vault-relative path waits in; '' for what waits nowhere."""
    folders = path.split("/")[:-1]
    special = next((name for name in folders if name[:1] == "_"), "")
    return special if special in PLACES and ARCHIVE not in folders and TRASH not in folders else ""


def by_place(paths: Iterable[str]) -> dict[str, list[str]]:
    """Those of `paths` that wait, as `proposals`, `questions`, `inbox`, `ideas` and `patterns`.

    Patterns are all that lie in the watchlist: whether one still waits is said in its note alone.
    """
    found: dict[str, list[str]] = {"proposals": [], "questions": [], "inbox": [], "ideas": [], "patterns": []}
    asking = []
    known: dict[str, str] = {}  # Thousands of notes lie in a few folders.
    for path in paths:
        parent = path.rpartition("/")[0]
        folder = known.get(parent)
        if folder is None:
            folder = known[parent] = waiting_folder(path)
        if not folder or (folder == INCUBATOR and not is_idea_path(path)):
            continue
        if path == IDEAS_LIST:
            found["questions"].append(path)
        elif path.startswith(_ABOUT_ONE):
            asking.append(path)
        else:
            found[PLACES[folder]].append(path)
    # A rule may begin with that word, too: it asks about an idea when there is one of that name.
    questions = {question_path(path.split("/")[-2]) for path in found["ideas"]}
    for path in asking:
        found["questions" if path in questions else "proposals"].append(path)
    return found


def for_review(counts: Mapping[str, int]) -> list[str]:
    """What `memory review` puts to the user, in words: `["8 proposals", "1 question about ideas"]`."""
    told = []
    if number := counts.get("proposals", 0):
        told.append(counted(number, "proposal"))
    if number := counts.get("questions", 0):
        told.append(counted(number, "question about ideas", "questions about ideas"))
    if number := counts.get("copies", 0):
        told.append(counted(number, "conflict copy", "conflict copies"))
    return told


def elsewhere(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """What waits outside of the review, in words, each with the command that shows it."""
    told = []
    if number := counts.get("inbox", 0):
        told.append((f"{number:,} in the inbox", "memory inbox"))
    if number := counts.get("ideas", 0):
        told.append((counted(number, "idea"), "memory idea list"))
    if number := counts.get("patterns", 0):
        told.append((counted(number, "pattern to adopt", "patterns to adopt"), "memory watchlist"))
    return told


def with_commands(counts: Mapping[str, int]) -> list[str]:
    """All of it in words, with the commands that show it: `8 proposals (memory review)`."""
    reviews = " and ".join(for_review(counts))
    told = [(reviews, "memory review"), *elsewhere(counts)]
    return [f"{words} ({command})" for words, command in told if words]


def in_words(counts: Mapping[str, int]) -> str:
    """All of it: `8 proposals, 1 question about ideas, 3 in the inbox, 21 ideas`; `nothing`."""
    return ", ".join([*for_review(counts), *(words for words, _ in elsewhere(counts))]) or "nothing"


def notes_that_wait(vault: str) -> Iterator[str]:
    """Vault-relative paths of what waits, but for patterns, looked for where groups have it and nowhere else.

    A group has at most one slash. No link is followed.
    """
    for group in _folders(vault, ""):
        for folder in _folders(vault, group + "/"):
            for name in (REVIEW, INBOX):
                yield from _notes(vault, f"{group}/{folder}/{name}/")
        for name in (REVIEW, INBOX):
            yield from _notes(vault, f"{group}/{name}/")
    for slug in _folders(vault, INCUBATOR_FOLDER + "/"):
        path = f"{INCUBATOR_FOLDER}/{slug}/{IDEA_NOTE}"
        if os.path.isfile(f"{vault}/{path}"):
            yield path


def _folders(vault: str, prefix: str) -> list[str]:
    """Names of the folders in one that ends in a slash, those aside that are hidden or special."""
    try:
        with os.scandir(f"{vault}/{prefix}") as children:
            return [one.name for one in children if one.name[0] not in "._" and one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _notes(vault: str, prefix: str) -> Iterator[str]:
    if not os.access(f"{vault}/{prefix}", os.R_OK):  # Of most groups: quicker than an error.
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
        yield from _notes(vault, f"{prefix}{name}/")
