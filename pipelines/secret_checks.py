"""Whether what a rule for secrets found is a secret. `secret_rules.toml` names one of these functions in each row."""

from __future__ import annotations

import re

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


def always(_match: re.Match[str], _value: str) -> bool:
    """Whether it is a secret: the pattern says all."""
    return True


def no_stand_in(_match: re.Match[str], value: str) -> bool:
    return not is_placeholder(value, quoted=True)


def certain(_match: re.Match[str], value: str) -> bool:
    """Whether the value is no reference and no row of x's; any word counts here."""
    return not is_reference(value) and "xxx" not in value.lower()


def stands(_match: re.Match[str], value: str) -> bool:
    if is_filled(value):
        return False
    # "Milan.Rot3" could name a field of an object as well, if nobody would choose it.
    return not is_placeholder(value, quoted=shape_of(value) >= Shape.MIXED)


def no_prose(match: re.Match[str], value: str) -> bool:
    return stands(match, value) and (not PROSE.match(value) or is_joined(value)) and not value.startswith("/")


def of_user(match: re.Match[str], value: str) -> bool:
    return certain(match, value) and not is_placeholder(match["user"], quoted=True)


def of_option(match: re.Match[str], value: str) -> bool:
    """`-p` and `--key` also name ports, paths and fields."""
    name = match.group()[: match.start("value") - match.start()].lower()
    if not no_prose(match, value):
        return "pass" in name and stands(match, value) and _beside_options(match)
    return "pass" in name or "pwd" in name or looks_chosen(value)


def _beside_options(match: re.Match[str]) -> bool:
    """Whether another option stands right before or after, so that this is a command and no sentence about it."""
    text, start = match.string, match.start()
    return (
        re.search(r"\s--?[A-Za-z][\w-]{0,30}(?:[ =][^\s-]\S{0,100})?\s\Z", text[max(0, start - 140) : start])
        is not None
        or re.match(r"[\"']?\s{1,3}--?[A-Za-z]", text[match.end() : match.end() + 6]) is not None
    )


def no_moment(match: re.Match[str], value: str) -> bool:
    return no_prose(match, value) and MOMENT.fullmatch(value) is None


def of_no_page(match: re.Match[str], value: str) -> bool:
    start = match.start("value")
    return stands(match, value) and OF_ONE_PAGE.search(match.string, max(0, start - 60), start) is None


def configured(match: re.Match[str], value: str) -> bool:
    return stands(match, value) and (not is_identifier(value) or bool(match["call"] and match["password"]))


def no_id(match: re.Match[str], value: str) -> bool:
    return stands(match, value) and UUID.fullmatch(value) is None and not is_identifier(value)


def no_id_of_words(match: re.Match[str], value: str) -> bool:
    return no_stand_in(match, value) and not is_identifier(value)


def with_digits(match: re.Match[str], value: str) -> bool:
    return stands(match, value) and len(re.findall(r"\d", value)) >= 2 and any(map(str.isalpha, value))


def of_literal(match: re.Match[str], value: str) -> bool:
    """Whether the value of a Kubernetes secret has the name of one, or its shape."""
    if re.search(r"pw|pass|psk|secret|key|token|cred|pin", match["name"]):
        return certain(match, value)
    return stands(match, value) and (shape_of(value) >= Shape.MIXED or looks_random(value))


def of_call(match: re.Match[str], value: str) -> bool:
    return certain(match, value) if not match.group().startswith(".auth") else no_stand_in(match, value)


def of_pair(match: re.Match[str], value: str) -> bool:
    """A name with one digit may stand after any kind of thing: `use profile:Prod-EU1`."""
    return stands(match, value) and shape_of(value) >= (Shape.MIXED if re.search(r"\d\d", value) else Shape.SIGNED)


def _of_record(match: re.Match[str]) -> re.Match[str] | None:
    """Match the name of a key that finds a record, before the value."""
    start = match.start("value")
    return _KEY_OF_RECORD.search(match.string, max(0, start - 100), start)


_KEY_OF_RECORD = re.compile(r"(?i)(?:public|cache|primary|sort|partition|foreign|object|record|idempotency)[ _-]key")


def random(match: re.Match[str], value: str) -> bool:
    """Whether it is a digest or random, and the words before it name no key of a record."""
    if _of_record(match):
        return False
    plain = re.sub(r"[_-]", "", value)
    return not is_filled(value) and (
        UUID.match(value) is not None
        or re.fullmatch(r"[0-9a-f]{24,}|[\w+/]{40}", value) is not None
        or looks_random(plain)
    )


def random_or_short_digest(match: re.Match[str], value: str) -> bool:
    """As `random`, with shorter digests: for what the words before call ours, or the address of a calendar."""
    if re.fullmatch(r"[0-9a-f]{16,}", value) is None:
        return random(match, value)
    return not is_filled(value) and _of_record(match) is None


def no_attribute(match: re.Match[str], value: str) -> bool:
    """Whether a word that ends what is said of a password is none that describes it."""
    return stands(match, value) and _ATTRIBUTE.fullmatch(value.lower()) is None


_ATTRIBUTE = re.compile(
    r"\w*(?:ed|ing|ble|ful|less|ent|ant|ive|ous|al|ic|ly|ish|ary|ory|ain|text|where)"
    r"|(?:in|un)?(?:correct|complete|secure|safe|known|clear|sure|usual)"
    r"|(?:simpl|weak|strong|short|long|trivi|eas|hard|old|young)\w*"
    r"|(?:broken|chosen|shown|hidden|given|written|forgotten|stolen|within|behind|before|inside|elsewhere|another"
    r"|nothing|something|useless|random|unique|global|falsch|richtig|leer|abgelaufen|gesetzt)"
)


def phrase(_match: re.Match[str], value: str) -> bool:
    """Whether none of the words makes a sentence of it."""
    words = value.split()
    return not words[0].endswith("ed") and not any(
        is_placeholder(word, quoted=True) or word in _OF_SENTENCES for word in words
    )


def environment(match: re.Match[str], value: str) -> bool:
    """Whether it is a value; with a name like AUTH it must have a digit."""
    if not stands(match, value) or value.startswith(("/", "http")):
        return False
    return not match["auth"] or any(map(str.isdigit, value))


def has_digit(_match: re.Match[str], value: str) -> bool:
    return any(map(str.isdigit, value))


def made(match: re.Match[str], value: str) -> bool:
    """Whether it has the shape of a password that a person chose."""
    return stands(match, value) and shape_of(value) >= Shape.MARKED


def of_router(match: re.Match[str], value: str) -> bool:
    """Whether the number of the encryption shows that it is a password, or its shape does."""
    return certain(match, value) if match["type"] else made(match, value)


def several(_match: re.Match[str], value: str) -> bool:
    """Whether it has six letters and digits, at least one digit, and no word but in halves: "k7d2p-bnqvz"."""
    signs = [character for character in value if character.isalnum()]
    rest = _HALVES.sub("", value)
    return len(signs) >= 6 and any(map(str.isdigit, signs)) and re.search(r"[a-z]{5}|[A-Za-z]{9}", rest) is None


_HALVES = re.compile(
    r"\b(?=[a-z0-9-]*\d)(?:[a-z0-9]{4}-[a-z0-9]{4}|[a-z0-9]{5}-[a-z0-9]{5}|[a-z0-9]{6}-[a-z0-9]{6})(?![\w-])"
)


def issued(match: re.Match[str], value: str) -> bool:
    return no_id(match, value) or several(match, value)


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
