"""The entry: a memory as read from its file."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from ..runtime.layout import ALWAYS_LOAD, special_folder
from ..runtime.normal_form import fingerprint as fingerprint
from .automemory import TYPES, kind_by_path
from .frontmatter import format_scalar, load_fields
from .header import body_of, out_of_use, split_header
from .note_text import decode_note, encode_note, unfenced
from .project import project_of_note
from .statuses import is_in_use, meant_status
from .wording import cut

ACTIVE = "active"
RESOLVED = "resolved"
SUPERSEDED = "superseded"
PENDING = "pending"
IN_INBOX = "inbox"
INCUBATING = "incubating"
REJECTED = "rejected"
DISMISSED = "dismissed"
ARCHIVED = "archived"

STATUSES = (ACTIVE, PENDING, IN_INBOX, INCUBATING, RESOLVED, SUPERSEDED, REJECTED, DISMISSED, ARCHIVED)
AWAITING_STATUSES = frozenset({PENDING, IN_INBOX, INCUBATING})
"""Statuses of entries on which the user has not decided yet."""
INCIDENT = "failure-incident"
"""Kind of entries on a failure and its remedy. Their text is copied from logs, so names of people are scrubbed."""
RESEARCH_KIND = "idea-research"
"""Kind of the notes of research, which quote strangers. Recall shows them only if a filter has this kind."""
SKILL_KIND = "skill"
"""Kind of the entries that describe the skills on this machine."""
PATTERN_KIND, DASHBOARD_KIND = "skill-pattern", "dashboard"
"""Kinds of notes that the program writes in special folders."""
PRIORITIES = ("high", "normal", "low")
AGENT_SOURCE = "agent"
"""`source: agent` marks an entry that an agent wrote itself, through MCP or the command."""

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"

TITLE_CHARACTERS = 80
_MAX_DEPTH = 8
_MAX_NODES = 5_000


GUARDS = ("remind", "ask", "deny")
"""Values of the property `guard`: refuse once a session, ask, refuse always."""
CHANNELS = ("core", "prompt", "action")
"""Values of the property `channel` of a proposal: at the session's start, with a prompt, or when the agent acts."""

PROBABILITY = "probability"
"""Field of entries that wait: the probability that the user wants it kept."""
CONTRADICTS = "contradicts"
"""Field of entries that wait: the fingerprint of the rule that it would replace, which may have moved since."""


@dataclass(frozen=True, slots=True)
class Source:
    """Evidence of a memory: the records of a session with the user's words."""

    host: str
    session: str = ""
    records: tuple[str, ...] = ()
    said: str = ""
    """Time in UTC to the second; '' where it is not known. A copy in a fork has other ids and the same time."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One markdown file of the vault. Fields are None, empty or their default when the file has none."""

    path: str
    """Relative to the vault, with forward slashes."""
    kind: str | None
    status: str | None
    """In lower case and spelt as it is meant, the first of several that is not `active`; may be none of STATUSES. See
    `effective_status`."""
    created: str | None
    """ISO date."""
    updated: str | None
    tags: tuple[str, ...]
    group: str | None
    slug: str
    """From the frontmatter, else the file's name without its ending."""
    always_load: bool
    project: str | None
    """Its slug: see `project_of_note`."""
    fingerprint: str | None
    confidence: str | None
    occurrences: int
    """At least 1."""
    sources: tuple[Source, ...]
    surfaced_in_session: str | None
    surfaced_at: str | None
    supersedes: str | None
    superseded_by: str | None
    superseded_at: str | None
    superseded_reason: str | None
    priority: str
    """One of PRIORITIES."""
    aliases: tuple[str, ...]
    title: str
    """The title in lists: the first level-one heading, else the first sentence, else the slug as words."""
    name: str
    """The title in the index: the heading, else the slug as words, which adds more than the first sentence again."""
    body: str
    """The text after the frontmatter, without blank lines around it."""
    content_hash: str
    """SHA-256 of the file's bytes, hexadecimal, as `VaultStore.update` expects it."""
    text: str
    """The file's text as `decode_note` gives it; a changed note is made of it."""
    extra: Mapping[str, Plain]
    """All other frontmatter; dates as ISO text."""

    @property
    def contradicts(self) -> str | None:
        """The fingerprint of the rule that the entry would replace; see CONTRADICTS."""
        return _text(self.extra.get(CONTRADICTS))

    @property
    def effective_status(self) -> str:
        """Return `status`; `active` for the user's own note without a status or with a word of the user's own."""
        status = self.status or ACTIVE
        return status if status in STATUSES or not is_in_use(status) else ACTIVE

    @property
    def special(self) -> str:
        """Return the first underscore-folder of the path, or ''."""
        return special_folder(self.path)

    @property
    def probability(self) -> float:
        """Return the probability that the user wants what waits; 0 if none is known."""
        value = self.extra.get(PROBABILITY)
        return float(value) if isinstance(value, int | float) else 0.0

    @property
    def guard(self) -> str:
        """Return how the rule guards the agent's actions: one of GUARDS, '' for not at all. Only a person marks it."""
        value = str(self.extra.get("guard") or "").lower()
        return value if value in GUARDS else ""

    @property
    def channel(self) -> str:
        """Return the channel that the reader proposes, one of CHANNELS; 'prompt' if it proposes none."""
        value = str(self.extra.get("channel") or "").lower()
        return value if value in CHANNELS else "prompt"

    @property
    def written_by_agent(self) -> bool:
        """Whether any of its evidence is an agent's own claim."""
        return any(source.host == AGENT_SOURCE for source in self.sources)


def content_hash(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def hash_of(text: str) -> str:
    """Return the `content_hash` of a file that holds this text."""
    return content_hash(text.encode("utf-8", "surrogateescape"))


def parse_text(path: str, text: str) -> Entry:
    """Parse the text of a note, as `Entry.text` has it. Never raises, as `parse_entry`."""
    return parse_entry(path, encode_note(text))


def parse_entry(path: str, data: bytes) -> Entry:
    """Parse the bytes of a file. Never raises: a field that cannot be read is None, and the body is kept."""
    text = data.decode("utf-8", "replace")
    parts = split_header(text)
    fields = load_fields(parts[1]) if parts is not None else {}
    body = body_of(text)
    group = _text(fields.pop("group", None))
    slug = _text(fields.pop("slug", None)) or _stem(path)
    priority = (_text(fields.pop("priority", None)) or "normal").lower()
    status = out_of_use(path, text) or _status(fields.pop("status", None))
    fields_always_load = fields.pop("always_load", None)
    kind = _text(fields.pop("kind", None))
    tags = tuple(dict.fromkeys(tag.lstrip("#") for tag in _texts(fields.pop("tags", None))))
    heading = first_heading(body)
    name = heading or words_of(slug)
    title = heading or first_sentence(body) or name
    if kind is None and (kind := kind_by_path(path) or None) is not None:
        # One of the agent's own notes, in the format of Claude Code: see vault.automemory.
        name = _text(fields.get("description")) or _text(fields.get("name")) or name
        title = _text(fields.get("description")) or _text(fields.get("name")) or title
        tags = tags or tuple(filter(None, [topic_type(fields)]))
    return Entry(
        path=path,
        kind=kind,
        status=status,
        # Notes by other hands have their day as `date`.
        created=_text(fields.pop("created", None)) or _text(fields.get("date")),
        updated=_text(fields.pop("updated", None)),
        tags=tags,
        group=group,
        slug=slug,
        always_load=(_text(fields_always_load) or "").lower() == "true" or special_folder(path) == ALWAYS_LOAD,
        project=project_of_note(path, _text(fields.pop("project", None)) or "", group or "") or None,
        fingerprint=_text(fields.pop("fingerprint", None)),
        confidence=_text(fields.pop("confidence", None)),
        occurrences=_count(fields.pop("occurrences", None)),
        sources=_sources(fields.pop("source", None)),
        surfaced_in_session=_text(fields.pop("surfaced_in_session", None)),
        surfaced_at=_text(fields.pop("surfaced_at", None)),
        supersedes=from_link(_text(fields.pop("supersedes", None))),
        superseded_by=from_link(_text(fields.pop("superseded_by", None))),
        superseded_at=_text(fields.pop("superseded_at", None)),
        superseded_reason=_text(fields.pop("superseded_reason", None)),
        priority=priority if priority in PRIORITIES else "normal",
        aliases=_texts(fields.pop("aliases", None)),
        title=title,
        name=name,
        body=body,
        content_hash=content_hash(data),
        text=decode_note(data),
        extra=MappingProxyType(_plain_mapping(fields)),
    )


def topic_type(fields: Mapping[str, object]) -> str:
    """Return which of TYPES a topic is, by its fields, '' for none; older clients wrote it at the top level."""
    metadata = fields.get("metadata")
    nested = metadata.get("type") if isinstance(metadata, dict) else None
    found = (_text(nested) or _text(fields.get("type")) or "").lower()
    return found if found in TYPES else ""


_HEADING = re.compile(r" {0,3}#(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")


def first_heading(body: str) -> str | None:
    """Return the text of the first `# heading` outside fenced code, or None."""
    for _, line in unfenced(body.split("\n")):
        heading = _HEADING.fullmatch(line.rstrip("\r"))
        if heading is not None and heading[1]:
            return heading[1].strip()
    return None


_SENTENCE = re.compile(r".*?[.!?](?=\s+[^\W\d_a-z]|$)|.+")
_MARKER = re.compile(r"^(?:[-*+>]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")


def first_sentence(body: str) -> str:
    """Return the first sentence of a text, cut at a word; '' if it begins with code, a table or HTML."""
    line = body.lstrip().partition("\n")[0].strip()
    line = line.lstrip("#").strip() if line.startswith("#") else _MARKER.sub("", line, count=1)
    if not any(map(str.isalnum, line)) or line[0] in "`~|<%":
        return ""
    sentence = _SENTENCE.match(line)
    return cut(sentence[0], TITLE_CHARACTERS).removesuffix(".") if sentence else ""


def words_of(slug: str) -> str:
    """Return the slug with spaces instead of hyphens and underscores."""
    return slug.replace("-", " ").replace("_", " ").strip()


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(".md")


def to_link(path: str) -> str:
    """Format a vault-relative path as the `[[wikilink]]` that Obsidian follows from a property; a slug is left as it
    is."""
    return path if path.startswith("[[") or "/" not in path else f"[[{path.removesuffix('.md')}]]"


def from_link(value: str | None) -> str | None:
    """Parse the path (or slug) of a property, written as `[[path|shown]]` or bare: the inverse of `to_link`."""
    if value is None or not (value.startswith("[[") and value.endswith("]]")):
        return value
    path = value[2:-2].split("|", 1)[0].split("#", 1)[0].strip()
    return path + ".md" if "/" in path and not path.endswith(".md") else path or None


def _text(value: object) -> str | None:
    """Return a scalar, or the one item of a list, as Obsidian writes it, as text; None for anything else."""
    for _ in range(_MAX_DEPTH):
        if not (isinstance(value, list) and len(value) == 1):
            break
        value = value[0]
    if value is None or isinstance(value, list | dict | set | bytes | tuple):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.date):
        return format_scalar(value)
    return str(value).strip() or None


def _status(value: object) -> str | None:
    """Return the first value of the property that is not `active`: of a list, all must say so."""
    texts = [text.lower() for item in (value if isinstance(value, list) else [value]) if (text := _text(item))]
    return next((meant for text in texts if (meant := meant_status(text)) != ACTIVE), ACTIVE if texts else None)


def _texts(value: object) -> tuple[str, ...]:
    """Return the scalars of a list, or the parts of one comma-separated text, without empty ones and repetitions."""
    if isinstance(value, str):
        items: list[object] = list(value.split(","))
    elif isinstance(value, list):
        items = value
    else:
        items = [value]
    texts = (_text(item) for item in items)
    return tuple(dict.fromkeys(text for text in texts if text))


def _count(value: object) -> int:
    text = _text(value) or ""
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else 1


def _sources(value: object) -> tuple[Source, ...]:
    """`source: agent`, one mapping of host, session and records, or a list of these."""
    found = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            host = _text(item.get("host")) or ""
            session = _text(item.get("session")) or ""
            records = _texts(item.get("records"))
            if host or session or records:
                found.append(Source(host, session, records, _text(item.get("said")) or ""))
        elif (host := _text(item) or "") != "":
            found.append(Source(host))
    return tuple(dict.fromkeys(found))


def _plain_mapping(fields: Mapping[str, object]) -> dict[str, Plain]:
    """Convert values to JSON types. YAML aliases can expand a small text to any size: a field that is too big is
    None."""
    plain: dict[str, Plain] = {}
    for key, value in fields.items():
        budget = [_MAX_NODES]
        converted = _plain(value, _MAX_DEPTH, budget)
        plain[key] = converted if budget[0] > 0 else None
    return plain


def _plain(value: object, depth: int, budget: list[int]) -> Plain:
    budget[0] -= 1
    if depth == 0 or budget[0] <= 0:
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | set):
        return [_plain(item, depth - 1, budget) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item, depth - 1, budget) for key, item in value.items()}
    return _text(value)
