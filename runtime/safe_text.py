"""Make others' text safe for a prompt: nothing in it can close its block. Light module.

The model must see what a person sees in the note, and where the note ends. So the text loses what no person sees
(control, direction and tag characters, zero-width ones) and the signs that open or close something: a tag, fenced code,
a heading. In a block each of its lines is indented; only our own begin at the margin.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

INDENT = "  "
_BLANK = dict.fromkeys(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE0E),
        *range(0xE0100, 0xE01F0),
        0x1D159,
    )
) | {0x2800: " "}
"""Printable characters that show nothing: fillers, joiners of graphemes, selectors of variants; and Braille's blank."""
_SELECTORS = "\ufe0e\ufe0f"
"""Selectors that show the sign before them as text, or as an emoji."""
_JOINERS = "\u200c\u200d"
"""Joiners within emoji, and within words of Persian and Indian languages."""
_LESS_THAN = "<\uff1c\ufe64"
MARK = "\u2039"
"""Stands in place of a "<" at which a tag begins."""
_NO_TAG = frozenset(f" =-<>~+0123456789{MARK}")
"""What follows a "<" that is a comparison, an arrow or a heart."""
_NAME_END = r"(?![\w.:-])"
_STRUCTURE = (
    rf"[{_LESS_THAN}](?=\s*/"  # any closing tag
    r"|[|\uff5c](?!\s)[^|\uff5c\n]{1,80}[|\uff5c]"
    r"|\s+[a-z_][\w.:-]*\s*>"
    rf"|(?:system|human|user|assistant|developer|tool|invoke|parameter|thinking|instructions){_NAME_END}"
    rf"|[a-z][a-z0-9.]*(?:[-_]|:(?=[a-z]))[\w.:-]*(?<![:.]){_NAME_END}(?!@))"
)
"""A "<" at which a host or a model may see a tag of its own: their names have several words, but for these."""
_FENCES = (("```", "'''"), ("~~~", "~~"))


def safe_line(text: str) -> str:
    """Return `text` on one line that opens and closes nothing, without invisible characters; '' if nothing is left."""
    return _without_marks(" ".join(visible(" ".join(text.split())).split()))


def safe_lines(text: str, margin: str = INDENT) -> str:
    """Return `text` as lines that open and close nothing, each non-empty one after `margin` and its own indent."""
    return "\n".join(margin + line if line else "" for line in _lines(text)).strip("\n")


def safe_note(text: str) -> str:
    """Return `text` for the result of a tool, which has a frame of its own: without invisible characters, and with MARK
    for the "<" of a tag that a host or a model may take for its own. Its markdown and its line ends stay.
    """
    import re  # hooks do without

    shown = "\n".join(
        "\t".join(visible(part, keeps_spaces=True) for part in line.removesuffix("\r").split("\t"))
        + ("\r" if line.endswith("\r") else "")
        for line in text.split("\n")
    )
    return re.sub(_STRUCTURE, MARK, shown, flags=re.IGNORECASE)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        shown = visible(line.expandtabs(4)).rstrip()
        own = shown.lstrip(" ")
        yield shown[: len(shown) - len(own)] + _without_marks(own)


def visible(line: str, *, keeps_spaces: bool = False) -> str:
    """Return a line without invisible characters, each blank one a space; with `keeps_spaces`, wide and narrow spaces
    stay."""
    line = line.translate(_BLANK)
    if line.isprintable() and not any(selector in line for selector in _SELECTORS):
        return line
    kept: list[str] = []
    for index, character in enumerate(line):
        if character in _JOINERS:
            # Where it joins two signs that need it, and not where it parts a word, or carries a message of its own.
            follows = line[index + 1 : index + 2]
            keeps = bool(kept) and _is_joined(kept[-1]) and _is_joined(follows) and follows not in _SELECTORS
        elif character in _SELECTORS:
            keeps = bool(kept) and (_is_joined(kept[-1]) or kept[-1] in "0123456789#*") and kept[-1] not in _SELECTORS
        elif character.isspace():
            is_kept = keeps_spaces and character > "\x85" and character not in "\u2028\u2029"
            character, keeps = character if is_kept else " ", True
        else:
            keeps = character.isprintable()
        if keeps:
            kept.append(character)
    return "".join(kept)


def _is_joined(character: str) -> bool:
    """Whether the character can stand beside a joiner: a visible one outside of ASCII."""
    return character > "\x7f" and character.isprintable()


def _without_marks(line: str) -> str:
    """Return a line without what opens or closes a tag, fenced code or a heading."""
    if line[-1:] and line[-1] in _LESS_THAN:  # The rest of the tag may stand on the next line.
        line = line[:-1] + MARK
    for sign in _LESS_THAN:
        if sign in line:
            first, *rest = line.split(sign)
            line = first + "".join((MARK if _opens_tag(part) else sign) + part for part in rest)
    for fence, harmless in _FENCES:
        while fence in line:
            line = line.replace(fence, harmless)
    while line[:1] == "#" and (bare := line.lstrip("#"))[:1] in ("", " "):
        line = bare.lstrip(" ")
    return line


def _opens_tag(rest: str) -> bool:
    """Whether what follows a "<" makes it a tag, or the beginning of one."""
    if rest and rest[0] not in _NO_TAG:
        return True
    bare = rest.lstrip(" ")
    if bare[:1] in ("/", "!", "?"):
        return True
    name = len(bare) - len(bare.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-:."))
    return name > 0 and bare[name:].lstrip(" ")[:1] == ">"
