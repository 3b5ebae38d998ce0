"""Find what is new in a source, and parse the list of sources. Pure."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from ..runtime.slug import slugify, source_slug
from ..vault.note_text import unfenced
from .scrub import Policy, scrub
from .url_identity import canonical_url

SourceKind: TypeAlias = Literal["list", "topic", "feed", "folder"]

MAX_SOURCES = 100
MOST_KNOWN = 10_000
"""Most keys of a source that are kept besides those of its present items; a feed may invent new ones at each fetch."""
LEAST_MOVED = 3
"""Least known titles that show that a feed has moved."""
_KEY_CHARACTERS = 16
_TOKEN_PARAMETER = re.compile(
    r"([?&;#][\w.~%-]{0,60}(?:token|secret|passw|pwd|signature|credential|api_?key|jwt"
    r"|(?<![a-z])(?:key|sig|auth|sid)(?![a-z]))[\w.~%-]{0,60}=)[^&;#\s<>\"')\]]+",
    re.IGNORECASE,
)


class ListedItem(Protocol):
    """An item that a source lists."""

    @property
    def url(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def anchor(self) -> str: ...
    @property
    def identity(self) -> str: ...
    @property
    def day(self) -> str: ...


@dataclass(frozen=True)
class Pattern:
    """An item that may be worth adopting. Title and description are foreign text."""

    key: str
    """`pattern_key` of its identity."""
    url: str
    title: str
    description: str
    source: str
    """Slug of the source that listed it first."""


@dataclass(frozen=True)
class Novelty:
    """The new patterns of one scan of a source."""

    new: tuple[Pattern, ...]
    known: tuple[str, ...]
    """Keys of all items so far, the last seen at the end, for the next scan."""


def identity_of(item: ListedItem) -> str:
    """Return the identity of an item: its canonical address, with its anchor on a page of several."""
    address = canonical_url(item.url) or item.url
    return f"{address}#{item.anchor}" if item.anchor else address


def pattern_key(identity: str) -> str:
    """Hash an identity to 16 hexadecimal digits."""
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_CHARACTERS]


def novelty(items: Iterable[ListedItem], known: Collection[str], source: str) -> Novelty:
    """Return the items that the source never listed before, in its order.

    An item that disappeared and comes back is known. Two names at one new address (skills of one repository) are two
    patterns; a new name at a known address is only a new wording. An entry of a feed is known by its id or its address;
    if both changed, by its title with its day or its description. None of these tells anything if the entry that had
    it before is listed, too. A title alone tells nothing, since those of many feeds recur, unless the feed has moved.
    """
    marked = [(item, frozenset(_marks(item)), frozenset(_said_marks(item))) for item in items]
    before = frozenset(known)
    free = before.difference(*(marks | said for _, marks, said in marked if marks <= before))
    unknown = [item for item, marks, said in marked if not marks <= before and free.isdisjoint(marks | said)]
    bare = {mark for item, _, said in marked if not said for mark in _title_mark(item)}
    if before.isdisjoint(mark for _, marks, _ in marked for mark in marks) and _moved(bare, before):
        unknown = [item for item in unknown if before.isdisjoint(_title_mark(item))]
    recurring = [_again(mark) for item in unknown for mark in _title_mark(item) if mark in before]
    titles = [mark for item, _, _ in marked for mark in _title_mark(item)]
    listed = [mark for item, _, _ in marked for mark in (*_marks(item), *_said_marks(item))]
    listed += [*titles, *recurring, *(_again(mark) for mark in titles if _again(mark) in before)]
    new: dict[str, Pattern] = {}
    names: set[tuple[str, str]] = set()
    for item in unknown:
        identity = identity_of(item)
        name = (identity, slugify(item.title))
        if name in names:
            continue
        key = pattern_key(identity)
        if key in new:
            key = pattern_key(f"{identity}#{name[1]}")
        names.add(name)
        url = item.url if item.url.startswith("file:") else _without_secrets(item.url, Policy.SECRETS)
        new[key] = Pattern(key, url, _without_secrets(item.title), _without_secrets(item.description), source)
    return Novelty(tuple(new.values()), remembered(known, listed))


def _without_secrets(text: str, policy: Policy = Policy.FULL) -> str:
    """Scrub foreign text, and in its addresses also a token that only its parameter's name tells."""
    return scrub(_TOKEN_PARAMETER.sub(r"\1[REDACTED-API-KEY]", text), policy)


def remembered(known: Iterable[str], listed: Iterable[str]) -> tuple[str, ...]:
    """Return the keys to keep: all that are listed now, and the last of the others."""
    now = dict.fromkeys(listed)
    gone = [key for key in dict.fromkeys(known) if key not in now]
    return (*gone[-MOST_KNOWN:], *now)


def _marks(item: ListedItem) -> tuple[str, ...]:
    """Return the key of an item's address and, if it has one, the key of its id."""
    address = pattern_key(identity_of(item))
    return (
        (address, pattern_key(f"id:{canonical_url(item.identity) or item.identity}")) if item.identity else (address,)
    )


def _said_marks(item: ListedItem) -> tuple[str, ...]:
    """Return the keys of the title of a feed's entry with its day and with its description, as far as it has them; none
    for items without an id."""
    told = (item.day, item.description) if item.identity and item.title else ()
    return tuple(pattern_key(f"text:{item.title.casefold()}\n{each.casefold()}") for each in told if each)


def _title_mark(item: ListedItem) -> tuple[str, ...]:
    """Return the key of the title of a feed's entry; none for items without an id or a title."""
    return (pattern_key(f"title:{item.title.casefold()}"),) if item.identity and item.title else ()


def _again(mark: str) -> str:
    """Return the key that says that this title was new more than once."""
    return pattern_key(f"again:{mark}")


def _moved(bare: Collection[str], before: Collection[str]) -> bool:
    """Return whether a feed that lists no known id or address has moved: whether most of its bare titles are known.
    Those that recurred in the same place are no sign of it."""
    signs = sum(mark in before and _again(mark) not in before for mark in bare)
    return signs >= max(LEAST_MOVED, len(bare) / 2)


# --- the note with the sources ---


@dataclass(frozen=True)
class Source:
    """A source, from one line of the sources note."""

    kind: SourceKind
    target: str
    """An address, a topic's name, or a folder's path."""

    @property
    def identity(self) -> str:
        """The same for two spellings of one address."""
        return f"{self.kind}:{canonical_url(self.target) or self.target}"

    @property
    def address(self) -> str:
        """Its address without query and credentials; '' for a topic or a folder of this machine."""
        if not self.target.startswith(("http://", "https://")):
            return ""
        return re.sub(r"(?<=://)[^/]*@", "", re.split(r"[?#]", self.target, maxsplit=1)[0])

    @property
    def slug(self) -> str:
        """Name of its folder in the watchlist."""
        match self.kind:
            case "topic":
                return slugify(f"topic {self.target}")
            case "folder" if not self.target.startswith(("http://", "https://")):
                return slugify("folder " + self.target.rstrip("/").rsplit("/", 1)[-1])
            case _:
                return source_slug(self.target)


@dataclass(frozen=True)
class SourcesNote:
    """The sources of the note. `problems` describes lines that look like sources but are not."""

    confirmed: bool
    sources: tuple[Source, ...]
    problems: tuple[str, ...] = ()


_MARK = r"(?:[-*+]\s+|\d{1,3}[.)]\s+)"
_LINE = re.compile(
    rf"\s*{_MARK}?(?:\[[ xX]\]\s+)?(?:(?:\*\*|`)?(?P<kind>list|topic|feed|rss|atom|folder)(?:\*\*|`)?\s*:(?:\*\*|`)?\s*"
    r"|(?P<guess>)(?=https?://|~/|/|<https?://|\[[^\]]*\]\(https?://))(?P<target>\S.*?)\s*",
    re.IGNORECASE,
)
_BULLET = re.compile(rf"\s*{_MARK}(?P<text>\S.*)")
_LINKED = re.compile(r"\[[^\]]*\]\((?P<url>[^\s()]+)[^()]*\).*|<(?P<angle>[^<>\s]+)>.*|(?P<bare>https?://\S+).*")
_BARE_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/|$)", re.IGNORECASE)
_YES = frozenset({"true", "yes"})
_NO = frozenset({"", "false", "no"})
_STRAY_CONSENT = re.compile(r"^\s*(?:[-*+]\s+)?confirmed\s*:", re.MULTILINE | re.IGNORECASE)
_TOPIC = re.compile(r"[a-z0-9][a-z0-9-]{0,49}")
_FEED = re.compile(r"\.(?:xml|rss|atom|rdf)$|/(?:feed|rss|atom)(?:[/.]|$)|\bfeed\.json$", re.IGNORECASE)
_CREDENTIALS = re.compile(r"//[^/\s@]*@")
"""Credentials in an address, which are removed from problems, since these are printed and logged."""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def parse_sources(body: str, confirmed: object) -> SourcesNote:
    """Parse the sources in the note's body: list items such as `- feed: https://…`, or an address alone.

    `confirmed`: the field of that name; only `true` or `yes` confirms.
    """
    sources: dict[str, Source] = {}
    problems: list[str] = []
    for _, line in unfenced(_COMMENT.sub("", body).splitlines()):
        bullet = _BULLET.fullmatch(line)
        if line.lstrip().startswith("#") or (bullet is None and not _LINE.fullmatch(line)):
            continue
        read = _source(line)
        if isinstance(read, Source):
            sources.setdefault(read.identity, read)
        else:
            shown = _CREDENTIALS.sub("//…@", bullet["text"] if bullet else line.strip())
            problems.append(f"{shown[:120]!r}: {read}")
    kept = tuple(sources.values())[:MAX_SOURCES]
    if len(sources) > MAX_SOURCES:
        problems.append(f"more than {MAX_SOURCES} sources: the rest is left out")
    said = "" if confirmed is None else str(confirmed).strip().lower()
    is_yes = said in _YES and isinstance(confirmed, bool | str)
    if not is_yes and said not in _NO:
        problems.append(f"`confirmed: {said[:40]}` is neither true nor false: nothing is fetched")
    elif confirmed is None and _STRAY_CONSENT.search(body):
        problems.append("`confirmed:` stands in the text: it belongs into the properties, between two lines of ---")
    return SourcesNote(is_yes, kept, tuple(problems))


def _source(line: str) -> Source | str:
    match = _LINE.fullmatch(line)
    if match is None:
        return "write list:, topic:, feed: or folder: and what it is"
    kind, target = (match["kind"] or "").lower(), match["target"].strip("`\"' ")
    if (linked := _LINKED.fullmatch(target)) is not None:  # what follows an address is a remark
        target = (linked["url"] or linked["angle"] or linked["bare"]).strip("`\"'")
    kind = "feed" if kind in ("rss", "atom") else kind
    if not kind:
        kind = "folder" if target.startswith(("/", "~/")) else "feed" if _FEED.search(target.split("?")[0]) else "list"
    if kind == "topic":
        topic = target.split()[0].removeprefix("https://github.com/topics/").strip("/").lower()
        topic = "" if len(target.split()) > 1 and not target.split()[1].startswith(("#", "(", "<!")) else topic
        return Source("topic", topic) if _TOPIC.fullmatch(topic) else "a topic is letters, digits and hyphens"
    if kind == "folder" and target.startswith(("/", "~/")):
        return Source("folder", target)
    if canonical_url(target) is None:
        if _BARE_HOST.match(target):
            return f"write the whole address: https://{target[:80]}"
        return "it is no address" if kind != "folder" else "give an absolute path, ~/…, or a folder on GitHub"
    if "@" in urlsplit(target).netloc:
        return "an address with a name or password in it is not fetched"
    if target.startswith("http://") and not is_own_machine(target):
        return "only https is fetched"
    if kind == "list":
        return Source("list", target)
    return Source("feed", target) if kind == "feed" else Source("folder", target)


def is_own_machine(url: str) -> bool:
    """Whether a URL names localhost or an address number of the own network."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def place_of(url: str) -> tuple[tuple[str, int], ...]:
    """Return the host and port of an address; none if it names none."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ()
    return ((parts.hostname, port),) if parts.hostname else ()


DEFAULT_SOURCES = (
    "https://raw.githubusercontent.com/anthropics/anthropic-cookbook/main/README.md",
    "https://raw.githubusercontent.com/hesreallyhim/awesome-claude-code/main/README.md",
    "https://raw.githubusercontent.com/punkpeye/awesome-mcp-servers/main/README.md",
    "https://raw.githubusercontent.com/Shubhamsaboo/awesome-llm-apps/main/README.md",
)

SOURCES_TITLE = "Sources of skill discovery"
SOURCES_BODY = f"""\
This is a proposal. Nothing is fetched before you have set `confirmed: true` in this note's properties.
After that `memory skills discover`, and the worker once a week, asks each of these for what is new.

Add, change and remove lines as you like:

{chr(10).join(f"- list: {url}" for url in DEFAULT_SOURCES)}

What a line may be:

```text
- list: https://github.com/owner/repository        a README or any page of markdown
- topic: claude-code-skills                        repositories with this topic on GitHub
- feed: https://example.org/feed.xml               RSS, Atom or JSON
- folder: ~/src/skills                             a folder with SKILL.md files, or one on GitHub
```
"""
