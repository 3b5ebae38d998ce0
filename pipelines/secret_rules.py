"""The rules for secrets, one in each row, with an example in which ⟦ and ⟧ mark the secret; a test runs every row.

SHAPES are recognised by their form alone, in the whole text (`scrub`); INTRODUCED by the words before them, in the
lines around one of their signs (`named_secrets`). Every pattern takes time linear in the length of the text: bounded or
unambiguous repetitions, no nesting.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .chosen_passwords import Shape, shape_of
from .secret_model import UUID
from .secret_patterns import (
    OF_ONE_PAGE,
    is_filled,
    is_identifier,
    is_placeholder,
    is_reference,
    looks_chosen,
    looks_random,
)

Check = Callable[[re.Match[str], str], bool]
"""Whether a match with this value is a secret."""


class Rule(NamedTuple):
    """A kind of secret, and how it is found."""

    kind: str
    signs: tuple[str, ...]
    """The rule is tried only on text with one of these: in small letters, but for shapes."""
    pattern: re.Pattern[str]
    """The secret is the group `value`, else the last group that matched, else the whole match."""
    example: str
    check: Check

    def span(self, match: re.Match[str]) -> tuple[int, int]:
        """Range of the secret."""
        if "value" in self.pattern.groupindex and match["value"] is not None:
            return match.span("value")
        return match.span(match.lastgroup or 0)


def _any(_match: re.Match[str], _value: str) -> bool:
    return True


def _no_stand_in(_match: re.Match[str], value: str) -> bool:
    return not is_placeholder(value, quoted=True)


def _certain(_match: re.Match[str], value: str) -> bool:
    """Whether the value is no reference and no row of x's; any word counts here."""
    return not is_reference(value) and "xxx" not in value.lower()


def _stands(_match: re.Match[str], value: str) -> bool:
    if is_filled(value):
        return False
    # "Milan.Rot3" could name a field of an object as well, if nobody would choose it.
    return not is_placeholder(value, quoted=shape_of(value) >= Shape.MIXED)


def _no_prose(match: re.Match[str], value: str) -> bool:
    return _stands(match, value) and (not PROSE.match(value) or is_joined(value)) and not value.startswith("/")


def _of_user(match: re.Match[str], value: str) -> bool:
    return _certain(match, value) and not is_placeholder(match["user"], quoted=True)


def _of_option(match: re.Match[str], value: str) -> bool:
    """`-p` and `--key` also name ports, paths and fields."""
    name = match.group()[: match.start("value") - match.start()].lower()
    if not _no_prose(match, value):
        return "pass" in name and _stands(match, value) and _beside_options(match)
    return "pass" in name or "pwd" in name or looks_chosen(value)


def _beside_options(match: re.Match[str]) -> bool:
    """Whether another option stands right before or after, so that this is a command and no sentence about it."""
    text, start = match.string, match.start()
    return (
        re.search(r"\s--?[A-Za-z][\w-]{0,30}(?:[ =][^\s-]\S{0,100})?\s\Z", text[max(0, start - 140) : start])
        is not None
        or re.match(r"[\"']?\s{1,3}--?[A-Za-z]", text[match.end() : match.end() + 6]) is not None
    )


def _no_moment(match: re.Match[str], value: str) -> bool:
    return _no_prose(match, value) and MOMENT.fullmatch(value) is None


def _of_no_page(match: re.Match[str], value: str) -> bool:
    start = match.start("value")
    return _stands(match, value) and OF_ONE_PAGE.search(match.string, max(0, start - 60), start) is None


def _configured(match: re.Match[str], value: str) -> bool:
    return _stands(match, value) and (not is_identifier(value) or bool(match["call"] and match["password"]))


def _no_id(match: re.Match[str], value: str) -> bool:
    return _stands(match, value) and UUID.fullmatch(value) is None and not is_identifier(value)


def _no_id_of_words(match: re.Match[str], value: str) -> bool:
    return _no_stand_in(match, value) and not is_identifier(value)


def _with_digits(match: re.Match[str], value: str) -> bool:
    return _stands(match, value) and len(re.findall(r"\d", value)) >= 2 and any(map(str.isalpha, value))


def _of_literal(match: re.Match[str], value: str) -> bool:
    """Whether the value of a Kubernetes secret has the name of one, or its shape."""
    if re.search(r"pw|pass|psk|secret|key|token|cred|pin", match["name"]):
        return _certain(match, value)
    return _stands(match, value) and (shape_of(value) >= Shape.MIXED or looks_random(value))


def _of_call(match: re.Match[str], value: str) -> bool:
    return _certain(match, value) if not match.group().startswith(".auth") else _no_stand_in(match, value)


def _of_pair(match: re.Match[str], value: str) -> bool:
    """A name with one digit may stand after any kind of thing: `use profile:Prod-EU1`."""
    return _stands(match, value) and shape_of(value) >= (Shape.MIXED if re.search(r"\d\d", value) else Shape.SIGNED)


def _random_or_digest(match: re.Match[str], value: str) -> bool:
    return _random(match, value) or (re.fullmatch(r"[0-9a-f]{16,}", value) is not None and not is_filled(value))


def _of_record(match: re.Match[str]) -> re.Match[str] | None:
    """Match the name of a key that finds a record, before the value."""
    start = match.start("value")
    return _KEY_OF_RECORD.search(match.string, max(0, start - 100), start)


_KEY_OF_RECORD = re.compile(r"(?i)(?:public|cache|primary|sort|partition|foreign|object|record|idempotency)[ _-]key")


def _random(match: re.Match[str], value: str) -> bool:
    """Whether it is a digest or random, and the words before it name no key of a record."""
    if _of_record(match):
        return False
    if match.re.pattern.startswith(_POSSESSED) and re.fullmatch(r"[0-9a-f]{16,}", value):
        return not is_filled(value)
    plain = re.sub(r"[_-]", "", value)
    return not is_filled(value) and (
        UUID.match(value) is not None
        or re.fullmatch(r"[0-9a-f]{24,}|[\w+/]{40}", value) is not None
        or looks_random(plain)
    )


_POSSESSED = r"(?i)\b(?:my|our)\s"
"""Where the rule for "my key …" begins: there, shorter digests count, too."""


def _no_attribute(match: re.Match[str], value: str) -> bool:
    """Whether a word that ends what is said of a password is none that describes it."""
    return _stands(match, value) and _ATTRIBUTE.fullmatch(value.lower()) is None


_ATTRIBUTE = re.compile(
    r"\w*(?:ed|ing|ble|ful|less|ent|ant|ive|ous|al|ic|ly|ish|ary|ory|ain|text|where)"
    r"|(?:in|un)?(?:correct|complete|secure|safe|known|clear|sure|usual)"
    r"|(?:simpl|weak|strong|short|long|trivi|eas|hard|old|young)\w*"
    r"|(?:broken|chosen|shown|hidden|given|written|forgotten|stolen|within|behind|before|inside|elsewhere|another"
    r"|nothing|something|useless|random|unique|global|falsch|richtig|leer|abgelaufen|gesetzt)"
)


def _phrase(_match: re.Match[str], value: str) -> bool:
    """Whether none of the words makes a sentence of it."""
    words = value.split()
    return not words[0].endswith("ed") and not any(
        is_placeholder(word, quoted=True) or word in _OF_SENTENCES for word in words
    )


def _environment(match: re.Match[str], value: str) -> bool:
    """Whether it is a value; with a name like AUTH it must have a digit."""
    if not _stands(match, value) or value.startswith(("/", "http")):
        return False
    return not match["auth"] or any(map(str.isdigit, value))


def _has_digit(_match: re.Match[str], value: str) -> bool:
    return any(map(str.isdigit, value))


def _made(match: re.Match[str], value: str) -> bool:
    """Whether it has the shape of a password that a person chose."""
    return _stands(match, value) and shape_of(value) >= Shape.MARKED


def _of_router(match: re.Match[str], value: str) -> bool:
    """Whether the number of the encryption shows that it is a password, or its shape does."""
    return _certain(match, value) if match["type"] else _made(match, value)


def _several(_match: re.Match[str], value: str) -> bool:
    """Whether it has six letters and digits, at least one digit, and no word but in halves: "k7d2p-bnqvz"."""
    signs = [character for character in value if character.isalnum()]
    rest = _HALVES.sub("", value)
    return len(signs) >= 6 and any(map(str.isdigit, signs)) and re.search(r"[a-z]{5}|[A-Za-z]{9}", rest) is None


_HALVES = re.compile(
    r"\b(?=[a-z0-9-]*\d)(?:[a-z0-9]{4}-[a-z0-9]{4}|[a-z0-9]{5}-[a-z0-9]{5}|[a-z0-9]{6}-[a-z0-9]{6})(?![\w-])"
)


def _issued(match: re.Match[str], value: str) -> bool:
    return _no_id(match, value) or _several(match, value)


_OF_SENTENCES = frozenset(
    """
    too very never always still already then now what how where when if by as so no your our we you they he she any
    all every each here there than kept stored again later first
    """.split()  # noqa: SIM905  a list of literals would take a page
)
_JOINED = re.compile(r"(?!.*\b(?:and|the|for|per|out)\b)[a-z]{3,}(?:-[a-z]{3,}){2,}\Z")


def is_joined(value: str) -> bool:
    """Whether three or more words are joined as a password: "nut-hatch-forest", unlike "end-to-end"."""
    return _JOINED.match(value) is not None


PROSE = re.compile(r"[a-z]+(?:[-'][a-z]+)*[.,;:!?)]*\Z|[A-Z][a-z]+[.,;:!?)]*\Z")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
MOMENT = re.compile(DATE.pattern + r"[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?")

PASSWORD, KEY, PRIVATE_KEY = "PASSWORD", "API-KEY", "PRIVATE-KEY"


def _rule(signs: str, pattern: str, example: str, check: Check, kind: str = PASSWORD) -> Rule:
    return Rule(kind, tuple(signs.split("|")), re.compile(pattern), example, check)


_CODES = r"(?:backup|recovery|scratch|rescue|reserve|emergency|one[ _-]time)[ _-]?(?:(?:pass)?codes?|keys?|passwords?)"
_CODES = rf"(?:{_CODES}|(?:2fa|mfa)[ _-]backup(?![ _-]?[ck]))"
_GROUP = r"[A-Za-z0-9]{4,10}"
_BETWEEN = r"(?:[-*•]\s{1,3}|\d{1,2}[.)]\s{1,3})?"
"""Matches the sign of an item of a list."""
_LINE_START = r"(?:[\s>|#*+\"',]|\\{1,2}[rnt]|\d{1,6}(?:[\t|:→]|\\t)){0,24}"
"""Matches what separates the lines of a key file: line ends, quotes, numbers."""

SHAPES: tuple[Rule, ...] = (
    _rule(
        "BEGIN ",
        r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
        # Up to its end; where that is missing, the lines that follow and look like the key, quoted and numbered as
        # tools show them. Without either it is only spoken of.
        r"(?:(?:[^-]|-(?!---))*-{4,5} ?END [A-Z0-9 ]{0,40}-{4,5}"
        rf"|(?:{_LINE_START}(?:[\w+/=]{{16,}}|(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]{{1,80}}))+"
        rf"(?:{_LINE_START}[\w+/]{{0,15}}={{1,2}})?)",
        "⟦-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2Hwf583QmKbyavkgoft\n-----END EC PRIVATE KEY-----⟧",
        _any,
        kind=PRIVATE_KEY,
    ),
    _rule(
        "Private-Lines",
        r"\bPrivate-Lines: \d{1,3}\s{1,4}(?:[\w+/=]{1,80}\s{1,4}){1,80}",
        "⟦Private-Lines: 1\nAAAAIQDX5f3qmVbr2JwN0yB7kPz\n⟧",
        _any,
        kind=PRIVATE_KEY,
    ),
    # Hashes of passwords, crypt(3) and kin; Kerberos tickets as tools print them.
    _rule(
        "$",
        r"\$(?:1|2[abxy]?|[3-9]|y|gy|md5|apr1|sha1|argon2(?:id?|d)|scrypt|pbkdf2[\w-]{0,12})\$[\w./+,=$-]{20,400}",
        "root:⟦$6$saltsalt$Qm1x9Lw8Zr5Tn7Vb4Yc6Hd⟧:19000:",
        _any,
    ),
    _rule(
        "$",
        r"\$(?:krb5\w{2,6}|NT|DCC2|PHPS|S|P|H)\$[^\s'\"]{16,4000}",
        "⟦$krb5tgs$23$*web$ACME.TEST$http/web*$9f1c⟧",
        _any,
    ),
    _rule(
        "{",
        r"\{(?:SSHA|SHA|SMD5|MD5|CRYPT|PBKDF2)(?:-?\d+)?\}[\w./+=$-]{16,200}",
        "userPassword: ⟦{SSHA}0c2xWq9mZr5Tn7Vb4Yc6Hd1F⟧",
        _any,
    ),
    _rule(
        ":",
        r"(?<![\w:])[^\s:]{1,64}:\d{1,6}:[a-fA-F0-9]{32}:[a-fA-F0-9]{32}:",
        "⟦lena:1001:aad3b435b51404eeaad3b435b51404ee:8f3c1a9be07d4c52a1f09e6b7d2c4f8a:⟧",
        _any,
    ),
    # Credentials in addresses: user:password@host. Up to the last @ of the authority: many a password holds one that
    # nobody has escaped.
    _rule(
        "://",
        r"(?<=://)[^\s/:@'\"<>]{0,100}:(?P<value>[^\s/@'\"<>]{1,200}(?:@[^\s/@'\"<>?&=,;]{1,100}){0,4})@(?=[\w.\[-])",
        "postgres://shop:⟦heron⟧@db.acme.test/shop",
        _no_stand_in,
    ),
    _rule(  # Without its scheme, but with a port or a number for the host.
        "@",
        r"(?<![\w/:.@%-])[A-Za-z][\w.-]{0,40}:(?P<value>[^\s:/@'\"<>]{4,100})@"
        r"(?:[A-Za-z][\w-]{0,60}(?:\.[\w-]{1,60}){1,6}(?=:\d)|\d{1,3}(?:\.\d{1,3}){3}(?![\w.]))",
        "lena:⟦vogelbeere⟧@smtp.acme.test:587",
        _no_stand_in,
    ),
    _rule(
        "://",
        r"(?<=://)(?P<value>[A-Za-z0-9_-]{20,200})@(?=[\w.-])",
        "https://⟦k3Jx9Qm2Lw8Zr5Tn7Vb4Yc⟧@git.acme.test/shop",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(  # Encoded to be a part of another address.
        "%3A%2F%2F",
        r"(?<=%3A%2F%2F)[^\s%/@'\"<>]{0,100}%3A(?P<value>[^\s/@'\"<>]{1,200}?)%40(?=[\w.-])",
        "?next=postgres%3A%2F%2Fapp%3A⟦s3cr3tpw⟧%40db%2Fshop",
        _no_stand_in,
    ),
    # Addresses that are the secret.
    _rule(
        "hooks.slack.com/",
        r"(?<=hooks\.slack\.com/)(?P<value>(?:services|workflows|triggers)/[\w/-]{20,200})",
        "https://hooks.slack.com/⟦services/T0DCUJB1Q/B0DD08H5G/bJtrpFi1fO1JMCcwLx8u⟧",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(
        "hooks.zapier.com/hooks/",
        r"(?<=hooks\.zapier\.com/hooks/)(?P<value>catch/\d{4,12}/\w{5,20})",
        "https://hooks.zapier.com/hooks/⟦catch/7032236/6lp6r9b⟧/",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(
        ".make.com/",
        r"(?<=\.make\.com/)(?P<value>[a-z0-9]{32})(?!\w)",
        "https://hook.eu1.make.com/⟦q7wx2mfb9kzt4hjc6ndv8prs3gyl5aeu⟧",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(
        "access_token$",
        r"\baccess_token\$(?:production|sandbox)\$\w{16}\$[a-f0-9]{32}",
        "⟦access_token$sandbox$q7wx2mfb9kzt4hjc$8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧",
        _any,
        kind=KEY,
    ),
    _rule(
        "/webhooks/",
        r"(?<=/webhooks/)(?P<value>\d{15,22}/[\w-]{40,100})",
        "https://discord.test/api/webhooks/⟦112233445566778899/k3Jx9Qm2Lw8Zr5Tn7Vb4Yc6Hd1Fg0SpAk3Jx9Qm2Lw8Z⟧",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(
        "/webhook",
        r"(?:webhook\.office\.com|outlook\.office\.com|office365\.com)/webhook(?:b2)?/"
        r"(?P<value>[\w@-]{20,120}/[\w/-]{20,200})",
        "https://acme.webhook.office.com/webhookb2/"
        "⟦8c0f2c1e-51a0-4b0e-9b6c-0d2f8a9f1b22@6f0e/IncomingWebhook/8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(
        "/",
        r"(?i)/api/v\d/(?P<value>(?=[a-z0-9]*\d[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{20})(?=/)",
        "https://acme.test/api/v1/⟦q7wx2mfb9kzt4hjc6ndv⟧/send",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(  # Of a calendar that is not public: the first part that nobody would have chosen, and what follows it.
        ".ics",
        r"(?i)(?:https?|webcal)://[^\s\"'<>]{1,200}?/(?:private-)?(?P<value>"
        r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{24,200}|[0-9a-f]{20,64}@)"
        r"[^\s\"'<>?]{0,300}?)(?=/[\w-]{1,20}\.ics|\.ics)",
        "https://calendar.acme.test/ical/lena/private-⟦8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧/basic.ics",
        _no_id_of_words,
        kind=KEY,
    ),
    _rule(
        ".ics?",
        r"(?i)\.ics\?(?:[\w-]{1,30}=[^\s&]{0,100}&){0,4}[\w-]{0,20}(?:key|token|passphrase)="
        r"(?P<value>[\w%+=~-]{12,200})",
        "https://calendar.acme.test/url/1/calendar.ics?CacheKey=⟦tmhubxnuv94llea5b5ha9rmv⟧",
        _no_stand_in,
        kind=KEY,
    ),
    # A session cookie. Elsewhere hexadecimal digits may be a digest.
    _rule(
        "ookie| -b ",
        r"(?i)(?:ookies?[\"']{0,2}(?::|=|\s)|\s-b\s)[^\n]{0,200}?(?<![\w-])(?:[\w-]{1,20}[._-])?"
        r"(?:sid|sess(?:ion)?(?:[_.-]?(?:id|key|token))?|(?:php|j|asp)sess(?:ion)?id|auth(?:[_.-]?token)?)"
        r"=[\"']?(?P<value>(?=[a-z]*\d)[0-9a-z]{24,200})(?![\w-])",
        "Cookie: theme=dark; sid=⟦8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(
        "otpauth://",
        r"\botpauth://\S{1,200}?secret=(?P<value>\w{8,100})",
        "otpauth://totp/Acme:lena?secret=⟦GEHBTFNXVYDKLMNO⟧&issuer=Acme",
        _no_stand_in,
        kind=KEY,
    ),
    _rule(  # Often a list of many lines.
        "ackup|ecovery|cratch|escue|eserve c|mergency|ne-time|ne time|BACKUP|RECOVERY",
        rf"(?i)\b{_CODES}\b[^\n\d]{{0,30}}?[\s:=]{{1,3}}\[?\s{{0,3}}[\"'`]?"
        rf"(?P<value>{_BETWEEN}{_GROUP}(?:(?:[ -]|[\"']?[,;]?\s{{1,3}}[\"']?){_BETWEEN}{_GROUP}){{0,40}})(?![\w-])",
        "my recovery codes are ⟦3f9a1-c02be 77d4e-910af b3c8d-25e6f⟧",
        _several,
    ),
    _rule(  # A part of the address of a calendar that nobody would have chosen.
        "calendar|caldav|/ical|ical/|/ics|ics?|.ics|webcal",
        r"(?i)(?:webcals?://|https?://(?=[^\s\"'<>]{0,200}?(?:calendar|caldav|\bical|\bics\b)))[^\s\"'<>]{0,200}?[/=]"
        r"(?:private-)?(?P<value>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        r"|(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{16,200})(?![\w@-]|\.\w)",
        "https://acme.test/calendar/ical/⟦YGKiIyMzVsym7QELrNSmUOg2vZ7izBEi⟧",
        _random_or_digest,
        kind=KEY,
    ),
    _rule(  # An address that opens what it leads to.
        "://",
        r"https?://[^\s\"'<>?#]{1,150}/"
        r"(?:hooks?|webhooks?|login|magic|reset|invite|verify|confirm|feed|private|share|token)/"
        r"(?P<value>[A-Za-z0-9_-]{20,200})(?![\w.-]*\.)",
        "https://acme.test/invite/⟦YGKiIyMzVsym7QELrNSmUOg2vZ7izBEi⟧",
        _random,
        kind=KEY,
    ),
    # A line of .pgpass.
    _rule(
        ":",
        r"(?m)^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:(?P<value>[^\s:]{4,100})$",
        "db.acme.test:5432:shop:app:⟦trappe⟧",
        _certain,
    ),
)

INTRODUCED: tuple[Rule, ...] = (
    # ---- headers and addresses
    _rule(
        "authorization",
        r"(?i)\b(?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
        r"(?:(?:bearer|basic|token|apikey|api-key|api-token|digest|negotiate|aws4-hmac-sha256)\s{1,4})?"
        r"(?P<value>[^\s\"',;]{6,2000})",
        "curl -H 'Authorization: Basic ⟦bGVuYTpLcmFuaWNo⟧'",
        _stands,
        kind=KEY,
    ),
    _rule(
        "x-",
        r"(?i)\bx-[\w-]{0,40}(?:key|token|auth|secret|session)[\"']?\s{0,2}[:=]\s{0,2}[\"']?"
        r"(?P<value>[\w.~+/=-]{8,2000})",
        "curl -H 'X-Acme-Key: ⟦8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧'",
        _with_digits,
        kind=KEY,
    ),
    _rule(
        "bearer",
        r"(?i)\bbearer:?\s{1,4}(?P<value>[\w.~+/=-]{12,2000})",
        "with bearer ⟦k3Jx9Qm2Lw8Zr5Tn⟧",
        _no_prose,
        kind=KEY,
    ),
    _rule(
        "sig=|signature=|key=|code=",
        # Elsewhere these name a field of a table or the signature of a function.
        r"(?i)(?:[?&]|&amp;)(?:key|sig|code|(?:x-(?:amz|goog)-)?signature)="
        r"(?=(?P<value>(?=[^\s&]{0,100}\d)(?=[^\s&]{0,100}[a-z])[\w%+=~-]{20,2000}))(?P=value)(?!\.?[\w/])",
        "https://maps.acme.test/geo?key=⟦3f8a9c2b7d914f6a8e052d4e⟧",
        _no_id,
        kind=KEY,
    ),
    # ---- options of programs
    _rule(
        "pass|pwd|token|secret|key| -p",
        r"(?i)(?<![\w-])(?:--?(?:[a-z]{1,12}-){0,3}(?:(?:store|key|http)?(?:password|passwd|passphrase|pass|pwd)|token"
        r"|secret|api-?key|access-?key|auth-?token|client-?secret|key)|-p)"
        r"[=\s]{1,4}[\"']?(?P<value>[^\s\"']{4,500})",
        "gpg --batch --passphrase ⟦Milan-Rot3⟧ -d file.gpg",
        _of_option,
    ),
    _rule(
        "curl|wget|http -a|xh -a|--user|--auth|-user",
        r"(?i)(?<![\w-])(?:-[a-z]{0,6}u|-a|--user|--proxy-user|--auth)[=\s]{0,3}[\"']?[^\s:\"'/]{1,100}:[\"']?"
        r"(?P<value>[^\s\"'@/]{3,200})",
        "curl -su 'lena:⟦Wolke#7x⟧' https://nexus.acme.test/raw/",
        _stands,
    ),
    _rule(
        "-passin|-passout|-pass",
        r"-pass(?:in|out)?[= ]pass:(?P<value>[^\s\"']{3,200})",
        "openssl rsa -in key.pem -passin pass:⟦habicht⟧ -out plain.pem",
        _stands,
    ),
    _rule(
        "psexec|wmic|net use|schtasks|cmdkey|sqlcmd|mongo|sshpass|rdesktop|xfreerdp",
        r"(?i)\b(?:psexec|wmic|net use|schtasks|cmdkey|sqlcmd|mongo(?:sh)?|sshpass|rdesktop"
        r"|xfreerdp)\b[^\n]{0,200}?\s[-/]p[\s:]\s{0,3}[\"']?(?P<value>[^\s\"']{3,200})",
        "xfreerdp /v:win1 /u:lena /p:⟦amselstar⟧",
        _certain,
    ),
    _rule(
        "ipmitool|mosquitto|zip|sqlcmd|bcp",
        r"\b(?:ipmitool|mosquitto_(?:pub|sub)|zip|unzip|sqlcmd|bcp)\b[^\n]{0,200}?\s-P\s{0,3}[\"']?"
        r"(?P<value>[^\s\"']{3,200})",
        "mosquitto_pub -h mq -u sensor -P ⟦kauzruf⟧ -t a",
        _certain,
    ),
    _rule(
        "mysql|mariadb|sshpass|7z|rar",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|7z[ar]?|unrar|rar)\b[^\n]{0,200}?\s-p[\"']?"
        r"(?P<value>[^\s\"'=]{4,100})",
        "mysqldump -h db -p⟦s3cr3tpw⟧ shop > dump.sql",
        _stands,
    ),
    _rule(
        "docker login|podman login|registry login|az login",
        r"\b(?:docker|podman|helm\s+registry|az)\s+login\b[^\n]{0,200}?\s-p[=\s]\s{0,3}[\"']?"
        r"(?P<value>[^\s\"']{3,200})",
        "docker login -u bot -p ⟦habicht⟧ registry.acme.test",
        _stands,
    ),
    _rule(
        "redis-cli",
        r"\bredis-cli\b[^\n]{0,200}?\s-a\s{1,4}[\"']?(?P<value>[^\s\"']{3,200})",
        "redis-cli -h cache -a ⟦s3cr3tpw⟧ ping",
        _stands,
    ),
    _rule(
        "htpasswd",
        r"\bhtpasswd\s+-\w{0,4}b\w{0,4}\s+(?:[^\s\"']{1,200}\s+)?[\w.@-]{1,100}\s+[\"']?(?P<value>[^\s\"']{3,200})",
        "htpasswd -nb bob ⟦s3cr3tpw⟧",
        _stands,
    ),
    _rule(
        "openssl",
        r"\bopenssl\b[^\n]{0,200}?\s-k\s{1,4}[\"']?(?P<value>[^\s\"']{3,200})",
        "openssl enc -aes256 -k ⟦s3cr3tpw⟧ -in a",
        _stands,
    ),
    _rule(
        "ldap",
        r"\bldap\w{2,10}\b[^\n]{0,200}?\s-w\s{1,4}[\"']?(?P<value>[^\s\"']{3,200})",
        "ldapsearch -x -D cn=admin,dc=acme -w ⟦reiher⟧ -b dc=acme",
        _certain,
    ),
    _rule(
        "snmp|ssh-keygen",
        r"\b(?:snmp\w{2,10}\b[^\n]{0,200}?\s-[AXc]|ssh-keygen\b[^\n]{0,200}?\s-[NP])\s{1,4}[\"']?"
        r"(?P<value>[^\s\"']{3,200})",
        "snmpget -v3 -u ops -A ⟦gansente⟧ host sysName.0",
        _certain,
    ),
    _rule(
        "lftp|smbclient|rpcclient",
        r"\b(?:lftp|smbclient|rpcclient)\b[^\n]{0,200}?\s-[uU]\s{0,3}[\"']?[\w.\\@/-]{1,60}[%,]"
        r"(?P<value>[^\s\"']{3,200})",
        "smbclient //nas/share -U lena%⟦frosch⟧",
        _certain,
    ),
    _rule(
        "net use",
        r"(?i)\bnet use\b[^\n]{0,120}?\\\\\S{1,120}\s"
        r"(?:(?P<value>(?![/\\])[^\s\"']{3,100})\s/user:|/user:\S{1,100}\s[\"']?(?P<second>(?![/\\])[^\s\"']{3,100}))",
        "net use Z: \\\\nas\\share ⟦storchnest⟧ /user:lena",
        _certain,
    ),
    _rule(
        "sudo|stdin|passphrase-fd|su -c",
        r"\b(?:echo|printf|yes)\s(?:-\w\s|[\"']%s(?:\\n)?[\"']\s)?"
        r"(?P<q>[\"']?)(?P<value>(?:[^\s\"'|\\]|(?<=\w) (?=\w+[^\n|]{0,60}(?P=q))){3,100})(?:\\n)?(?P=q)\s?\|\s?"
        r"(?:[\w=./-]{1,60}\s){1,8}?"
        r"(?:-[A-Za-z]{0,6}S\b|(?<=su )-c\b|--(?:pass(?:word|phrase)-)?stdin\b|--passphrase-fd\b)",
        "echo ⟦Haselnuss⟧ | sudo -S apt-get update",
        _certain,
    ),
    _rule(
        "<<<|-s ",
        r"\b(?:sudo|passwd|cryptsetup|gpg|su|kinit|openssl|secret)\b[^\n]{0,120}?"
        r"(?:<<<\s?|<<-?\s?[\"']?\w{1,20}[\"']?\n)(?P<q>[\"']?)(?P<value>(?:[^\s\"']|(?<=\w) (?=\w)){3,100})(?P=q)",
        'sudo -S <<< "⟦Maulwurf⟧" reboot',
        _certain,
    ),
    _rule(
        "chpasswd",
        r"[\"'\s][a-z_][\w.-]{0,31}:(?P<value>[^\s\"':|]{3,100})[\"']?\s?\|\s?(?:sudo\s)?chpasswd",
        "echo 'lena:⟦uhuwald⟧' | sudo chpasswd",
        _certain,
    ),
    _rule(
        "secret set|secrets set|put-parameter|put-secret|create-secret|encrypt",
        r"\b(?:secret\sset|put-parameter|put-secret-value|create-secret)\s[^\n]{0,120}?"
        r"(?:--body|-b|--value|--secret-string)[=\s][\"']?(?P<value>[^\s\"']{3,500})"
        r"|\b(?:secrets\sset\s[A-Z]\w{2,60}[=\s]|ansible-vault\sencrypt_string\s)[\"']?(?P<second>"
        r"(?!-)[^\s\"']{3,500})",
        'gh secret set DEPLOY --body "⟦auerhahn⟧"',
        _certain,
    ),
    _rule(
        "from-literal",
        r"--from-literal[=\s][\"']?(?P<name>[\w.-]{1,60})=[\"']?(?P<value>[^\s\"']{3,500})",
        "kubectl create secret generic db --from-literal=pw=⟦gurke⟧",
        _of_literal,
    ),
    _rule(
        "net user|rabbitmqctl|mc alias",
        r"\b(?:net\suser|rabbitmqctl\s(?:add_user|change_password)|mc\salias\sset\s\S{1,60}\s\S{1,200})"
        r"\s(?![/-])[\w.-]{1,60}\s(?P<value>(?![/*-])[^\s\"']{3,200})",
        "rabbitmqctl add_user lena ⟦vogelbeere⟧",
        _certain,
    ),
    _rule(
        "jdbc:oracle|sqlplus",
        r"(?:\bjdbc:oracle:\w{2,6}:|\bsqlplus\s(?:-\w\s){0,2})[\"']?\w{1,60}/(?P<value>[^\s\"'@/]{3,100})@",
        "sqlplus lena/⟦trappe⟧@db1",
        _certain,
    ),
    _rule(
        "app password|app-password|app-specific",
        r"(?i)\bapp(?:-specific)?[ -]password\b[^\n]{0,20}?[\s:=\"'](?P<value>[a-z]{4}(?:[ -][a-z]{4}){3})(?![\w-])",
        "gmail app password: ⟦kvqz hdmw prts uxyj⟧",
        _any,
    ),
    # ---- files of settings
    _rule(
        "login|account|user",
        r"\b(?:login|account|user(?:name)?):?\s{1,40}(?P<user>[\w.@-]{1,100})\s{1,40}(?:and\s)?"
        r"(?:password|passwd|pwd?|pass(?=:)):?\s{1,40}(?:\d\s)?"
        r"(?P<value>[^\s\"']{3,200})",
        "machine files.acme.test login web password ⟦raberabe⟧",
        _of_user,
    ),
    _rule(
        "privilege|enable secret",
        r"\b(?:enable|username\s\S{1,60}(?:\sprivilege\s\d{1,2})?)\s(?:secret|password)\s(?P<type>\d\s)?"
        r"(?P<value>\S{3,200})",
        "username ops privilege 15 password 0 ⟦blaesshuhn⟧",
        _of_router,
    ),
    _rule(
        "rootpw",
        r"\brootpw\s(?:--\w{1,20}\s)?(?P<value>[^\s\"']{3,200})",
        "rootpw ⟦stieglitz⟧",
        _certain,
    ),
    _rule(
        "value=|value =",
        r"(?i)(?:key|name)\s{0,2}=\s{0,2}[\"'][^\"']{0,80}(?:password|passwd|pwd|secret|token|apikey|api_key|accesskey)"
        r"[\"']\s{1,4}value\s{0,2}=\s{0,2}[\"'](?P<value>[^\"']{3,500})",
        '<add key="SmtpPassword" value="⟦pirolgelb⟧" />',
        _of_no_page,
    ),
    _rule(
        "</",
        r"(?i)<(?P<tag>[\w:.-]{0,40}(?:password|passwd|pwd|secret|token|apikey|privatekey)[\w]{0,20})"
        r"(?:\s[^<>]{0,200})?>"
        r"\s{0,20}(?P<value>[^<>\s]{4,2000})\s{0,20}</",
        "<smtpPassword>⟦pirolgelb⟧</smtpPassword>",
        _stands,
    ),
    _rule(
        "api|secret|token|password",
        r"(?i)(?P<call>\(\s{0,20})?['\"][\w.-]{0,40}(?:api_?key|secret|token|(?P<password>password))[\w]{0,20}['\"]"
        r"\s{0,4},\s{0,4}[\\'\"]{1,4}(?P<value>[^\s'\"\\]{6,500})",
        "define('DB_PASSWORD', '⟦Moa+Kiwi99⟧');",
        _configured,
        kind=KEY,
    ),
    _rule(
        "password|pwd",
        r"(?i)(?:user ?id|uid|user|server|data source|database|initial catalog|driver|host)\s{0,2}=[^;\n]{1,100};"
        r"[^\n]{0,300}?\b(?:password|pwd)\s{0,2}=\s{0,2}(?P<value>[^;\"'\s]{3,100})(?=[;\"'\s]|\Z)",
        "Server=db;User Id=sa;Password=⟦secret⟧;Database=x",
        _certain,
    ),
    # ---- code and databases
    _rule(
        "credential|directoryentry|usernamepassword|basicauth|login|auth(|auth=|auth =|authenticate(",
        r"(?i)(?:\bauth\s?=|NetworkCredential|DirectoryEntry|Credential|UsernamePassword\w*|BasicAuth"
        r"|login|\.auth(?:enticate)?)\s{0,2}\("
        r"(?:\s{0,20}[\"'][^\"'\n]{0,200}[\"']\s{0,4},){1,2}\s{0,20}[\"'](?P<value>[^\"'\n]{3,200})[\"']\s{0,4}[,)]",
        "new NetworkCredential('bob', '⟦heron⟧')",
        _of_call,
        kind=KEY,
    ),
    _rule(
        "requirepass|identified by|with password|password for|password is|passcode is",
        r"(?i)(?:requirepass(?:\sis)?|identified by|with password|password for \S{1,60} is|password is|passcode is)"
        r"\s{1,4}[\"']?(?P<value>[^\s\"']{3,200})",
        "ALTER USER shop IDENTIFIED BY '⟦Goldammer.4⟧';",
        _no_moment,
    ),
    _rule(
        "password for",
        r"(?i)password for [^\n]{1,60}? is:? [\"'`](?P<value>[^\s\"'`]{3,100})[\"'`]",
        "the password for the demo is `⟦heron⟧`",
        _certain,
    ),
    _rule(
        "password '|password \"",
        r"(?i)\b(?:user|role|with|encrypted|set|ssid)\b[^\n;]{0,60}?\bpassword\s(?P<q>[\"'])"
        r"(?P<value>[^\"'\n]{3,100})(?P=q)",
        "ALTER ROLE shop PASSWORD '⟦haubentaucher⟧';",
        _certain,
    ),
    _rule(
        "wpa_passphrase",
        r"\bwpa_passphrase\s(?:\"[^\"\n]{1,40}\"|\S{1,40})\s[\"']?(?P<value>[^\s\"'|]{8,63})",
        "wpa_passphrase Nordhaus ⟦buntspecht⟧",
        _certain,
    ),
    _rule(
        "snmp",
        r"(?i)\bsnmp[^\n]{0,60}?\bcommunity(?:[ -]string)?\b[\"']?(?:\s(?:is|ist)|\s?[:=])?\s{1,3}[\"'`]?"
        r"(?P<value>[^\s\"'`,;]{5,64})",
        "snmp-server community ⟦pr1v-Elster⟧ RO",
        _made,
    ),
    # ---- codes that a service gives out, and numbers that open a door
    _rule(
        "totp|2fa|mfa|otp|authenticator|authy|oathtool|two-factor",
        r"(?i)\b(?:totp|2fa|mfa|otp|authenticator|authy|oathtool|two-factor)[\w-]{0,20}(?:[^\n]{0,30}?[\s:=\"'])"
        r"(?P<value>(?-i:[A-Z2-7]{16,64}|(?=[a-z]*[2-7][a-z]*[2-7])[a-z2-7]{16,64}"
        r"|(?:[a-z2-7]{4} ){3,15}[a-z2-7]{4}|(?:[A-Z2-7]{4} ){3,15}[A-Z2-7]{4}))(?:={3,6})?(?![\w=])",
        "the 2fa seed is ⟦WUQAJWNKHKN4URC5⟧",
        _has_digit,
    ),
    _rule(
        "totp|2fa|oathtool|authenticator",
        r"(?<![\w/+-])(?P<value>[A-Z2-7]{16,64})(?![\w=/+-])[^\n]{0,40}?\b(?i:totp|2fa|oathtool|authenticator)\b",
        "add ⟦WUQAJWNKHKN4URC5⟧ to my authenticator",
        _has_digit,
    ),
    _rule(
        "verification|confirmation|security|sms|otp|one-time|one time|2fa|login code|reset code|activation code"
        "|code from|code in|code by",
        r"(?i)\b(?:(?:verification|confirmation|security|login|sms|one[- ]time|2fa|reset|activation)\scode"
        r"|otp|code\s(?:from|in|by)\s"
        r"(?:the\s|my\s)?(?:sms|e?mail|text|app|authenticator))\b(?:\s(?:is|was|now)|:|=){0,2}\s{0,2}[\"'`]?"
        r"(?P<value>\d{6,8}|\d{3}[ -]\d{3,4})(?![\w.-]*\d)",
        "your verification code is ⟦773 102⟧",
        _any,
    ),
    _rule(
        "cvv|cvc|security code",
        r"(?i)\b(?:cvv2?|cvc2?|security code)\b[\"']?(?:[^\n\d:=]{0,30}?\sis|\scode)?\s{0,2}[:=]?\s{0,2}[\"']?"
        r"(?P<value>\d{3,4})(?![\w.-]*\d)",
        "and the cvv ⟦7431⟧",
        _any,
    ),
    _rule(
        'pin:|pin |"pin| pin|pin=|passcode|puk|door code|gate code|alarm code|entry code|safe code|lock code|pass code',
        r"(?i)\b(?:pins?|passcode|puk|(?:door|gate|alarm|entry|safe|lock|unlock|pass) code)\b[\"']?"
        r"(?:[^\n\d:=]{0,40}?(?:\sis|\sto|\sist|\ses|\sest|:|=)|(?=\s\d))"
        r"\s{0,3}[\"'`]?(?P<value>\d{4,8}|\d{3} \d{3})(?![\w.-]*\d)",
        "the PIN of the card reader is ⟦482913⟧",
        _any,
    ),
    _rule(
        "wifi|wi-fi|wlan|wireless|hotspot|ssid",
        r"(?i)\b(?:wi-?fi|wlan|wireless|hotspot|ssid)\b[^\n]{0,60}?\b(?:key|code|schl[uü]ssel|psk)(?:\s(?:is|ist)|:"
        r"|=)\s"
        r"{0,3}[\"'`]?(?P<value>[^\s\"'`]{8,64})",
        "the wifi is called Nordhaus and the key is ⟦kater-mikesch-55⟧",
        _made,
    ),
    _rule(
        "access code|key|licen|activation",
        r"(?i)\b(?:access|licen[cs]e|activation|product|invite) (?:code|key)\b(?:\s(?:is|ist))?[:=]?\s{1,3}[\"'`]?"
        r"(?P<value>(?=[^\s\"'`]{0,30}\d)[A-Za-z0-9-]{8,64})(?![\w.])",
        "access code ⟦Z3XSbOGmkSDz⟧",
        _issued,
        kind=KEY,
    ),
    _rule(
        "private key",
        r"(?i)\bprivate[ _]key\b[\"']?(?:\s(?:is|ist))?\s{0,2}[:=]?\s{0,3}[\"'`]?(?P<value>(?:0x)?[0-9a-f]{64}"
        r"|[\w+/]{43}=)(?![\w=])",
        "private key ⟦0x8f3c1a9be07d4c52a1f09e6b7d2c4f8a8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧",
        _any,
        kind=KEY,
    ),
    _rule(
        "token|secret|key",
        # With a few words between: "the token for the staging bot: …". Digits that may be a digest, too.
        r"(?i)\b(?:(?:api|master|signing|encryption|shared|hmac|webhook|access|account)[ _-]?key|token|secret)\b"
        r"(?:\s(?!is\b|in\b)[\w-]{1,20}){0,5}"
        r"(?:\s(?:is|ist)|:|\s[-–—])?"
        r"\s{1,3}[\"'`]?(?P<value>(?-i:[0-9a-f]{24,64}|[\w+/]{40}"
        r"|[A-Za-z0-9_-]{16,64}))(?![\w=.-])",
        "here's the token for the staging bot: ⟦a754b1ea4885bc2d44f96f6b5e3991f645454ac6⟧",
        _random,
        kind=KEY,
    ),
    _rule(
        "key|token|secret",
        r"(?i)\b(?:my|our)\s(?:[\w.-]{1,20}\s){0,3}?(?:key|token|secret)(?:\s(?:is|ist)|:|\s?=)?\s{1,3}[\"'`]?"
        r"(?P<value>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::\w\w)?|(?-i:[0-9a-f]{16,64}|[A-Za-z0-9_-]{16,64}))"
        r"(?![\w=.-])",
        "put our tiles key ⟦8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧ into the map",
        _random,
        kind=KEY,
    ),
    _rule(
        "pass phrase|passphrase",
        r"(?im)\bpass ?phrase\b(?:[^\n:=]{0,40}?\s(?:is|ist)\s(?P<value>[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){3,9})"
        r"|[\"']?:\s{1,3}(?P<short>[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){2,9}))[.!]?$",
        "the passphrase of the disk is ⟦seven gulls over grey piers⟧",
        _phrase,
    ),
    _rule(
        "use |wants ",
        r"(?i)\b(?:use|using|with|wants|via|as)\s[\"'`]?(?P<user>[a-z][\w.@-]{1,60}):"
        r"(?P<value>[^\s\"'`:]{6,64})(?![^\s\"'`,;.])",
        "for the proxy use lena:⟦Sunset-Rose-12⟧",
        _of_pair,
    ),
    _rule(
        "secret=|secret_key=|auth=|key_base=",
        r"(?<![\w.$-])[A-Z][A-Z0-9_]{0,40}(?:SECRET|(?P<auth>AUTH))(?:_KEY(?:_BASE)?)?=[\"']?"
        r"(?P<value>[^\s\"'`;&|]{8,200})",
        "JWT_SECRET=⟦seven-gulls-on-piers⟧",
        _environment,
    ),
    _rule(
        "pass|pwd|pw is",
        r"(?im)\b(?:password|passwd|passphrase|passcode|passwort|pass|pwd?)\s(?:is|ist)\s"
        r"(?P<value>[a-z]{6,30})(?=\s*$|[,;)]|\.(?:\s|$))",
        "the password is ⟦haubentaucher⟧, and the port 8443",
        _no_attribute,
    ),
    _rule(
        "env |setx",
        r"(?m)^\s{0,8}(?:(?:RUN|PS> ?|>)\s)?(?:ENV|ARG|setx)\s"
        r"(?i:\w{0,40}(?:PASS|PASSWORD|PASSWD|PW|SECRET|TOKEN|API_?KEY))[\s=]"
        r"[\"']?(?P<value>[^\s\"']{3,500})",
        "ENV SHOP_PASS ⟦wendehals⟧",
        _no_stand_in,
    ),
    _rule(
        'value:|value"',
        r"(?i)\bname[\"']?:\s[\"']?[\w.-]{0,40}"
        r"(?:password|passwd|passphrase|secret|token|api_?key|_pass|_pw)[\"']?,?\s{1,40}"
        r"[\"']?value[\"']?:\s{1,4}[\"']?(?P<value>[^\s\"',}]{3,500})",
        "- name: DB_PASSWORD\n  value: ⟦rohrdommel⟧",
        _of_no_page,
    ),
    _rule(
        "ssn|social|itin",
        r"(?i)\b(?:ssn|social[ _-]security(?:[ _-](?:number|no\.?|nr))?"
        r"|social(?=\s?(?:is|:|#|=|no\.?|number)\s)|itin)\b"
        r"[\"']?(?:[^\n\d]{0,20}?)"
        r"(?P<value>\d{3}([- ]?)\d{2}\2\d{4})(?![\w-]*\d)",
        "ssn ⟦512-48-7731⟧",
        _any,
        kind="TAX-ID",
    ),
    _rule(
        'ein |ein:|"ein|ein=|fein|employer|tax|tin:',
        r"(?i)\b(?:f?ein|tin|employer[ _-]id(?:entification)?|(?:federal[ _-])?tax(?:payer)?[ _-]?"
        r"(?:id(?:entification)?|number|no\.?))"
        r"\b[\"']?"
        r"(?:[^\n\d]{0,24}?)(?P<value>\d{2}[- ]?\d{7})(?![\w-]*\d)",
        "my ein number ⟦47-3820915⟧",
        _any,
        kind="TAX-ID",
    ),
    _rule(
        "steuer",
        r"(?i)\bsteuer[- ]?(?:id(?:entifikationsnummer|nr\.?)?|nummer)\b[^\n\d]{0,12}"
        r"(?P<value>\d(?:[ /]?\d){9,12})(?![\w-])",
        "Steuer-ID ⟦12463850278⟧",
        _any,
        kind="TAX-ID",
    ),
)
