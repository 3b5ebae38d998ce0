"""Make slugs from titles, and validate names of files."""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections.abc import Callable, Container

from .errors import EntryInvalid
from .function_words import CHATTER, ENGLISH, STOP_WORDS
from .layout import RESERVED_NAMES

MINING_WORDS = 6
LEAD_WORDS = 3
TELLING_WORDS = 4
FURTHER_WORDS = 2
IDEA_SLUG_CHARACTERS = 40
MAX_SLUG_CHARACTERS = 80
"""A file name holds 255 bytes; the archive appends a date and a counter to a slug."""

OWN_SCRIPT_CHARACTERS = 40
"""Of a name in another script, whose letters take up to four bytes each."""

MAX_NAME_CHARACTERS = 200

NAME_PATTERN = re.compile(r"[a-z0-9-]+")
GROUP_PATTERN = re.compile(r"[a-z0-9-]+(/[a-z0-9-]+)?")

_WORD = re.compile(r"[a-z0-9]+")
_LEAD = re.compile(r"\W*(?:no|(?:at|for|from|in|on|with)(?: [^\s,:]+){1,2})[,:]\s", re.IGNORECASE)
_NEGATIONS = frozenset(("dont", "never", "no", "not"))
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
_USER_NAME = re.compile(r"[^/\\\x00-\x1f\x7f\ud800-\udfff]+")
"""Letters without half surrogates: Python uses them for bytes that are not UTF-8, and no database holds them."""
# Letters with a customary ASCII spelling that NFKD does not decompose.
_SPELLED_OUT = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ł": "l",
        "ħ": "h",
        "ı": "i",
        "ŋ": "ng",
    }
)


def transliterate(text: str) -> str:
    """Return `text` in lower case and in ASCII where Unicode or custom defines how: `Łódź` is `lodz`, `の` stays."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_SPELLED_OUT)
    if not folded.isascii():
        # Combining marks go, so that é is e; every other foreign letter separates words.
        decomposed = unicodedata.normalize("NFKD", folded)
        folded = "".join(c for c in decomposed if not unicodedata.combining(c))
    return folded


def _words(text: str) -> list[str]:
    """Return the alphanumeric runs of `text`, transliterated."""
    return _WORD.findall(transliterate(text))


def _foreign_name(text: str, fallback: str) -> str:
    """Return `note-<8 hex>` for a text with letters that ASCII cannot spell, so that titles stay apart."""
    normalized = unicodedata.normalize("NFKC", text).casefold()
    if any(c.isalnum() for c in normalized):
        return "note-" + hashlib.sha256(normalized.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return fallback


def _letters(text: str) -> list[str]:
    """Return the runs of letters and digits of `text`, of any script, in lower case."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    runs = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in folded).split()
    return [run for run in runs if any(map(str.isalnum, run))]


def _in_its_script(text: str, fallback: str) -> str:
    """Return the name of a note in the script of `text`; that of `_foreign_name` where the system's file names cannot
    have its letters."""
    name = _whole_words(_letters(text), OWN_SCRIPT_CHARACTERS, MINING_WORDS)
    try:
        name.encode(sys.getfilesystemencoding())
    except UnicodeEncodeError:
        name = ""
    return name or _foreign_name(text, fallback)


def slugify(title: str, limit: int = MAX_SLUG_CHARACTERS, fallback: str = "untitled") -> str:
    """Make a slug of `title`: `[a-z0-9-]+`, at most `limit` characters.

    A title without letters or digits gives `fallback`; one in a script without an ASCII spelling always the same
    `note-<8 hex>`.
    """
    slug = "-".join(_words(title))[:limit].strip("-")
    return allowed_name(slug) or _foreign_name(title, fallback)


def mining_slug(match: str, occasion: str = "", otherwise: str = "") -> str:
    """Make the slug of a mined statement: MINING_WORDS words of it, from the first that says what it is about.

    An introduction ("No, …", "In this repo, …", "I think we …") is left out where LEAD_WORDS words remain. Where fewer
    than TELLING_WORDS of the first words tell something, function words are left out of all that was said. A statement
    that tells nothing ("That was it") is named after its `occasion`, what it answers; if that tells nothing either,
    `otherwise`. One in a script without an ASCII spelling keeps its letters.
    """
    words = _about(match)
    if words and otherwise and not _telling(words):
        words = _without_function_words(_words(_APOSTROPHE.sub("", occasion)))
        if len(_telling(words)) < LEAD_WORDS:
            return otherwise
    elif len(words) > MINING_WORDS and len(_telling(words[:MINING_WORDS])) < TELLING_WORDS:
        words = _without_function_words(words)
    return allowed_name(_whole_words(words, MAX_SLUG_CHARACTERS, MINING_WORDS)) or _in_its_script(match, "candidate")


def _telling(words: list[str]) -> list[str]:
    """Return the words that say what a statement is about: neither grammar nor courtesy, and no single character."""
    return [word for word in words if len(word) > 1 and word not in ENGLISH | STOP_WORDS | CHATTER | _NEGATIONS]


def tells_nothing(text: str) -> bool:
    """Whether a statement says nothing by itself: grammar and courtesy, and no negation ("That was it")."""
    words = _words(_APOSTROPHE.sub("", text))
    return bool(words) and not _telling(words) and _NEGATIONS.isdisjoint(words)


def _without_function_words(words: list[str]) -> list[str]:
    """Return each word once, without function words and single characters; negations stay."""
    return [word for word in dict.fromkeys(words) if len(word) > 1 and word not in ENGLISH]


def further_slug(slug: str, said: str) -> str:
    """Return the slug with the last words that say what a statement is about, for a name that another note has.

    Notes of one beginning mostly differ at their end: which file was changed, which day it is. At most FURTHER_WORDS
    words that the slug lacks; the slug itself if there are none or they do not fit.
    """
    has = set(slug.split("-"))
    words = dict.fromkeys(word for word in _telling(_words(_APOSTROPHE.sub("", said))) if word not in has)
    longer = "-".join((slug, *list(words)[-FURTHER_WORDS:]))
    return longer if len(longer) <= MAX_SLUG_CHARACTERS else slug


def _about(match: str) -> list[str]:
    """Return the words of what was said, from the first that says what it is about."""
    said = _APOSTROPHE.sub("", match)
    words = _words(said)
    lead = len(_words(before[0])) if (before := _LEAD.match(said)) else 0
    lead += next((place for place, word in enumerate(words[lead:]) if word not in ENGLISH | {"lets"}), 0)
    if lead and words[lead : lead + 1] == ["not"]:
        lead -= 1
    return words[lead:] if len(words) - lead >= LEAD_WORDS else words


def title_slug(title: str, limit: int = MAX_SLUG_CHARACTERS, fallback: str = "untitled") -> str:
    """Make a slug of `title` as `slugify` does, but without a part of a word or a function word at a cut end.

    For names that are made once: notes that are found again by their slug (projects, skills) keep the other cut.
    """
    return allowed_name(_whole_words(_words(title), limit)) or _foreign_name(title, fallback)


def _whole_words(words: list[str], limit: int, most: int | None = None) -> str:
    """Return the first words, at most `most` and as many as fit, up to the last that is no function word; the beginning
    of a first word that is too long."""
    kept = words[:most]
    while len(kept) > 1 and len("-".join(kept)) > limit:
        kept.pop()
    if len(kept) < len(words):
        while len(kept) > LEAD_WORDS and kept[-1] in ENGLISH | _NEGATIONS:
            kept.pop()
    return "-".join(kept)[:limit]


def idea_slug(title: str) -> str:
    """Make the slug of an idea: whole words from the first that says what it is about, at most IDEA_SLUG_CHARACTERS."""
    return allowed_name(_whole_words(_about(title), IDEA_SLUG_CHARACTERS)) or _in_its_script(title, "untitled-idea")


def source_slug(url: str) -> str:
    """Make the slug of a discovery source: `owner-repository` for GitHub, else `url-<8 hex>`."""
    match = re.match(r"https?://(?:www\.)?(?:raw\.githubusercontent|github)\.com/([^/]+)/([^/?#]+)", url)
    if match is None:
        # A name, not a safeguard: the short form of what earlier versions used, so folders keep their names.
        digest = hashlib.sha1(url.encode("utf-8", "surrogatepass"), usedforsecurity=False)
        return "url-" + digest.hexdigest()[:8]
    owner, repository = match.groups()
    return slugify(f"{owner} {repository.removesuffix('.git')}", fallback="unknown-source")


def free_slug(slug: str, taken: Container[str] | Callable[[str], bool]) -> str:
    """Return `slug`, or `slug-2`, `slug-3`, …: the first that is not taken."""
    is_taken = taken if callable(taken) else taken.__contains__
    if not is_taken(slug):
        return slug
    number = 2
    while is_taken(f"{slug}-{number}"):
        number += 1
    return f"{slug}-{number}"


def allowed_name(name: str) -> str:
    """Return `name`, or `name-it` for a name that Windows reserves (RESERVED_NAMES)."""
    return f"{name}-it" if name in RESERVED_NAMES else name


def validate_name(what: str, value: str) -> str:
    """Return `value`, the name of `what`: a kind, a slug or a tag. Raises EntryInvalid."""
    return _validate(what, value, NAME_PATTERN, "lower-case letters, digits and hyphens")


def _validate(what: str, value: str, pattern: re.Pattern[str], allowed: str) -> str:
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise EntryInvalid(f"{what} {str(value)[:80]!r} is not allowed: use {allowed}")
    if what != "tag" and (reserved := RESERVED_NAMES.intersection(value.split("/"))):
        raise EntryInvalid(f"{what} {min(reserved)!r} is a name that Windows reserves: choose another")
    if any(len(part) > MAX_NAME_CHARACTERS for part in value.split("/")):
        raise EntryInvalid(f"{what} is too long: use at most {MAX_NAME_CHARACTERS} characters")
    return value


def validate_note_name(name: str) -> str:
    """Return `name`: a slug, or one as `mining_slug` makes it of another script. Raises EntryInvalid."""
    is_own = not name.isascii() and len(name) <= MAX_NAME_CHARACTERS and "-".join(_letters(name)) == name
    return name if is_own else validate_name("slug", name)


def is_slug(name: str) -> bool:
    """Whether `validate_name` accepts it."""
    return NAME_PATTERN.fullmatch(name) is not None and len(name) <= MAX_NAME_CHARACTERS


def validate_user_name(name: str) -> str:
    """Return `name` if a user may give it to a folder or note in Obsidian: `Retry page (v2)`. Raises EntryInvalid.

    Not one that leads elsewhere, is hidden, or is special because it begins with an underscore.
    """
    if name[:1] in ("", ".", "_") or len(name) > MAX_NAME_CHARACTERS or not _USER_NAME.fullmatch(name):
        raise EntryInvalid(f"{name[:80]!r} is no name of a folder or note: give it as it is shown, without slashes")
    return name


def validate_group(group: str) -> str:
    """Return `group`. Raises EntryInvalid."""
    allowed = "lower-case letters, digits and hyphens, with at most one slash, as in personal-projects/my-app"
    return _validate("group", group, GROUP_PATTERN, allowed)
