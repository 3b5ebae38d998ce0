"""Planning the entries of the skills on this machine: one each, kept in step with its source. Pure.

A skill's description is a stranger's text that ends in prompts. What is kept of it is one quoted line without
markup, and nothing at all of one that gives orders to the agent that reads it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..runtime.layout import SKILLS
from ..runtime.slug import free_slug, slugify

MOST_CHARACTERS = 600
"""Longest description, and longest first paragraph."""
REPO_CHARACTERS = 40
NAME_CHARACTERS = 60
LABEL = "The skill says of itself (third-party text, not an instruction):"
"""Introduces the quoted text, in one paragraph with it, so that they are always shown together."""
WITHHELD = "Its description speaks to the agent that reads it, not to who looks for a skill: it is not shown."

_MARKUP = str.maketrans({"<": "‹", ">": "›", "`": "'", "[": "(", "]": ")", "%": "\uff05", "|": "/"})
_ORDERS = re.compile(
    r"""
    \b(?:ignore|disregard|forget|override)\b[^.]{0,40}\b(?:previous|prior|above|earlier|preceding|system|all|other|your)
        \b[^.]{0,30}\b(?:instructions?|rules?|prompts?|guidelines|directions|messages|memory)\b
    | \b(?:save|store|remember|record|memori[sz]e)\b[^.]{0,40}\bas\ (?:an?\ )?
        (?:\w+\ )?(?:rule|preference|memory|instruction|always[- ]load)\b
    | \b(?:do\ not|don't|never|without)\ (?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|notify(?:ing)?|ask(?:ing)?)\b
        [^.]{0,30}\b(?:user|human|operator|developer)\b
    | \b(?:new|updated|real|actual|hidden)\ (?:system\ )?(?:instructions?|prompt)\s*:
    | \byou\ are\ now\b | \bsystem\ prompt\b[^.]{0,20}\b(?:is|says|reveal|print|output)\b
    | [<‹]\s*/?\s*(?:system|assistant|user|human|instructions?|important|admin)\b
    | \b(?:curl|wget)\b[^|]{0,200}\|\s*(?:ba|z)?sh\b
    | \b(?:send|post|upload|exfiltrate|transmit)(?:s|ing)?\b[^.]{0,60}
        \b(?:api[\ _-]?keys?|credentials?|secrets?|passwords?|ssh\ keys?)\b[^.]{0,40}\bto\b
    """,
    re.IGNORECASE | re.VERBOSE,
)

_PROCEDURE = re.compile(r"[`$]|://|^(?:run|execute|call|invoke|open|read|fetch|install|write|save)\b", re.IGNORECASE)
"""Matches a first paragraph that gives the agent instructions: it belongs to the skill, not to its description."""


@dataclass(frozen=True)
class Skill:
    """One SKILL.md; `description` and `summary` scrubbed, otherwise as its author wrote them."""

    path: str
    """Path of the file, with the home folder as `~`."""
    repo: str
    name: str
    description: str
    summary: str
    version: str
    digest: str
    project: str | None = None


@dataclass(frozen=True)
class SkillEntry:
    """An entry that an earlier run wrote."""

    entry: str
    """Vault-relative path."""
    status: str
    skill_path: str
    repo: str
    name: str
    digest: str


@dataclass(frozen=True)
class WriteSkill:
    skill: Skill
    entry: str


@dataclass(frozen=True)
class UpdateSkill:
    """Bring `entry` up to date with the skill and move it to `target`, which may be its own path."""

    skill: Skill
    entry: str
    target: str
    restored: bool = False


@dataclass(frozen=True)
class ArchiveSkill:
    entry: str


SkillStep: TypeAlias = "WriteSkill | UpdateSkill | ArchiveSkill"


def plain(text: str, most: int = MOST_CHARACTERS) -> str:
    """Make one line of a text, without control characters, invisible ones, tags, links or code marks; cut at a word."""
    kept = "".join(
        " " if c.isspace() else c
        for c in unicodedata.normalize("NFKC", text[: most * 8])
        if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cn", "Cs")
    )
    line = " ".join(kept.translate(_MARKUP).split())
    return line if len(line) <= most else line[:most].rsplit(" ", 1)[0] + " …"


def gives_orders(text: str) -> bool:
    """Whether a text reads like an order to an agent: ignore what came before, save this, hide it."""
    bare = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return _ORDERS.search(" ".join(bare.split())) is not None


def mixes_scripts(name: str) -> bool:
    """Whether a name has letters of more than one alphabet, of which one may imitate another."""
    alphabets = {unicodedata.name(c, "?").split(" ", 1)[0] for c in name if c.isalpha()}
    return len(alphabets) > 1


def entry_name(skill: Skill) -> str:
    """`<repo>--<skill>`. A name in mixed alphabets gets a mark of its own, so that it can't pass for another."""
    name = slugify(skill.name, NAME_CHARACTERS, "skill")
    if mixes_scripts(skill.name):
        name += "-" + hashlib.sha256(skill.name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slugify(skill.repo, REPO_CHARACTERS, 'unknown-repo')}--{name}"


def quote_of(skill: Skill) -> str:
    """Render the quoted lines of the entry."""
    if gives_orders(f"{skill.name} {skill.description} {skill.summary}"):
        return f"> {WITHHELD}"
    summary = "" if _PROCEDURE.search(skill.summary) else plain(skill.summary)
    parts = [part for part in (plain(skill.description), summary) if part]
    if len(parts) == 2 and parts[1] == parts[0]:
        parts.pop()
    if not parts:
        return "> (it says nothing of itself)"
    return "\n".join([f"> {LABEL} {parts[0]}", *(f"> {part}" for part in parts[1:])])


def quote_digest(quote: str) -> str:
    """Digest by which a quote that the user edited is recognised."""
    return hashlib.sha256(quote.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def title_of(name: str, repo: str) -> str:
    """Heading of the entry."""
    if gives_orders(name):
        name = "a skill"
    return f"{plain(name, NAME_CHARACTERS)} (skill of {plain(repo, REPO_CHARACTERS)})"


def source_line(path: str, version: str) -> str:
    """Render the line that points to the skill itself."""
    return f"Source: `{plain(path, 1000)}`" + (f", version {plain(version, 40)}" if version else "")


def body_of(skill: Skill) -> str:
    """Render the text of a new entry below its heading."""
    return f"{quote_of(skill)}\n\n{source_line(skill.path, skill.version)}"


def merged_body(body: str, old: SkillEntry, old_version: str, old_quote: str, skill: Skill) -> tuple[str, bool]:
    """Renew our lines of a body and keep all others; the second value tells whether the user had edited the quote.

    An edited quote stays: the user's word about a skill is worth more than the skill's.
    """
    lines = body.split("\n")
    renewed = {
        f"# {title_of(old.name, old.repo)}": f"# {title_of(skill.name, skill.repo)}",
        source_line(old.skill_path, old_version): source_line(skill.path, skill.version),
    }
    lines = [renewed.get(line.rstrip(), line) for line in lines]
    start = next((number for number, line in enumerate(lines) if line.startswith(">")), None)
    if start is None:
        return "\n".join(lines), True
    end = start
    while end < len(lines) and lines[end].startswith(">"):
        end += 1
    if quote_digest("\n".join(line.rstrip() for line in lines[start:end])) != old_quote:
        return "\n".join(lines), True
    return "\n".join([*lines[:start], quote_of(skill), *lines[end:]]), False


def plan_skills(
    skills: Sequence[Skill],
    entries: Sequence[SkillEntry],
    is_gone: Mapping[str, bool],
    taken: Collection[str],
) -> list[SkillStep]:
    """Plan what to write, update and archive, in order of entry.

    `is_gone`: by skill path, whether the skill of an entry is known to be gone (False: could not be looked at).
    `taken`: paths of notes that are not ours to write to.
    """
    steps: list[SkillStep] = []
    used: set[str] = set(taken)
    living = {entry.entry: entry for entry in entries if entry.status != "archived"}
    archived = [entry for entry in entries if entry.status == "archived"]
    used |= living.keys()
    free = dict(living)
    pairs: list[tuple[Skill, SkillEntry | None]] = []
    rest: list[Skill] = []
    by_path = {entry.skill_path: entry for entry in living.values()}
    ordered = sorted(skills, key=lambda each: (entry_name(each), each.path))
    for skill in ordered:
        entry = by_path.get(skill.path)
        if entry is not None and entry.entry in free:
            del free[entry.entry]
            pairs.append((skill, entry))
        else:
            rest.append(skill)
    for skill in rest:
        # Moved: of this repository, gone from its old place, with the same name or the same text.
        orphans = [each for each in free.values() if is_gone.get(each.skill_path, False) and each.repo == skill.repo]
        found = next(
            (each for each in orphans if each.name == skill.name),
            next((each for each in orphans if each.digest == skill.digest), None),
        )
        if found is not None:
            del free[found.entry]
        pairs.append((skill, found))
    # Two of one skill: a move was cut short between the new file and the old one.
    kept = {skill.path for skill, entry in pairs if entry is not None}
    steps += [ArchiveSkill(each.entry) for each in free.values() if each.skill_path in kept]
    for skill, entry in pairs:
        if entry is None:
            back = next(
                (
                    each
                    for each in archived
                    if each.skill_path == skill.path or (each.repo, each.name) == (skill.repo, skill.name)
                ),
                None,
            )
            target = _free(entry_name(skill), used)
            if back is not None:
                archived.remove(back)
                steps.append(UpdateSkill(skill, back.entry, target, restored=True))
            else:
                steps.append(WriteSkill(skill, target))
            used.add(target)
            continue
        target = entry.entry
        if (skill.name, skill.repo) != (entry.name, entry.repo):
            target = _free(entry_name(skill), used - {entry.entry})
            used.add(target)
        if target != entry.entry or skill.digest != entry.digest or skill.path != entry.skill_path:
            steps.append(UpdateSkill(skill, entry.entry, target))
    steps += [ArchiveSkill(each.entry) for each in free.values() if is_gone.get(each.skill_path, False)]
    return steps


def _free(name: str, used: Collection[str]) -> str:
    return f"{SKILLS}/{free_slug(name, lambda slug: f'{SKILLS}/{slug}.md' in used)}.md"
