"""The project of a working directory or note. Light module; git is never run."""

from __future__ import annotations

import os
import stat

from ..runtime.layout import ALWAYS_LOAD, DEFAULT_GROUP, PROJECTS, RESERVED_NAMES, special_folder
from ..runtime.normal_form import composed

MAX_POINTER_BYTES = 4096
SWITCH_FILE = ".memoryvault"
"""A file of a project. With a line `off`, sessions in there are neither recorded nor given anything."""


def _read_pointer(path: str) -> str:
    """Return the one line of a `.git` or `commondir` file; '' when it cannot be read."""
    try:
        # O_NONBLOCK: a named pipe called .git must not hang the reader.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        return os.fsdecode(os.read(descriptor, MAX_POINTER_BYTES)).strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _git_folder_of(folder: str) -> str:
    """Return the git folder with the work tree `folder`; '' when `folder` is not the top of one."""
    candidate = folder.rstrip("/") + "/.git"
    try:
        kind = stat.S_IFMT(os.stat(candidate).st_mode)
    except (OSError, ValueError):
        kind = 0  # As in most folders: nothing more has to be asked for there.
    if kind == stat.S_IFDIR:
        return candidate
    pointer = _read_pointer(candidate) if kind == stat.S_IFREG else ""
    if pointer.startswith("gitdir:"):
        return os.path.normpath(os.path.join(folder, pointer[len("gitdir:") :].strip()))
    if folder.endswith(".git") and os.path.isfile(folder + "/HEAD") and os.path.isdir(folder + "/objects"):
        return folder  # inside a bare repository
    return ""


def _common_folder(git_folder: str) -> str:
    """Return the git folder that all work trees of a repository share (gitrepository-layout(5), `commondir`)."""
    pointer = _read_pointer(git_folder + "/commondir")
    return os.path.normpath(os.path.join(git_folder, pointer)) if pointer else git_folder


def _repository_name(common: str) -> str:
    name = os.path.basename(common)
    if name.startswith("."):  # `.git`, and `.bare` of a clone that keeps its work trees beside it
        return os.path.basename(os.path.dirname(common))
    return name[:-4] if name.endswith(".git") else name


def project_slug(name: str) -> str:
    """Return `name` as lower-case ASCII words joined by hyphens; '' only for an empty name."""
    folded = name
    if not name.isascii():
        from unicodedata import normalize

        folded = normalize("NFKD", name)
    # Without the combining accents that NFKD separates from their letters.
    kept = (c for c in folded.lower() if not "\u0300" <= c <= "\u036f")
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in kept)
    slug = "-".join(words.split())
    if slug in RESERVED_NAMES:
        return f"{slug}-it"  # As `allowed_name` in slug.py.
    if slug or not name:
        return slug
    from binascii import crc32

    return "project-" + format(crc32(composed(name).encode("utf-8", "surrogatepass")), "08x")


def project_named(value: str) -> str:
    """Return the slug of a project from a note's property, as text or as a link: `[[work/Shop|the shop]]`."""
    if value.startswith("[[") and value.endswith("]]"):
        value = value[2:-2].split("|", 1)[0].split("#", 1)[0].rsplit("/", 1)[-1].removesuffix(".md")
    return project_slug(value.strip())


_ROOTS = (PROJECTS, "projects")
"""Folders of projects: the present one, and that of the first design."""


def project_of_note(path: str, named: str = "", group: str = "") -> str:
    """Return the slug of the project of the note at the vault-relative `path`, '' for none: by its property, else by
    its place, `personal-projects/<project>/…`, else by its `group`.

    A group of ours is the place where the note was written; if the note was moved, its new place counts. A pending or
    archived note lies in no such place.
    """
    if slug := project_named(named):
        return slug
    root, _, rest = path.partition("/")
    if root in _ROOTS and "/" in rest and rest[0] != "_":
        return project_slug(rest.partition("/")[0])
    of, _, name = group.partition("/")
    was_moved = of == PROJECTS and rest != "" and special_folder(path) in ("", ALWAYS_LOAD)
    return "" if of not in _ROOTS or was_moved else project_slug(name.partition("/")[0])


def group_of_note(path: str, named: str = "") -> str:
    """Return the group of the note at the vault-relative `path`, '' for none: by its property, else its folder.

    As for projects, a group of ours is the place where the note was written, and its present place counts.
    """
    special = special_folder(path)
    is_ours = named == DEFAULT_GROUP or named.partition("/")[0] in _ROOTS
    if named and (not is_ours or special not in ("", ALWAYS_LOAD)):
        return named
    return "/".join(part for part in path.split("/")[:-1] if part[:1] != "_") or named


def _repository_of_lost_worktree(path: str, home: str) -> str:
    """Return the path of the repository of a deleted work tree, by the places where tools put work trees; else ''.

    `<repository>/.worktrees/…`, `<repository>/.claude/worktrees/…`, `<repository>.worktrees/…`. A work tree may be
    named after its branch, slashes included, so how much of the rest is its name cannot be told.
    """
    parts = path.split("/")
    for index, part in enumerate(parts[:-1]):
        if part == ".worktrees" or (part == ".claude" and parts[index + 1] == "worktrees" and index + 2 < len(parts)):
            repository = "/".join(parts[:index])
        elif part.endswith(".worktrees"):
            repository = "/".join(parts[:index]) + "/" + part[: -len(".worktrees")]
        else:
            continue
        if repository and repository != home:
            return repository
    return ""


def project_of(cwd: str, home: str | None = None) -> str:
    """Return the slug of the repository that contains `cwd`, the same for all its work trees; without one, of the
    folder.

    A deleted work tree, as most are by the time old sessions are mined, gets its repository's name if its path tells
    it. '' for an empty or relative path, the root and the home folder. A repository at the home folder (dotfiles) is
    not taken for the project of everything below it.
    """
    if not cwd.startswith("/"):
        return ""
    start = os.path.realpath(cwd)
    home = os.path.realpath(home if home is not None else os.environ.get("HOME", "") or "/")
    folder = start
    while folder not in ("/", home):
        git_folder = _git_folder_of(folder)
        if git_folder:
            return project_slug(_repository_name(_common_folder(git_folder)))
        folder = os.path.dirname(folder)
    if not os.path.isdir(start) and (repository := _repository_of_lost_worktree(start, home)):
        git_folder = _git_folder_of(repository)
        if git_folder:
            return project_slug(_repository_name(_common_folder(git_folder)))
        # A folder that is there and no repository holds work trees of several.
        if not os.path.isdir(repository):
            return project_slug(os.path.basename(repository))
    return "" if start in ("/", home) else project_slug(os.path.basename(start))


def top_of(cwd: str) -> str:
    """Return the folder of the repository or work tree that contains `cwd`, else `cwd`; '' for a relative path."""
    folder = os.path.realpath(cwd) if cwd.startswith("/") else ""
    start = folder
    while folder not in ("", "/"):
        if _git_folder_of(folder):
            return folder
        folder = os.path.dirname(folder)
    return start


def is_left_out(cwd: str, home: str | None = None) -> bool:
    """Whether the user's file `.memoryvault` says `off`, in `cwd` or above it up to the top of its repository.

    For a work tree, the file of its repository counts as well. Without a repository, the search goes up to the home
    folder.
    """
    if not cwd.startswith("/"):
        return False
    folder = os.path.realpath(cwd)
    home = os.path.realpath(home if home is not None else os.environ.get("HOME", "") or "/")
    while not _says_off(folder):
        if git_folder := _git_folder_of(folder):
            common = _common_folder(git_folder)
            return common != git_folder and _says_off(os.path.dirname(common))
        if folder in ("/", home):
            return False
        folder = os.path.dirname(folder)
    return True


def _says_off(folder: str) -> bool:
    return any(line.strip().lower() == "off" for line in _read_pointer(f"{folder}/{SWITCH_FILE}").splitlines())
