"""Recognise random strings and placeholders. Used by `scrub`.

Every pattern takes time linear in the length of the text: bounded or unambiguous repetitions, no nesting.
"""

from __future__ import annotations

import re

from .secret_model import MIN_TOKEN_CHARS

CANDIDATE = re.compile(r"(?<![\w+/~.-])[\w~+/.-][\w+/=.~:!%@-]{11,}")
"""Matches a run of at least 12 token characters."""

# Random for each page or request, so that it gives no access later.
OF_ONE_PAGE = re.compile(
    r"(?:authenticity_?token|request_?verification_?token|[cx]srf[\w-]{0,30}|\bnonce|viewstate)"
    r"[\"']{0,2}(?:\s{1,4}(?:content|value))?\s{0,3}[=:]\s{0,3}[\"']?\Z",
    re.IGNORECASE,
)

# --- placeholders of secrets ---

_NAMED_PLACEHOLDER = re.compile(
    # At the beginning of a word: "Sunset-Rose-12" is none.
    r"(?:(?<![a-z])|(?<=api|key))(?:your|insert|replace|enter|put|add|change|fill|paste|set)"
    r"(?:[\W_]?(?:me|your|my|the|in|this|here|own|it|a|an)?[\W_]|(?:me|your|this|it)\Z)|\byour"
    r"|placeholder|redacted|dummy|todo|goes[\W_]?here|[_-]here\b|not[-_ ]?set|notused"
    r"|(?i:x{4,}|\*{3,}|\.{3,}|_{6,}|#{4,})",
    re.IGNORECASE,
)
_NEVER_SECRETS = frozenset(
    """
    password passwd passphrase pass pwd pw secret secrets token tokens key keys apikey api_key api-key credentials
    credential auth null none nil true false undefined void empty optional required string str text bytes bool int
    number any object char yes no on off is are was were be been has have had in on at of for from to and or not
    with without the a an it its this that these those will would should must can could may might only also just
    same new old invalid valid wrong missing expired expires refresh basic bearer digest example sample test testing
    foo bar baz input output hidden value type field name username user login env file files path import return
    default generator based auth-token session csrf access id_token access_token refresh_token bearertoken
    authorization header headers request response prompt change changes reset hash hashed hashing protected
    management manager storage store policy policies length count limit limits usage budget window format
    """.split()  # noqa: SIM905  a list of literals would take a page
)
_REFERENCE = re.compile(
    r"""
      :[A-Za-z_]\w*\W?\Z
    | \$\{?\w | \$[({] | \#\{ | \{\{? | %[\w({] | <[^>]*>?\s*\Z | <[a-zA-Z%$] | \[ | \( | @\w+[@.({] | `
    | (?:process\.|os\.|env\.|environ|getenv|ENV\[|System\.|config[.\[]|settings[.\[]|self\.|this\.|props\.
        |params[.\[]|req\.|request\.|args\.|secrets?\.|vault:|data\.|var\.|local\.|options\.|ctx\.|context\.
        |new\ |await\ |function\b|lambda\b|async\b)
    """,
    re.VERBOSE,
)
_CALL_OR_PATH = re.compile(
    r"[A-Za-z_][\w.]*\(|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|[A-Za-z_][\w.]*(?:->|::|\[)"
    r"|[a-z]+Password\Z"
)
_ONE_CHARACTER = re.compile(r"(.)\1*\Z", re.DOTALL)
_FILLED_X = re.compile(r"x{5,}", re.IGNORECASE)
_REPEATED = re.compile(r"((.)(?!\2).{1,3}?)\1{3,}\Z")
_COUNTED = re.compile(r"0?12345678|0{8,}|abcdefgh|a1b2c3|d4c3b2|z1y2x3|x9y8z7|z9y8x7", re.IGNORECASE)


def is_reference(value: str) -> bool:
    """Whether a value refers to a secret instead of being one: a variable, a template, a call."""
    return _REFERENCE.match(value.lstrip("\\")) is not None


def is_placeholder(value: str, quoted: bool) -> bool:
    """Whether a value is a placeholder of a secret, or refers to one."""
    bare = value.strip("'\"`,;\\")
    # Also the first of a form's rules for a field: "required|min:8".
    if not bare or bare.lower().partition("|")[0] in _NEVER_SECRETS or is_reference(bare):
        return True
    if _ONE_CHARACTER.match(bare) or _NAMED_PLACEHOLDER.search(bare):
        return True
    if quoted or _CALL_OR_PATH.match(bare) is None:
        return False
    # `config.token` is a reference; `hvb.JGb7zaCk…` has a random part.
    return not any(looks_random(part) for part in re.split(r"[^A-Za-z0-9]+", bare))


def is_filled(value: str) -> bool:
    """Whether the value is filled with x's or a count ("12345678"), as in documentation."""
    if "xxxxxxxx" in value.lower() or (_FILLED_X.search(value) and len(set(value.lower())) < 16):
        return True
    return len(value) >= 16 and (_COUNTED.search(value) is not None or _REPEATED.search(value) is not None)


def is_cut(text: str, start: int, end: int) -> bool:
    """Whether only the beginning of a key is shown ("ghp_abc..."); a whole key may stand before dots, too."""
    return end - start < MIN_TOKEN_CHARS and text.startswith(("…", "..."), end)


_STANDS_FOR = re.compile(r"YOUR|_HERE|PLACEHOLDER|DUMMY|REDACTED")
"""Only in capitals: a random string spells other words by chance."""


_DATE_PART = re.compile(r"(?:19|20)\d\d(?:[01]\d[0-3]\d)?")


def is_described(token: str) -> bool:
    """Whether only words, numbers and dates follow an issuer's prefix ("xoxb-my-bot-token").

    The name of a note may look like this: "sk-learn-notes-2026".
    """
    parts = [part for part in re.split(r"[-_.]", token) if len(part) > 3 and not _DATE_PART.fullmatch(part)]
    words = [part[:-1] if part[-1].isdigit() else part for part in parts]
    if len(words) > 1 and all(word.isalpha() and not _mixed_at_random(word) for word in words):
        return True
    return _STANDS_FOR.search(token) is not None


# --- random strings ---

_CLASS_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_VOWEL_GAP = re.compile(r"[bcdfghjklmnpqrstvwxz]{5,}")


def looks_random(text: str) -> bool:
    """Whether an alphanumeric string looks random. False for hexadecimal digits: hashes are no secrets.

    Runs of one class (lower, upper, digit) have a mean length of 1.7 in random strings over 62 characters, and of over
    3 in names made of words.
    """
    if len(text) < 16 or _is_hex(text):
        return False
    runs = _CLASS_RUN.findall(text)
    if not runs:
        return False
    characters = sum(map(len, runs))
    digits = sum(len(run) for run in runs if run[0].isdigit())
    has_upper = any(run[0].isupper() for run in runs)
    has_lower = any(run[0].islower() for run in runs)
    mean_run = characters / len(runs)
    if len(set(text)) < min(12, len(text) // 2):
        return False
    if has_upper and has_lower:
        return (digits >= 2 and mean_run <= 2.5) or (len(text) >= 24 and mean_run <= 1.95)
    return False


def looks_chosen(value: str) -> bool:
    """Whether a value looks like a password or a key: letters and digits, or mixed case."""
    if len(value) < 8:
        return False
    has_digit = any(character.isdigit() for character in value)
    has_letter = any(character.isalpha() for character in value)
    if has_digit and has_letter:
        return any(len(part) >= 8 and not part.isalpha() for part in re.split(r"[\s/\\.:]", value)) or len(value) >= 16
    return has_letter and len(value) >= 14 and _mixed_at_random(value)


def _mixed_at_random(value: str) -> bool:
    runs = _CLASS_RUN.findall(value)
    if not runs:
        return False
    if _VOWEL_GAP.search(value.lower()):
        return True
    mixed = any(run[0].isupper() for run in runs) and any(run[0].islower() for run in runs)
    return mixed and sum(map(len, runs)) / len(runs) <= 2.2


def _is_hex(text: str) -> bool:
    return not text.strip("0123456789abcdef") or not text.strip("0123456789ABCDEF")


_IDENTIFIER = re.compile(r"[A-Za-z]+[0-9]{0,2}(?:[_.-][A-Za-z]+[0-9]{0,2}|[_.-][0-9]{1,4})*\Z")


def is_identifier(value: str) -> bool:
    """Whether a value is words joined by _ - or ., perhaps numbered, or in camelCase."""
    if not _IDENTIFIER.match(value):
        return False
    return all(not looks_random(part) for part in re.split(r"[_.-]", value))
