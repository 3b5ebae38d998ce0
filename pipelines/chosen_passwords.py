"""Find passwords that a person chose, in sentences: by the words before them and by their shape. Used by `scrub`.

`log in as admin / Word!871Word$` has no word like "password", but few other tokens have the shape of its last one.
Which shapes count depends on the words before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from .secret_patterns import is_filled, is_placeholder


class Shape(IntEnum):
    """How much a token looks like a password that a person chose."""

    NONE = 0
    MARKED = 1
    """Letters with a digit or a sign: counts only after a word for "password"."""
    MIXED = 2
    """Capitals, small letters and digits, joined by a sign that joins words: "Visitor_1789"."""
    SIGNED = 3
    """Letters and digits with signs that join no words: "Word!871Word$"."""


PASSWORD_WORDS = (
    r"pass(?:word|wd|phrase|code)s?|pass|pwd?|passwort|kennwort|losung|contrase[nñ]a|mot\s+de\s+passe|senha|clave"
    r"|parola|wachtwoord|l[oö]senord(?:et)?|has[lł]o|пароль|mdp|[sş]ifre(?:si|miz|n)?|salasana|heslo|jelsz[oó]"
)
_UNSPACED = r"(?:密[码碼]|口令)(?:[是为為]|(?=[：:]))|パスワードは?|비밀번호[는은]?"
"""Words of languages that put no space around a word."""
_PASSWORD = re.compile(
    rf"(?i)(?<![\w/.-])(?:{PASSWORD_WORDS}|[a-z]{{1,12}}passw(?:or)?d"
    r"|(?:db|root|master|user|admin|mail|ssh|sudo|require)pass)(?:'s)?(?![\w(=.-])"
    rf"|(?:{_UNSPACED})(?![(=.-])|(?<=[A-Za-zäöü]-)(?-i:Kennwort|Passwort)\b"
)
_LOGIN = re.compile(
    r"(?i)(?<![\w/.-])(?:log(?:ged|ging|s)?[ -]?(?:in(?:to)?|on|ins)|sign(?:ed|ing)?[ -]?in|get in|creds?|credentials?"
    r"|accounts?|users?|username|admin|administrator|root|guest|ssh|s?ftp|connect|basic auth|enter|try"
    r"|(?:unlock|decrypt|authenticat|open (?:the|my) (?:zip|pdf|archive|safe|vault|disk|backup))\w{0,3}"
    r"\b[^\n.;]{0,50}?\s(?:with|using|use|by)"
    r"|benutzer(?:name)?|zugang(?:sdaten)?|anmelde\w{1,6}|usuario|utilisateur|identifiants?)(?![\w(=-]|\.\w)"
)
SAYS_PASSWORD = re.compile(rf"(?i)\b(?:{PASSWORD_WORDS})\b|{_UNSPACED}|密[码碼]")
_SAID_BEFORE = re.compile(
    rf"(?i)(?<![^\s\"'`(])(?P<value>[^\s\"'`]{{6,64}})[\"'`]?\s(?:as|is|for|als|ist|como|comme)\s"
    rf"(?:[\w-]{{1,12}}\s){{0,3}}"
    rf"(?:{PASSWORD_WORDS})\b"
)
_PHRASE = re.compile(
    r"(?i)\b(?:passphrase|password|passwort)\b[^\n\"'`.;]{0,40}?(?:\bis|\bto|\bist|:|=)\s{0,3}"
    r"(?P<q>[\"'`])(?P<value>[^\"'`\n]{0,60}\d[^\"'`\n]{0,60})(?P=q)"
)
_TOKEN = re.compile(r"[^\s\"'`„“”«»]+")
_NEXT_TOKENS = 8
_INTRODUCES = re.compile(r"(?i)(?:is|was|are|be|to|as|ist|lautet|war|es|est|é|è|são|[-–—=/]|=>|->)\Z|[^:：]*[:：]\Z")
_STRONG = frozenset("!#$%^&*?@§~+€")
_CODE = frozenset("()[]{}<>|\\;,")
_MAIL_OR_PACKAGE = re.compile(
    r"[\w.+/@-]+@(?:[\w-]+\.)*[A-Za-z-]{2,}\Z|@?[\w./-]+@[v^~]?\d[\w.+-]*\Z|@[\w.-]+/\S+\Z"
    r"|@(?:[\w-]+\.)+[a-z]{2,}(?:[:/]\S*)?\Z|@[\w-]+:\d{2,5}(?:/\S*)?\Z"
)
_ENCODED = re.compile(r"%(?:2[0-9A-F]|3[A-F]|40|5[BD]|7[BD]|[C-F][0-9A-F])|%\d*[a-z]\b|&\w+=|\?\w+=|&\w+;|\w+=")
_NUMBERED = re.compile(r"[\w./]*#\d+\Z|[A-Za-z]+\+\+\d*\Z|\+?\d[\w.]*[+%*]?\Z|[*&#@]?\*{0,2}\w+\Z")
_VERSION = re.compile(r"(?:[A-Za-z]+[-_/]?)?v?\d+(?:\.[\dx]+)+(?:[-+.]?\w+)*\Z")
_NUMBERED_NAME = re.compile(r"(?:[A-Za-z]+_)*[A-Za-z]+\d\Z|(?=.{1,7}\Z)[A-Za-z_]+\d{1,2}\Z")
"""Matches words joined by underscores with one digit, as the name of a thing: "Editor_2", "Pin_17"."""
_NUMBERED_WORD = re.compile(r"[A-Za-z]+-?\d+\Z")
_WORD_OF_A_PERSON = re.compile(r"(?:[A-Za-z]{7,}-?\d|[A-Za-z]{5,}-?\d\d)\d*\Z")
"""Matches a longer word with a number, which is seldom a technical term ("sha256", "argon2")."""
_WITH_A_CRY = re.compile(r"(?=.{8})(?=[a-z]*[A-Z])[A-Za-z]+\d\d+[!?*]+\Z")
"""Matches a word with a capital, digits and "!" or the like at its end, as many sites ask for."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
MOST_MIXED_CHARS = 24
"""Longer tokens are not typed; `scrub` judges whether they are random."""
_WORDS = re.compile(r"[A-Z][a-z]{2,}|[a-z]{3,}|[A-Z]{2,}")
_ALGORITHM = re.compile(r"(?i)aes|rsa|hmac|sha\d|chacha|poly1305|ed25519|argon|oauth|saml|oidc|auth\d|keychain|vault")
"""Matches in the names of ciphers and protocols, with or for which something is unlocked."""
_INNER_DIGIT = re.compile(r"[A-Za-z]\d+[A-Za-z]")
_LEET = re.compile(r"[A-Za-z][013457]+[a-z]{2}")
"""Matches digits that stand for letters within a word: "K1ngfisher"."""
_FILE = re.compile(r"\.(?:[a-z]{1,4}|mp\d)(?::\d+)*\Z")


def shape_of(token: str) -> Shape:
    """Return the shape of a token."""
    bare = token.rstrip(".")
    if (
        not 5 <= len(bare) <= 64
        or not _CODE.isdisjoint(bare)
        or "://" in bare
        or bare.startswith(("-", "/", "./", "~/"))
    ):
        return Shape.NONE
    digits = any(character.isdigit() for character in bare)
    lower = any(character.islower() for character in bare)
    upper = any(character.isupper() for character in bare)
    if (
        not (lower or upper)
        or _DATE.match(bare)
        or is_placeholder(bare.lstrip("@"), quoted=True)
        or is_filled(bare)
        or _MAIL_OR_PACKAGE.match(bare)
    ):
        return Shape.NONE
    inner = bare.rstrip("!?*").lstrip("#$&*+") if digits else bare.strip("".join(_STRONG))
    strong = not _STRONG.isdisjoint(inner)
    if strong and not _ENCODED.search(bare) and not _NUMBERED.match(bare) and (digits or (lower and upper)):
        return Shape.SIGNED if digits or len(bare) >= 8 else Shape.MARKED
    if _VERSION.match(bare) or ("/" in bare and not strong) or _FILE.search(bare) or "=" in bare:
        return Shape.NONE
    joined = any(character in "-_." for character in bare[1:-1])
    if _WITH_A_CRY.match(bare):
        return Shape.MIXED
    if (
        not _ALGORITHM.search(bare)
        and digits
        and lower
        and upper
        and len(bare) <= MOST_MIXED_CHARS
        and (joined or _INNER_DIGIT.search(bare))
        and not (_is_name(bare) or _NUMBERED_WORD.match(bare) or _NUMBERED_NAME.match(bare))
    ):
        return Shape.MIXED
    return Shape.MARKED if digits or strong else Shape.NONE


def _is_name(token: str) -> bool:
    """Whether the token is made of words, as the name of a class or constant: "OAuth2Login", "MAX_2"."""
    return (
        _LEET.search(token) is None
        and "." not in token
        and token.replace("_", "").isalnum()
        and ("_" not in token or token.upper() == token)
        and 4 * sum(map(len, _WORDS.findall(token))) >= 3 * sum(map(str.isalpha, token))
    )


def chosen_passwords(text: str) -> Iterator[tuple[int, int]]:
    """Yield [start, end) of each password in the text."""
    for intro in _PASSWORD.finditer(text):
        yield from _after(text, intro, is_password=True)
    for intro in _LOGIN.finditer(text):
        yield from _after(text, intro, is_password=False)
        yield from _before(text, intro)
    for match in _SAID_BEFORE.finditer(text):
        if shape_of(match["value"]) and _is_no_term(match["value"]):
            yield match.span("value")
    for match in _PHRASE.finditer(text):
        if not is_placeholder(match["value"], quoted=True):
            yield match.span("value")


def _after(text: str, intro: re.Match[str], *, is_password: bool) -> Iterator[tuple[int, int]]:
    """Yield the first token after an introduction, on its line, with a shape that suffices there."""
    line_end = text.find("\n", intro.end(), intro.end() + 160)
    line_end = line_end if line_end >= 0 else min(len(text), intro.end() + 160)
    before = intro.group()
    for count, token in enumerate(_TOKEN.finditer(text, intro.end(), line_end)):
        if count >= _NEXT_TOKENS:
            return
        at, word = _bare(token)
        shape = shape_of(word)
        introduced = _INTRODUCES.match(before) is not None
        if not is_password:
            is_pair = before == "/" or (count == 0 and text[intro.end()] == ":" != token.group())
            if _CREDENTIALS.match(intro.group()):
                is_pair = (
                    is_pair
                    or (count == 2 and text[intro.end()] == ":")
                    or before in _PAIRS
                    or (at > token.start() and text[at - 1] in ":/")
                )
            least = Shape.MARKED if is_pair and _is_no_term(word) else Shape.MIXED
        elif (
            introduced
            or (count == 0 and not (_NUMBERED_WORD.match(word) or (_is_name(word) and not _SHORT.match(intro.group()))))
            or _WORD_OF_A_PERSON.match(word)
        ):
            least = Shape.MARKED
        else:
            least = Shape.MIXED
        if shape >= least and shape:
            yield at, at + len(word)
            return
        before = token.group()


def _is_no_term(word: str) -> bool:
    return len(word) >= 6 and (not _NUMBERED_WORD.match(word) or _WORD_OF_A_PERSON.match(word) is not None)


def _before(text: str, intro: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the tokens just before "… to log in" that look like nothing but a password."""
    low = max(0, intro.start() - 60)
    low = max(low, text.rfind("\n", low, intro.start()) + 1)
    while 0 < low < intro.start() and not text[low - 1].isspace():
        low += 1
    for token in _TOKEN.finditer(text, low, intro.start()):
        at, word = _bare(token)
        if shape_of(word) == Shape.SIGNED:
            yield at, at + len(word)


_SHORT = re.compile(r"(?i)pwd?\Z")
"""Matches a word that is no part of a compound, as in "password OAuth2Login"."""
_CREDENTIALS = re.compile(r"(?i)cred|basic auth|zugangsdaten|identifiant")
_PAIRS = frozenset({"and", "und", "et", "y", "/"})
_PAIR = re.compile(r"[A-Za-z][\w.@-]{0,40}[/:,](?=[^/\s])")


def _bare(token: re.Match[str]) -> tuple[int, str]:
    """Return start and text of a token without punctuation around it; of `user/password` the second part."""
    word, at = token.group(), token.start()
    stripped = word.lstrip("([{<*_/:：,")
    at += len(word) - len(stripped)
    if (pair := _PAIR.match(stripped)) is not None:
        at += pair.end()
        stripped = stripped[pair.end() :]
    return at, stripped.rstrip(").,;:]}>")
