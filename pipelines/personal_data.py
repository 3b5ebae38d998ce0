"""Find personal data: e-mail addresses, telephone numbers, payment cards, IBANs, and home folders. Used by `scrub`.

Every pattern takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_EMAIL = re.compile(
    r"(?<![\w.+%-])(?P<local>[A-Za-z0-9](?:[\w.+-]|%(?!40)){0,63}(?:'[A-Za-z][\w.+-]{0,63})?)(?:@|%40)"
    r"(?P<domain>(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,5}[A-Za-z]{2,24})(?![\w@-])"
)
_NOBODY = frozenset({"git", "noreply", "no-reply", "hg", "svn", "ssh"})
_SLASH = r"(?:\\{0,2}/|%2F)"
"""A slash, plain or as JSON and addresses escape it."""
_HOME_PATH = re.compile(
    r"(?:(?<![\w.:/\\-])|(?<=file://)|(?<=file:)|(?<=[=:]))"
    # Places of home folders, also of mounted ones.
    rf"(?:(?:{_SLASH}(?:private|var|export|host_mnt|mnt/[a-z]|[a-z]|System/Volumes/Data))?"
    rf"{_SLASH}(?:Users|home){_SLASH}"
    r"(?P<unix>[^\s/\\'\"`<>:;,|()\[\]{}*?$%]{1,64})"
    r"|\\{2,4}wsl(?:\$|\.localhost)\\{1,2}[\w.-]{1,40}\\{1,2}home\\{1,2}(?P<wsl>[^\s/\\'\"`<>:;,|()\[\]{}*?$%]{1,64})"
    r"|[A-Za-z]:(?:\\{1,2}|/)(?:Users|Documents and Settings)(?:\\{1,2}|/)"
    r"(?P<windows>[^\s/\\'\"`<>:;,|()\[\]{}*?$%]{1,64}))"
    r"(?:(?:[/\\]{1,3}|%2F)[^\s/\\'\"`<>:;,|()\[\]{}*?]{0,255}){0,60}"
)
_HOME_HINTS = ("home", "Users", "Documents and Settings")
_DASHED_HOME = re.compile(r"(?<![\w-])-(?:Users|home)-(?P<owner>[A-Za-z0-9]{2,64})(?:-[A-Za-z0-9]+){0,60}")
# Accounts named after a role, a system or a program identify nobody.
_ROLES = frozenset(
    """
    admin administrator app build builder ci dev devel developer deploy example git guest jenkins me name node root
    runner service shared test tester testuser user username vagrant work you yourname circleci travis codespace
    gitpod vscode coder linuxbrew ubuntu debian centos fedora alpine ec2-user pi public default
    """.split()  # noqa: SIM905  a list of literals would take a page
) | {"..."}
_RESERVED_DOMAIN = re.compile(
    r"(?:.*\.)?(?:example\.(?:com|net|org)|(?:test|example|invalid|localhost))\Z", re.IGNORECASE
)
"""Domains in which nobody has an address (RFC 2606 and 6761)."""
_PHONE = re.compile(
    r"(?<![\w.+/#-])(?:"
    r"(?:\+?1[\s.-]?)?\(\d{3}\)\s?\d{3}[\s.-]\d{4}"
    r"|(?:\+?1[\s.-])?\d{3}[.-]\d{3}[.-]\d{4}"
    r"|\+[1-9]\d{0,2}(?:[\s.-]\(?\d{1,8}\)?){2,6}"
    # 001 and 01 also begin counters: of migrations, frames, bytes.
    r"|00(?:1[ .-]\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}|(?:7|[2-9]\d{1,2})(?:[ .-]\(?(?!00)\d{1,8}\)?){2,6})"
    r"|\+\d{1,3}[\s.-]?\d{8,12}"
    # An area code in brackets, a trunk zero in brackets, French pairs of digits.
    r"|\(0[1-9]\d{0,3}\)\s?\d{3,9}(?:[\s-]\d{1,6}){0,3}"
    r"|\+\d{1,3}\s?\(0\)\s?\d{1,5}(?:[\s.-]?\d{2,8}){1,5}"
    r"|0[1-9](?:[ .]\d\d){4}(?! [\da-fA-F])"
    r")(?![\w.-]?\d)"
)
_NAMED_PHONE = re.compile(
    r"\b(?:phone|telephone|telefon|tel|mobile|cell(?:phone)?|fax|whatsapp|hotline|handy)(?:[\s_-]?(?:number|no|nr))?"
    r"(?:[\"']?\s{0,3}[:=]\s{0,3}[\"']?|\.?:?\s(?:is\s)?(?=[\d\s().+-]{10}))"
    r"(?P<number>[+(]{0,2}\d[\d\s().-]{5,18}\d)(?![\w.-]?\d)",
    re.IGNORECASE,
)
FEWEST_DIGITS = 7
"""Fewest digits of a telephone number; cards have more."""
_SEVEN_DIGITS = re.compile(rf"(?:\d\D*){{{FEWEST_DIGITS}}}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_CARD = re.compile(
    r"(?<![\w.-])(?:\d{4}[ -]?){3}\d{1,7}(?![\w-]|\.\d)|(?<![\w.-])3\d{3}[ -]?\d{6}[ -]?\d{4,5}(?![\w-])"
)
_CARD_START = re.compile(
    # Fourteen digits: Diners. Fifteen: American Express, and the number of a telephone, which begins like JCB's.
    # Sixteen and more: Visa, Mastercard, Discover, JCB, UnionPay.
    r"3(?:0[0-5]|[689]\d)\d{11}\Z|3[47]\d{13}\Z"
    r"|(?=\d{16})(?:4|5[1-5]|2[2-7]|35(?:2[89]|[3-8])|6(?:011|5|4[4-9]|2))\d+\Z"
)

_IBAN_SHAPE = r"[A-Z]{2}\d\d(?<![A-Za-z0-9]....)(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
_IBAN = re.compile(_IBAN_SHAPE)
_NAMED_IBAN = re.compile(rf"(?i)\biban\b[^\n]{{0,20}}?(?P<number>{_IBAN_SHAPE})")
"""Matches one in small letters, too, of which one in a hundred without its name would be valid by chance."""
_AFTER_CARD = re.compile(
    r"[\s,;:]{1,3}(?:exp\w{0,6}\.?:?\s)?\d\d ?/ ?\d\d(?:\d\d)?[\s,;]{1,3}(?:cv[vc]2?:?\s)?(?P<code>\d{3,4})(?![\w.-])"
)
_IBAN_CHARS = {
    one[:2]: int(one[2:])
    for one in """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24
    FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32
    LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24
    RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
    """.split()  # noqa: SIM905  a list of literals would take a page
}
"""Number of characters of an IBAN, by country."""


def personal_data(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield [start, end) and kind (EMAIL, PATH, PHONE) of each finding, unordered; they may overlap."""
    if "@" in text or "%40" in text:
        for match in _EMAIL.finditer(text):
            local = match.group("local").lower()
            at_nobodys = local in _ROLES and _RESERVED_DOMAIN.match(match.group("domain"))
            if local not in _NOBODY and not at_nobodys:
                yield match.start(), match.end(), "EMAIL"
    if any(hint in text for hint in _HOME_HINTS):
        yield from _homes(text)
    if not _SEVEN_DIGITS.search(text):
        return
    for pattern, group in ((_PHONE, 0), (_NAMED_PHONE, "number")):
        for match in pattern.finditer(text):
            number = match.group(group)
            if 7 <= sum(character.isdigit() for character in number) <= 15 and not _DATE.match(number):
                yield *match.span(group), "PHONE"


def account_numbers(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield [start, end) and kind (CARD, IBAN) of each number of a card or account with a valid check digit."""
    if not _SEVEN_DIGITS.search(text):
        return
    for match in _CARD.finditer(text):
        digits = [int(character) for character in match.group() if character.isdigit()]
        if 14 <= len(digits) <= 19 and _CARD_START.match("".join(map(str, digits))) and _luhn(digits):
            yield match.start(), match.end(), "CARD"
            if (after := _AFTER_CARD.match(text, match.end())) is not None:
                yield *after.span("code"), "CARD"
    is_named = "iban" in text or "IBAN" in text or "Iban" in text
    for pattern, group in ((_IBAN, 0), (_NAMED_IBAN, "number")) if is_named else ((_IBAN, 0),):
        for match in pattern.finditer(text):
            length = _IBAN_CHARS.get(match[group][:2].upper(), 0)
            number = re.sub("[ -]", "", match[group])[:length]
            if len(number) == length > 0 and int("".join(str(int(n, 36)) for n in number[4:] + number[:4])) % 97 == 1:
                yield match.start(group), _end_of(text, match.start(group), length), "IBAN"


def _end_of(text: str, start: int, characters: int) -> int:
    """Return where the given number of characters other than blanks and hyphens ends."""
    while characters:
        characters -= text[start] not in " -"
        start += 1
    return start


def _homes(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _HOME_PATH.finditer(text):
        owner = (match.group("unix") or match.group("wsl") or match.group("windows")).lower()
        if owner not in _ROLES:
            end = match.end()
            while text[end - 1] in ".,!":
                end -= 1
            yield match.start(), end, "PATH"
    for match in _DASHED_HOME.finditer(text):
        if match.group("owner").lower() not in _ROLES:
            yield match.start(), match.end(), "PATH"


def _luhn(digits: list[int]) -> bool:
    total = 0
    for index, digit in enumerate(reversed(digits)):
        doubled = digit * 2 if index % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0
