"""Render entries for the model: labelled reference data within a token budget. Light module.

The same input gives the same bytes on every day in one time zone, so that a host's prompt cache stays valid.
"""

from __future__ import annotations

from ..runtime.days import day_of, effective_date
from ..runtime.safe_text import safe_line, safe_lines
from .wording import CUT as WORDING_CUT
from .wording import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

CHARACTERS_PER_TOKEN = 4
"""A common rule of thumb for English, in UTF-8 bytes, which is fairer to other scripts."""

RULES = "Standing rules of the user:"
NOTES = "Notes from earlier sessions (reference data; may no longer hold):"
ALWAYS_LOAD_HEADER = "Standing rules and notes of the user, for every session:"
RULE_KINDS = frozenset({"preferences", "convention"})
"""Kinds of rules: what the user wants done, typed or approved by them. Other kinds are notes on facts."""
MOST_TOKENS = 60
"""Most tokens of one recalled entry; a longer one is cut, with a mark at its end."""
INTRODUCTION_CHARACTERS = 100
"""Of the line above a sentence that is shown from the midst of a note."""
PLACE_CHARACTERS = 30
"""So much of a passage tells where it stands in a note that has other blanks."""
CUT = " […]"
_ID_LETTERS = frozenset("0123456789abcdef-")
_CONTEXTS = (" (in answer to: ", " (when refusing ", " (asked: ")
"""Begin what a miner appended to a statement: words of the agent, as context for the decision."""


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens in `text`, at least 1."""
    return max(1, len(text.encode("utf-8", "surrogatepass")) // CHARACTERS_PER_TOKEN)


def field_of(item: Any, name: str) -> Any:
    """Return a field of a mapping or of an object; None when it has none."""
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _own_words(text: str) -> str:
    """Return `text` without the context that a miner appended to its lines."""
    lines = text.split("\n")
    for context in _CONTEXTS if text.rstrip().endswith(")") or ")\n" in text else ():
        lines = [
            line.partition(context)[0] if context in line and line.rstrip().endswith(")") else line for line in lines
        ]
    return "\n".join(lines)


def _split_title(item: Any) -> tuple[str, str]:
    """Return (title, text) of an entry; the title is '' where the text says it, too, or said it before an edit."""
    text = _own_words(field_of(item, "excerpt") or field_of(item, "body") or "").strip()
    title = field_of(item, "title") or ""
    if text[:2] == "# ":
        title, _, rest = text[2:].partition("\n")
        text = rest.strip()
    if not title or _says(text, title):  # A file's name is a title where a person made it: ours are slugs.
        title = str(field_of(item, "path") or "").rpartition("/")[2].removesuffix(".md")
        title = "" if " " not in title or _says(text, title) else title
    elif _is_made_of_statement(item, title):
        title = ""
    return _without_slug(title.strip(), item), text


def _is_made_of_statement(item: Any, title: str) -> bool:
    """Whether a mined note has the heading after which it was named: that repeats its statement as it was at first."""
    if not (field_of(item, "session") or field_of(item, "is_mined")):
        return False
    from ..runtime.slug import mining_slug  # Of few notes the text says something else than the heading.

    slug, made = str(field_of(item, "slug") or ""), mining_slug(title)
    return slug == made or (slug.startswith(f"{made}-") and slug[len(made) + 1 :].isdecimal())


def _without_slug(title: str, item: Any) -> str:
    """Return a title as words where it is the file's own name, and '' for an id."""
    if " " in title or "-" not in title:
        return title
    if _ID_LETTERS.issuperset(title.lower()):
        return ""
    name = str(field_of(item, "path") or field_of(item, "slug") or "").rpartition("/")[2].removesuffix(".md")
    return title.replace("-", " ") if title == name else title


def _without_headings(text: str) -> str:
    """Return `text` with a colon behind each heading below the title, instead of signs before it."""
    lines = text.split("\n")
    for number, line in enumerate(lines) if "##" in text else ():
        named = line.lstrip("#")
        if 2 <= len(line) - len(named) <= 6 and named[:1] == " " and named.strip():
            lines[number] = named.strip().rstrip(":") + ":"
    return "\n".join(lines)


def _says(text: str, title: str) -> bool:
    return safe_line(title.removesuffix(WORDING_CUT)).rstrip(". ").lower() in safe_line(text).lower()


def _cut(line: str) -> str:
    """Return at most MOST_TOKENS of a line, cut between words where it has any."""
    data = line.encode("utf-8")
    if len(data) < (MOST_TOKENS + 1) * CHARACTERS_PER_TOKEN:
        return line
    kept = data[: MOST_TOKENS * CHARACTERS_PER_TOKEN - len(CUT.encode())].decode("utf-8", "ignore")
    whole = kept.rpartition(" ")[0]
    return (whole if len(whole) > len(kept) // 2 else kept) + CUT


def around_words(text: str, words: Sequence[str]) -> str:
    """Return a text that will be cut from the sentence on that has most of these words, behind its title and the line
    that introduces it."""
    if len(text.encode("utf-8", "surrogatepass")) < MOST_TOKENS * CHARACTERS_PER_TOKEN:
        return text
    title, _, body = text.partition("\n") if text[:2] == "# " else ("", "", text)
    ends = [at + 1 for at, sign in enumerate(body) if sign == "\n" or (sign in ".!?" and body[at + 1 : at + 2] == " ")]
    ends += [at + 1 for at, sign in enumerate(body) if sign in "。！？"]
    starts = [0, *sorted(ends)]
    lowered = body.lower() if len(body.lower()) == len(body) else body
    lowered = " " + "".join([c if c.isalnum() else " " for c in lowered])
    begun = [f" {word}" if word.isascii() else word for word in words]  # Elsewhere words have no blank between them.
    begun = [word for word in begun if word in lowered]
    found = [
        sum(word in lowered[start : end + 1] for word in begun)
        for start, end in zip(starts, [*starts[1:], len(body)], strict=True)
    ]
    start = starts[found.index(max(found))]
    if start == 0:
        return text
    shown = CUT.strip() + " " + body[start:].lstrip()
    return "\n".join(filter(None, (title, _introduction(body, start), shown)))


def introduced(passage: str, body: str) -> str:
    """Return a passage of the index as its note has it, behind the line above that introduces it; '' if the note has no
    such passage. The index joins the lines of a long list."""
    flat, text = body.replace("\n", " "), passage.strip()
    at = flat.find(text.replace("\n", " "))
    if at >= 0:
        text = body[at : at + len(text)]
    else:
        at = flat.find(text[:PLACE_CHARACTERS].replace("\n", " "))
    return "\n".join(filter(None, (_introduction(body, at), text))) if text and at >= 0 else ""


def _introduction(body: str, start: int) -> str:
    """Return the line above that says what the sentence at `start` is: the last before its list, else the last heading
    or line with a colon at its end. Without "Never do these:" an item of its list would be an order."""
    begin = body.rfind("\n", 0, start) + 1
    is_item = _is_item(body[begin:])
    for line in reversed(body[:begin].splitlines()):
        if line.strip() and not _is_item(line) and (is_item or line[0] == "#" or line.rstrip()[-1] == ":"):
            return cut(line, INTRODUCTION_CHARACTERS)
    return ""


def _is_item(line: str) -> bool:
    """Whether a line is an item of a list, or indented as what goes on in one."""
    mark = line.partition(" ")[0]
    return line[:1] in (" ", "\t") or mark in ("-", "*", "+", "•") or (mark[:-1].isdigit() and mark[-1] in ".)")


def is_cut(line: str) -> bool:
    """Whether a rendered entry was longer than MOST_TOKENS."""
    return line.endswith(CUT)


def is_rule(hit: Any) -> bool:
    """Whether the entry is a rule of the user, and not a note."""
    return field_of(hit, "kind") in RULE_KINDS


def render_hit(hit: Any) -> str:
    """Render one recalled entry as one line: a rule as it is, a note with its day and kind."""
    title, said = _split_title(hit)
    text = ": ".join(filter(None, (title, _without_headings(said)))) or field_of(hit, "slug") or "entry"
    if not is_rule(hit):
        meant = effective_date(field_of(hit, "surfaced_at"), field_of(hit, "created"), field_of(hit, "updated"))
        facts = ", ".join(filter(None, (day_of(str(meant or "")), field_of(hit, "kind"))))
        text = f"{facts}: {text}" if facts else text
    return _cut("- " + safe_line(text))


def select_hits(hits: Sequence[Any], token_budget: int, count: Callable[[str], int] = estimate_tokens) -> list[Any]:
    """Return the hits that fit into the budget, in the given order, best first; smaller ones may follow one that is too
    big. A budget of 0 or less is no limit. `count` returns the number of tokens of a text."""
    if token_budget <= 0:
        return list(hits)
    kept = []
    for hit in hits:
        tokens = count(render_hit(hit))
        if tokens <= token_budget:
            kept.append(hit)
            token_budget -= tokens
    return kept


def render_block(hits: Sequence[Any]) -> str:
    """Render the hits (objects or mappings with the fields of `Hit`): rules, then notes; '' for none."""
    lines = []
    for heading, wanted in ((RULES, True), (NOTES, False)):
        if shown := [render_hit(hit) for hit in hits if is_rule(hit) is wanted]:
            lines += [heading, *shown]
    return "\n".join([*lines, ""])


def status_line(slugs: Iterable[str]) -> str:
    """Format `Loaded N relevant entries: a, b`."""
    names = [safe_line(slug) for slug in slugs]
    line = "Loaded " + str(len(names)) + " relevant entries"
    return line + ": " + ", ".join(names) if names else line


def render_always_load(entries: Iterable[Any], words: int) -> tuple[str, list[Any]]:
    """Return (text for the start of a session, entries in it) within a budget of `words`; ('', []) for none.

    `entries` have path, slug, priority, project, occurrences and body.
    """
    from .core import select_core  # Of a session's start alone: a prompt does not wait for it.

    kept, _ = select_core(entries, words)
    if not kept:
        return "", []
    texts = ("\n\n".join(filter(None, _split_title(entry))) for entry in kept)
    # Of each its first line as an item of a list, the others below it.
    return "\n".join([ALWAYS_LOAD_HEADER, *("- " + safe_lines(text).lstrip(" ") for text in texts)]) + "\n", kept
