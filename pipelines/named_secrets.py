"""Find secrets by their name: `password = …`, `Authorization: …`, `--token …`. Used by `scrub`.

Every pattern takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .chosen_passwords import SAYS_PASSWORD, chosen_passwords
from .secret_checks import DATE, MOMENT, PROSE, is_joined
from .secret_model import MIN_TOKEN_CHARS
from .secret_patterns import OF_ONE_PAGE, is_cut, is_filled, is_identifier, is_placeholder, looks_chosen
from .secret_rules import INTRODUCED

_PASSWORD_NAME = r"(?<!NO)pass(?:word|wd|phrase|code)s?|pswd|pwd|passwort|contrase[nñ]a"
_KEY_NAME = (
    r"secret(?:[_.\s-]?(?:access[_.\s-]?)?key)?s?|tok(?:en)?s?|api[_.\s-]?key|apikey|access[_.\s-]?key"
    r"|account[_.\s-]?key|auth[_.\s-]?key|"
    r"private[_.\s-]?key|encryption[_.\s-]?key|signing[_.\s-]?key|license(?:[_.\s-]?key)?|deploy"
    r"(?:ment)?[_.\s-]?key|device[_.\s-]?key|"
    r"master[_.\s-]?key|shared[_.\s-]?key|preshared[_.\s-]?key|unseal[_.\s-]?key|client[_.\s-]?srt"
    r"|session[_.\s-]?key|subscription[_.\s-]?key|"
    r"service[_.\s-]?key|connect[_.\s-]?key|integration[_.\s-]?key|instrumentation[_.\s-]?key|host[_.\s-]?key"
    r"|consumer[_.\s-]?key|"
    r"app[_.\s-]?key|write[_.\s-]?key|query[_.\s-]?key|server[_.\s-]?key|credentials?|creds?|auth|authorization"
    r"|bearer|pat|salt|postmark|sendgrid|mailgun|crumb|"
    r"api[- ]?(?:schl[uü]ssel|ключ|キー|키)|(?:cl[eé]|clave|chiave|chave|ключ)\s(?:d['’]|d[ae]\s)?api|[密秘]钥|"
    r"facebook[_.]?key|linkedin[_.]?key|twitter[_.]?key|[a-z]{2,12}_key|key_?base"
)
# A name, and what may stand between it and its value: quotes, brackets, a type, an operator.
_NAME = re.compile(
    rf"(?:(?P<password>{_PASSWORD_NAME}|(?<=_)pass|(?<=-)pass|\bpass(?==)|(?-i:(?<=[A-Z])PASS)(?==)"
    r"|(?<=[\"'])pass(?=[\"']\s?(?::|=>)\s?[\"'])|(?<![A-Za-z])(?:pw|psk)(?=[\"'\s]{0,3}[:=])|(?<=[A-Z]_)PW(?=\s?[=:]))"
    rf"|(?P<key>{_KEY_NAME}))"
    r"(?=(?P<after>[\w.-]{0,30}))(?P=after)"  # A possessive match, as Python 3.11.2 can do it too.
    r"(?P<gap>[\"'\\\])}>]{0,4}\s{0,12}(?:,\s{0,4}|(?:=>|[:=!]=?=?|：|:=|->|<-|\||[-–—] ?(?=[\"'`]))\s{0,12}){1,2}"
    r"(?:![\w-]{1,20} )?"
    r"|\s{0,4}['\"]?\s+is:?\s+)",
    re.IGNORECASE,
)
_PASSWORD_IN_NAME = re.compile(r"pass(?:w|$)|pwd", re.IGNORECASE)
# The patterns are tried only in a text with one of these words.
_NAME_HINTS = (
    "pass", "pswd", "pwd", "pw:", "pw=", "pw ", 'pw"', "psk", "contrase", "secret", "tok", "key", "licens", "cred",
    "auth", "bearer", "api", "密钥", "秘钥",
    "pat:", "pat=", 'pat"', "pat'", "_pat", "salt", "postmark", "sendgrid", "mailgun", "crumb",
)  # fmt: skip
MAX_SPACES = 3
"""A value with more blanks is a sentence, not a passphrase."""
MAX_PHRASE_CHARS = 64
_VALUE = re.compile(r"(?P<lead>(?:[\\]*[\"'`]){1,3})?(?P<value>[^\s\"'`]{1,2000})")
# In source code a value ends at the same quote; inside a string, where quotes are escaped, at the next backslash.
_QUOTED = re.compile(
    r"(?P<q>[\"'`])[\"'`]{0,2}(?P<value>(?:(?!(?P=q))[^\n\\]|\\[^\n]){1,2000})|\\{1,4}[\"'`]{1,3}"
    r"(?P<escaped>[^\"'`\n\\]{1,2000})"
)
_EMPTY = re.compile(r"[\\]*(?:\"[\\]*\"|'[\\]*')")
# An ampersand ends a value where another parameter or command begins; elsewhere it is part of the password.
_VALUE_END = re.compile(r"[,;)\]}<>|]|&(?=&|\Z|amp;|[\w.%-]{1,40}=)|\\[nrt\"']|\Z")


def named_secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, kind) of each secret with a name, of the rules' and of passwords in sentences."""
    lowered = text.lower()
    if any(hint in lowered for hint in _NAME_HINTS):
        yield from _assignments(text)
    for start, end in chosen_passwords(text):
        yield start, end, "PASSWORD"
    for rule in INTRODUCED:
        for match in rule.pattern.finditer(text) if any(sign in lowered for sign in rule.signs) else ():
            start, end = rule.span(match)
            value = text[start:end].rstrip(".,;:)\\")
            if text.startswith(" ", start + len(value)):
                value = _to_quote(text, start, start) or value
            if rule.check(match, value):
                yield start, start + len(value), rule.kind


def _assignments(text: str) -> Iterator[tuple[int, int, str]]:
    position = 0
    while (name := _NAME.search(text, position)) is not None:
        word = name.group("password") or name.group("key")
        if word.lower() in _SHORT_NAMES and _goes_on(word, name.group("after")):
            position = name.start() + len(word)
            continue
        position = name.end()
        value, value_start, quoted = _value_after(text, name)
        if not value:
            continue
        password = name.group("password") is not None or _PASSWORD_IN_NAME.search(name.group("after")) is not None
        if password:
            secret = _is_password(text, name, value, value_start, quoted)
        else:
            is_of_page = OF_ONE_PAGE.search(text, max(0, value_start - 60), value_start) is not None
            secret = (
                not is_of_page
                and _is_key(name, value, quoted)
                and not is_cut(text, value_start, value_start + len(value))
            )
        if secret:
            yield value_start, value_start + len(value), "PASSWORD" if password else "API-KEY"
            position = value_start + len(value)


_SHORT_NAMES = frozenset({"pass", "pat", "tok", "toks", "salt", "auth"})
_OF_AUTH = re.compile(r"orization|entication|token|key|secret|data|code|pass|pwd|cookie|header|string", re.IGNORECASE)


def _goes_on(word: str, after: str) -> bool:
    """Whether the name is only the beginning of another word: `num_patches`, `length_passive`, `authorEmail`."""
    return after[:1].isalpha() and after[0].isupper() == word[-1].isupper() and _OF_AUTH.match(after) is None


_DOTS = re.compile(r"\.\.\.|…")


def _value_after(text: str, name: re.Match[str]) -> tuple[str, int, bool]:
    at = name.end()
    if _EMPTY.match(text, at):
        return "", at, True
    if (quoted := _QUOTED.match(text, at)) is not None:
        group = "value" if quoted.group("value") is not None else "escaped"
        value = quoted.group(group).rstrip()
        if (dots := _DOTS.search(value)) is not None and dots.start() >= MIN_TOKEN_CHARS:
            value = value[: dots.start()]
        quote = quoted.group("q")
        closed = not quote or text.startswith(quote, quoted.end())
        if not closed and value.count(" ") > (MAX_SPACES if name.group("password") else 0):
            # A sentence follows: the value was its first word.
            return value.partition(" ")[0].rstrip(".,:;"), quoted.start(group), False
        return value, quoted.start(group), True
    bare = _VALUE.match(text, at)
    if bare is None:
        return "", at, False
    value = bare.group("value")
    # `Password=abc;Database=…`, `token=abc&x=…`, `{token: abc}`.
    if (whole := _to_quote(text, name.start(), bare.start("value"))) is not None and whole.startswith(value + " "):
        return whole, bare.start("value"), True
    if (stop := _VALUE_END.search(value)) is not None and stop.start() > 0:
        value = value[: stop.start()]
    return value.rstrip(".,:"), bare.start("value"), bool(bare.group("lead"))


def _to_quote(text: str, opening: int, start: int) -> str | None:
    """Return the text from `start` to the quote that closes the one before `opening`: `'pw=two words'`.

    None without such quotes, or if a sentence stands between.
    """
    while opening > 0 and (text[opening - 1].isalnum() or text[opening - 1] in "_.-"):
        opening -= 1  # The beginning of a name: "DB_" of DB_PASSWORD.
    quote = text[opening - 1 : opening]
    if not quote or quote not in "\"'":
        return None
    close = text.find(quote, start, start + MAX_PHRASE_CHARS)
    value = text[start:close] if close > start else "\n"
    return value if value.count(" ") <= MAX_SPACES and "\n" not in value else None


_CALL_OR_OPTION_BEFORE = re.compile(r"(?:\(\s{0,20}[\"'][\w.-]{0,40}|[\"']--?[\w-]{0,30})\Z")


def _is_when(name: re.Match[str], value: str) -> bool:
    """Whether the value says when something was: `research_pass: 2026-03-01T10:00:00Z`, `password_changed: 2026-03-01`.

    A date alone after the word "password" is taken for the password: many are birthdays.
    """
    if DATE.fullmatch(value):
        return bool(name.group("after")) or (name.group("password") or "").lower() == "pass"
    return MOMENT.fullmatch(value) is not None


def _is_password(text: str, name: re.Match[str], value: str, start: int, quoted: bool) -> bool:
    gap = name.group("gap")
    if len(value) < 3 or is_placeholder(value, quoted) or is_filled(value) or _is_when(name, value):
        return False
    if SAYS_PASSWORD.fullmatch(value):
        return False
    if _PAIR_BEFORE.search(text, max(0, name.start() - 60), name.start()) and gap.strip() in ("=", ":"):
        return True
    after = name.group("after").lower()
    if after.startswith(("less", "_hash_alg", "_policy", "_length", "_min", "_max", "_reset", "_url")):
        return False
    if after.endswith(("file", "path")) and "/" in value:
        return False
    is_short = name.group("password") in _SHORT_WORDS
    if is_short and not quoted and is_identifier(value) and not any(map(str.isdigit, value)):
        return False
    if after in ("manager", "_manager", "-manager"):  # `password_manager: 1Password`; `…_manager_key` may be one.
        return False
    if quoted:
        if "," in gap and (_IS_NAME.match(text, start + len(value)) or _is_one_of_a_list(text, name, value)):
            return False
        # A label or message: `"reset": "Passwort zurücksetzen"`, `errors.add(:password, "is too short")`.
        is_label = after[:1] == "." or (gap.strip() != "=" and SAYS_PASSWORD.search(value) is not None)
        if " " in value and (is_label or ("," in gap and value.count(" ") > 1)):
            return False
        return "  " not in value and value.count(" ") <= MAX_SPACES
    # `"$PASSWORD" | sha256sum` is no row of a table; `error.password.mismatch=The passwords differ` is a message.
    if "==" in gap or "!=" in gap or "," in gap or ('"' in gap and "|" in gap):
        return False
    if after.startswith(".") and not _mixes(value) and _A_WORD_FOLLOWS.match(text, start + len(value)):
        return False
    if " is" in gap:
        return any(character.isdigit() for character in value) or is_joined(value)
    if ":" in gap or " " in gap:
        # `password: word` is a setting when it has a line to itself, and prose elsewhere.
        line_end = text.find("\n", start)
        rest = text[start + len(value) : line_end if line_end >= 0 else len(text)].strip()
        if rest and not rest.startswith(("#", "//", ";", ",", "&", '"', "'", "}")):
            if _USER_BEFORE.search(text, max(0, name.start() - 100), name.start()):
                return True
            return _mixes(value) or is_joined(value) or DATE.fullmatch(value) is not None
        if not PROSE.match(value) or is_joined(value) or ":" not in gap:
            return True
        before = _line_before(text, name.start())
        return _USER_BEFORE.search(before) is not None or (_names_owner(before, rest) and not value.endswith("ed"))
    return not value.startswith(("/", "./", "http"))


_A_WORD_FOLLOWS = re.compile(r" [^\W\d_]{2}")
_IS_NAME = re.compile(r"[\"']\s{0,3}(?::|=>)")
"""Matches behind a value that is itself the name of the next one."""
_PAIR_BEFORE = re.compile(
    r"\s(?:-[dFH]|--(?:data|form|header)[\w-]{0,12})[ =]?[\"'](?:[^\"'\n]{0,40}[&?])?[\w-]{0,20}\Z"
)
"""Matches the option of curl and its like before a pair of name and value: `-H "X-User-Password: …"`."""
_USER_BEFORE = re.compile(
    r"(?i)\b(?:login|user(?:name)?|e-?mail|account)[\"']?\s?[:=]\s?\S{1,60}\s{0,3}[,;|/]?\s{0,3}\Z"
)
"""Matches the name of a user before his password, on one line."""


def _names_owner(before: str, rest: str) -> bool:
    """Whether only a few words stand before "password: word" and none after: "the vault password: word"."""
    words = before.split()
    if words and words[-1].lower() in _OF_NO_OWNER:
        return False
    return len(words) < 2 or (
        not rest
        and len(words) <= MOST_OWNER_WORDS
        and not any(is_placeholder(word, quoted=True) for word in words[1:])
        and all(word.replace("'", "").isalpha() for word in words)
    )


MOST_OWNER_WORDS = 4
_OF_NO_OWNER = frozenset({"wrong", "invalid", "missing", "expired", "incorrect", "if", "no", "without"})
_SHORT_WORDS = frozenset({"pw", "psk"})
"""In code these names mean many other things, too."""


def _is_one_of_a_list(text: str, name: re.Match[str], value: str) -> bool:
    """Whether the value only follows "password" in a list of words: `["pwd", "quit"]`, not in a call or a command."""
    if not value.isalpha() or looks_chosen(value):
        return False
    return _CALL_OR_OPTION_BEFORE.search(text, max(0, name.start() - 64), name.start()) is None


def _mixes(value: str) -> bool:
    return len(value) >= 6 and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _line_before(text: str, position: int) -> str:
    return text[text.rfind("\n", 0, position) + 1 : position]


MIN_KEY_CHARS = 10
"""No service issues shorter keys; passwords that people choose may be shorter."""


_DIGITS = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
"""Matches a long number, which is no name of code."""
_NO_SECRETS = "_id id _name name _url url _uri path _file _type _count _ttl tokens _at _field _env"
_ENDINGS_OF_NO_SECRET = tuple(_NO_SECRETS.split())
_KEYS_OF_RECORDS = frozenset(
    {"citation_key", "cite_key", "bibtex_key", "foreign_key", "sort_key", "partition_key", "cache_key"}
)
"""Keys that find a record. Not `primary_key`, which names a secret in some clouds."""


def _is_next(name: re.Match[str], value: str) -> bool:
    """Whether the value is only the next argument, or the next line, after a comma.

    Long numbers and the second half of a pair of keys ("AKIA…, wJal…") are none.
    """
    gap = name.group("gap")
    is_beside = name.string.endswith("[REDACTED-", 0, name.start())
    return "," in gap and ("\n" in gap or not (is_beside or _DIGITS.fullmatch(value)))


def _is_key(name: re.Match[str], value: str, quoted: bool) -> bool:
    if (
        is_placeholder(value, quoted)
        or is_filled(value)
        or value.startswith(("http://", "https://", "/", "./", "../", "~/", "arn:"))
    ):
        return False
    if not quoted and _is_next(name, value):
        return False
    whole = (name.group("key") + name.group("after")).lower()
    if whole in _KEYS_OF_RECORDS:
        return False
    if whole.endswith(_ENDINGS_OF_NO_SECRET):
        return False
    if " " in value or (not quoted and " is" in name.group("gap")):
        return looks_chosen(value) and " " not in value
    if "secret" in whole and quoted and len(value) >= 8 and not PROSE.match(value):
        return not is_identifier(value) or looks_chosen(value)
    if (
        "secret" in whole
        and "==" not in name.group("gap")
        and "=" in name.group("gap")
        and len(value) >= 8
        and not is_identifier(value)
    ):
        return True
    if "secret" in whole and ":" in name.group("gap") and value.isalnum() and _mixes(value) and len(value) >= 8:
        return True
    if "secret" in whole and ("!=" in name.group("gap") or "==" in name.group("gap")) and quoted:
        return len(value) >= 6 and not PROSE.match(value)
    if len(value) < MIN_KEY_CHARS or not looks_chosen(value):
        return False
    # A version, a date, a file's name, an identifier with a digit in it.
    if re.fullmatch(
        r"v?\d+(?:\.\d+){1,3}\w{0,6}|0x[0-9A-Fa-f]{1,16}|\d{4}-\d\d-\d\d\S*|[\w-]+\.(?:json|ya?ml|toml|pem|txt|md"
        r"|py|ts|go|js|key|crt|env|sql|sh)",
        value,
    ):
        return False
    return not is_identifier(value)
