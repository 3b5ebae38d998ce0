"""Remove secrets and personal data from text before it is written, queued, indexed or sent.

A secret is found by its shape (an issuer's prefix, a key file, credentials in an address), by its name (`password = …`,
`Authorization: …`, see `named_secrets`), or because it is a long random string. Placeholders (`<YOUR_TOKEN>`,
`$API_KEY`, `xxxx`) stay. A replacement is never matched again: scrubbing twice changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from ..runtime.private import find_private_spans
from ..vault.scrubbed import Scrubbed
from .named_secrets import named_secrets
from .personal_data import account_numbers, personal_data
from .secret_model import (
    MAX_TOKEN_CHARS,
    MIN_TOKEN_CHARS,
    REACH_CHARS,
    is_candidate_token,
    is_prefixed_digits,
    is_random_token,
)
from .secret_patterns import (
    CANDIDATE,
    OF_ONE_PAGE,
    is_cut,
    is_described,
    is_filled,
    is_placeholder,
    looks_random,
)
from .secret_rules import MARKED_TOKEN, SHAPES
from .seed_phrases import seed_phrases


class Policy(StrEnum):
    """What is removed."""

    SECRETS = "secrets"
    """Secrets and `<private>` passages: for text that a user saves on purpose, with addresses and paths."""
    FULL = "full"
    """Also personal data: for everything that is mined, and for incidents."""


@dataclass(frozen=True)
class Finding:
    """Characters [start, end) of a text are a secret or personal data."""

    start: int
    end: int
    kind: str
    """API-KEY, PASSWORD, PRIVATE-KEY, IBAN, CARD, TAX-ID, EMAIL, PATH, PHONE; or PRIVATE, which leaves no mark."""


MAX_PASSES = 4


def scrub(text: str, policy: Policy = Policy.FULL) -> Scrubbed:
    """Replace each finding of a text by `[REDACTED-<kind>]`. Takes time linear in its length.

    A replacement can make a finding of the text beside it ("[REDACTED-API-KEY]=…"), so it is repeated.
    """
    for _ in range(MAX_PASSES):
        found = findings(text, policy)
        if not found:
            break
        text = _replaced(text, found)
    return Scrubbed(text)


def _replaced(text: str, found: tuple[Finding, ...]) -> str:
    parts: list[str] = []
    position = 0
    for finding in found:
        parts.append(text[position : finding.start])
        if finding.kind != "PRIVATE":
            parts.append(f"[REDACTED-{finding.kind}]")
        position = finding.end
    parts.append(text[position:])
    return "".join(parts)


def findings(text: str, policy: Policy = Policy.FULL) -> tuple[Finding, ...]:
    """Return what would be removed, in order, without overlaps."""
    shapes = list(_shapes(text))
    found = [
        *shapes,
        *(Finding(start, end, "PRIVATE") for start, end in find_private_spans(text)),
        *(Finding(*one) for one in named_secrets(text)),
        *_tokens(text),
        *(Finding(start, end, "PRIVATE-KEY") for start, end in seed_phrases(text)),
        *(Finding(*one) for one in account_numbers(text)),
    ]
    if policy is Policy.FULL:
        # A password before a host ("app:hunter22@db.acme.io") makes no mail address: the host stays.
        before_host = {shape.end for shape in shapes}
        found.extend(
            Finding(start, end, kind)
            for start, end, kind in personal_data(text)
            if kind != "EMAIL" or text.find("@", start, end) not in before_host
        )
    return _merged(found, text)


def scrub_passage(text: str, start: int, end: int) -> str:
    """Return characters [start, end) of a text, scrubbed with regard to the whole text.

    Alone, some lines of a key or half of an address would not be recognised.
    """
    return _replaced(text[start:end], findings_in_passage(text, start, end))


def findings_in_passage(text: str, start: int, end: int) -> tuple[Finding, ...]:
    """Return the parts of a text's findings that lie in [start, end), counted from `start`."""
    return tuple(
        replace(each, start=max(each.start, start) - start, end=min(each.end, end) - start)
        for each in _known_findings(text)
        if each.start < end and start < each.end
    )


@lru_cache(maxsize=4)
def _known_findings(text: str) -> tuple[Finding, ...]:
    """Findings of a message, of which several passages are scrubbed."""
    return findings(text)


def issued(text: str) -> tuple[Finding, ...]:
    """Return only findings that are recognised by their form alone: tokens with an issuer's mark, keys, credentials in
    addresses.

    For text that also holds ids.
    """
    return _merged([*_shapes(text), *_marked(text)], text)


def scrub_issued(text: str) -> Scrubbed:
    """Replace the findings of `issued` in a text."""
    return Scrubbed(_replaced(text, issued(text)))


# --- shapes ---


def _shapes(text: str) -> Iterator[Finding]:
    for rule in SHAPES:
        for match in rule.pattern.finditer(text) if any(sign in text for sign in rule.signs) else ():
            start, end = rule.span(match)
            if rule.check(match, text[start:end]):
                yield Finding(start, end, rule.kind)


# --- tokens with a mark, and random ones ---

MAX_PLAIN_CHARS = 120
"""A longer token without name or mark counts as data, except for the model (`MAX_TOKEN_CHARS`)."""
_TOKEN_PART = re.compile(r"[A-Za-z0-9]{16,}")
_BASE64_PART = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{40,}={0,2}(?![\w+/])")
# The name of a digest, the beginning of a public key (SSH, DER), the address of a wallet or of a file (IPFS),
# the id of a machine or a network (AWS).
_DIGEST = re.compile(
    r"(?i:sha\d{1,3}|md5|integrity|etag|h1)[-:=~]|AAAA(?:[BC]3NzaC1|E2VjZHNh)"
    r"|MFkwEwYHKoZIzj0|MCowBQYDK2V|MII[BC][A-Za-z]{2}ANBgkqhkiG9w0BAQEF"
    r"|0x[0-9a-fA-F]{40}(?!\w)|(?:bc|tb|ltc|addr|age|npub)1[02-9ac-hj-np-z]{38,}(?!\w)"
    r"|Qm[1-9A-HJ-NP-Za-km-z]{44}(?!\w)"
    r"|[a-z]{1,12}-[0-9a-f]{17}(?!\w)"
)
_NAMED_ID = re.compile(
    r"(?:toolu|msg|req|call|run|chatcmpl|resp|evt|org|proj|session|agent|task|img|asset|commit|step|thread"
    r"|usr|obj|env|job|doc|tmp|src|pkg|blob|blk|key|tx|price|prod(?:uct)?|cus(?:tomer)?|sub|plan|acct|txn|inv(?:oice)?"
    r"|asst|batch|pi|cs|order|item|file|folder|node|page|post|team|room|channel)[_-](?!\w{0,80}_secret_)",
    re.IGNORECASE,
)
# The name before a value, which `named_secrets` judges.
_NAMED_BEFORE = re.compile(
    r"(?P<name>[A-Za-z][\w.-]{0,50})[\\\"']{0,2}(?P<gap>\s{0,3}(?::=|=|:)[ \t]{0,3})(?P<quote>[\\\"']{0,3})\Z"
)
_NO_NAMES = frozenset(
    {"value", "key", "val", "default", "string", "data", "arg", "use", "it", "this", "is", "here", "content", "x"}
)
# Such as `swiftKey := …`. It may name the key of a record or a secret, so the value decides.
_NAMED_KEY = re.compile(r"key\d{0,2}\Z", re.IGNORECASE)
_KEY_OF_RECORDS = re.compile(r"(?:public|cache|primary|sort|partition|foreign)[_.-]?key\d{0,2}\Z", re.IGNORECASE)
_NAME_OF_RECORDS = re.compile(
    r"(?:ids?|uid|uuid|guid|sha\d{0,3}|md5|hash|digest|checksum|etag|integrity|signature|fingerprint|thumbprint|version"
    r"|revision|commit|ref|cursor|tag|url|uri|path|file|name|type|class|model|user|login|account|e?mail|host|domain"
    r"|region|bucket|branch)\Z",
    re.IGNORECASE,
)
_NAME_OF_SESSION = re.compile(r"sess(?:ion)?[_.-]?id\Z|(?:\A|\.)sid\Z", re.IGNORECASE)
"""Matches the name of a session id, which gives access although it is an id."""
_NAME_WITHIN = re.compile(r"[A-Za-z_][A-Za-z_.-]{0,40}\d{0,2}=(?=[^=])")
_CAPITALISED = re.compile(
    r"(?=Int|And|Err|Arg|App|Add|All|End|Old|Img|Url|Opt|Ext|Env|Act|[A-Z][a-z]*[aeiouy])[A-Z][a-z]{2,}"
)
"""A word in the name of a class, with a vowel after its first letter unless it is well known.

One in twenty-five random characters begins such a run, too.
"""
_NO_TEXT_AFTER = re.compile(r"\s{0,3}[,)=\](\[{]")
"""Matches after a name in code that is no value: the type of a parameter, a call."""
_URL_BEFORE = re.compile(r"https?://\S{0,300}\Z")
_PUBLIC_BEFORE = re.compile(
    r"(?i)(?:\bpublic[ _-]?key\b[\"']?(?:\sis)?\W{0,4}"
    r"|\bdata:(?:(?:image|font|audio|video)/|application/json)\S{1,40},)\Z"
)
"""Matches the words before a public key, and the beginning of a picture in an address."""


_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z0-9 ]{0,20} )?(?:PUBLIC KEY(?: BLOCK)?|CERTIFICATE(?: REQUEST)?|PGP MESSAGE|PGP SIGNATURE)-----"
    r".*?(?:-----END|\Z)",
    re.DOTALL,
)


def _tokens(text: str) -> Iterator[Finding]:
    public = [match.span() for match in _PUBLIC_BLOCK.finditer(text)] if "-----BEGIN " in text else []
    for candidate in CANDIDATE.finditer(text):
        token = candidate.group()
        base = candidate.start()
        marked = tuple(_marked_in(text, token, base))
        yield from marked
        whole, within = token, _NAME_WITHIN.match(token)
        if within is not None:
            base += within.end()
            token = token[within.end() :]
        # The cheapest tests first.
        if (
            marked
            or not MIN_TOKEN_CHARS <= len(token) <= MAX_TOKEN_CHARS
            or is_filled(token)
            or _is_camel_case(token)
            or _DIGEST.match(token)
            or _NAMED_ID.match(token)
            or OF_ONE_PAGE.search(text, max(0, base - 60), base)
            or _PUBLIC_BEFORE.search(text[max(0, base - 60) : base])
        ):
            continue
        if any(start <= base < end for start, end in public):
            continue
        named = _NAMED_BEFORE.search(text, max(0, base - 60), base) if _is_assigned(text, base) else None
        if named and not (_may_be_anything(named["name"]) or _is_given_to_maker(named, text, candidate.end())):
            continue
        if "://" in token or _URL_BEFORE.search(text[max(0, base - 300) : base]):
            continue
        found = list(_by_chance(token, base, text))
        if within is not None and not found and _opens(within.group()[:-1]):
            # Digits that look like a digest or an id are a secret after such a name.
            found = [replace(each, start=base) for each in _by_chance(whole, candidate.start(), text)]
        yield from found


def _marked(text: str) -> Iterator[Finding]:
    for candidate in CANDIDATE.finditer(text):
        yield from _marked_in(text, candidate.group(), candidate.start())


def _marked_in(text: str, token: str, base: int) -> Iterator[Finding]:
    """Yield the parts with an issuer's mark of `token`, a run of characters that begins at `base` of `text`."""
    for match in MARKED_TOKEN.finditer(text, base, base + len(token)):
        if (
            not is_described(match.group())
            # The map of a script within an address begins as a token does: "eyJ".
            and not text.endswith(("json;base64,", "utf-8;base64,"), 0, match.start())
            # Only the marked part: "12345678" in an address or name before it says nothing about it.
            and not is_filled(match.group())
            and not is_cut(text, match.start(), match.start() + len(match.group().rstrip(".")))
        ):
            yield Finding(*match.span(), "API-KEY")


def _opens(name: str) -> bool:
    """Whether this names a key, or a cookie that opens a session."""
    return _is_named_key(name) or _NAME_OF_SESSION.search(name) is not None


def _may_be_anything(name: str) -> bool:
    """Whether a value with this name may be a secret or not."""
    return name.lower() in _NO_NAMES or _is_named_key(name)


def _is_named_key(name: str) -> bool:
    return _NAMED_KEY.search(name) is not None and _KEY_OF_RECORDS.search(name) is None


def _is_given_to_maker(named: re.Match[str], text: str, end: int) -> bool:
    """Whether the value up to `end` is a text after a name that may be a service's: `loggly: "…"`, `LOGGLY=…`.

    Names that code writes without quotes do not count (`model = Wav2Vec2Encoder`).
    """
    name, operator = named["name"], named["gap"].strip()
    of_record = _NAME_OF_RECORDS.search(name) or _KEY_OF_RECORDS.search(name)
    if of_record and not _NAME_OF_SESSION.search(name):
        return False
    if named["quote"]:
        return True
    if operator == ":":
        return _NO_TEXT_AFTER.match(text, end) is None
    return named["gap"] == "="


def _is_camel_case(token: str) -> bool:
    """Whether more than half of the token is capitalised words, as in the name of a class."""
    return 2 * sum(map(len, _CAPITALISED.findall(token))) > len(token)


def _is_assigned(text: str, base: int) -> bool:
    """Whether an operator of `_NAMED_BEFORE` stands before `base`."""
    return text[max(0, base - 8) : base].rstrip(" \t\\\"'").endswith(("=", ":"))


def _by_chance(token: str, base: int, text: str) -> Iterator[Finding]:
    """Find a secret by nothing but the token's characters and the text before it."""
    bare = token.rstrip(".,:!")
    if (
        is_candidate_token(bare)
        and (is_prefixed_digits(bare) or is_random_token(bare, text[max(0, base - REACH_CHARS) : base]))
        and not is_placeholder(bare, quoted=False)
    ):
        yield Finding(base, base + len(bare), "API-KEY")
        return
    if len(token) > MAX_PLAIN_CHARS:
        return
    for part in _BASE64_PART.finditer(token):
        if _is_base64_secret(part.group()):
            yield Finding(base + part.start(), base + part.end(), "API-KEY")
    for part in _TOKEN_PART.finditer(token):
        if len(part.group()) >= 20 and looks_random(part.group()) and not is_filled(part.group()):
            # A token may also hold - and _ .
            yield Finding(*_widened(token, part.start(), part.end(), base), "API-KEY")


def _is_base64_secret(part: str) -> bool:
    """Whether this is base64 of 30 to 70 bytes that is no path and no text: longer data is a file."""
    if part.count("/") > len(part) // 12 or len(part) > 100:
        return False
    return looks_random(part.replace("/", "").replace("+", "").rstrip("="))


def _widened(token: str, start: int, end: int, base: int) -> tuple[int, int]:
    while start > 0 and (token[start - 1].isalnum() or token[start - 1] in "_-"):
        start -= 1
    while end < len(token) and (token[end].isalnum() or token[end] in "_-"):
        end += 1
    return base + start, base + end


# --- joining the findings ---

_REPLACEMENT = re.compile(r"\[REDACTED-[A-Z-]+\]")
_KINDS = ("PRIVATE", "PRIVATE-KEY", "API-KEY", "PASSWORD", "PATH", "EMAIL", "IBAN", "CARD", "TAX-ID", "PHONE")
"""Of the kinds of findings that overlap, the first one counts."""


def _merged(found: list[Finding], text: str) -> tuple[Finding, ...]:
    kept = [(match.start(), match.end()) for match in _REPLACEMENT.finditer(text)]
    merged: list[Finding] = []
    for finding in sorted(found, key=lambda item: (item.start, item.end)):
        again = any(a < finding.end and finding.start < b for a, b in kept)
        if finding.start >= finding.end or (again and finding.kind != "PRIVATE"):
            continue
        if merged and finding.start < merged[-1].end:
            last = merged[-1]
            kind = min(last.kind, finding.kind, key=_KINDS.index)
            merged[-1] = Finding(last.start, max(last.end, finding.end), kind)
        else:
            merged.append(finding)
    return tuple(merged)


def count_findings(text: str, policy: Policy) -> Counter[str]:
    """Return the number of findings by kind."""
    return Counter(finding.kind for finding in findings(text, policy))


def scrub_json(value: Any, policy: Policy) -> tuple[Any, Counter[str]]:
    """Scrub every text in a JSON value; return the new value, and the number of findings by kind."""
    if isinstance(value, str):
        return str(scrub(value, policy)), count_findings(value, policy)
    kinds: Counter[str] = Counter()
    if isinstance(value, list):
        items = []
        for item in value:
            new, found = scrub_json(item, policy)
            items.append(new)
            kinds += found
        return items, kinds
    if isinstance(value, dict):
        fields = {}
        for name, item in value.items():
            # A name such as "password" makes its value a secret.
            pair = f"{name}={item}" if isinstance(item, str) else ""
            if pair and not count_findings(item, policy) and (named := count_findings(pair, Policy.SECRETS)):
                fields[name] = str(scrub(pair, Policy.SECRETS))[len(name) + 1 :]
                kinds += named
                continue
            fields[name], found = scrub_json(item, policy)
            kinds += found
        return fields, kinds
    return value, kinds
