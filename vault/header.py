"""The block of YAML between two `---` lines: found and skimmed without a YAML library.

Light module: hooks read the few entries they print through it. `entry.parse_entry` is the full reader.
"""

from __future__ import annotations

BYTE_ORDER_MARK = "\ufeff"


def is_boundary(line: str) -> bool:
    """True for a line of three or more hyphens, trailing blanks aside."""
    bare = line.rstrip()
    return len(bare) >= 3 and bare.count("-") == len(bare)


def split(text: str) -> tuple[str, str, str] | None:
    """`text` as (all up to and with the opening line, the header, the rest from the closing line on).

    The three joined are `text` again. None when the text does not begin with a closed header.
    """
    start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    while True:  # blank lines before the header are allowed, as python-frontmatter allows them
        end = text.find("\n", start)
        if end < 0:
            return None
        line = text[start:end]
        start = end + 1
        if is_boundary(line):
            break
        if line.strip():
            return None
    position = start
    while position < len(text):
        end = text.find("\n", position)
        line_end = len(text) if end < 0 else end
        if text[position] == "-" and is_boundary(text[position:line_end]):
            return text[:start], text[start:position], text[position:]
        position = line_end + 1
    return None


def body_of(text: str) -> str:
    """What follows the header, without the blank lines around it; the whole text if it has none."""
    parts = split(text)
    if parts is None:
        return text.removeprefix(BYTE_ORDER_MARK).strip()
    return parts[2].partition("\n")[2].strip()


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    cut = value.find(" #")
    return value[:cut].rstrip() if cut >= 0 else value


def scalars(header: str) -> dict[str, str]:
    """The header's one-line `key: value` fields as text. Lists, blocks and nested fields are left out."""
    found = {}
    for line in header.split("\n"):
        if not line or line[0] in " \t#-":
            continue
        key, separator, value = line.partition(":")
        key = key.strip()
        if not separator or not key or value[:1] not in (" ", "\t"):
            continue
        value = value.strip()
        if value and value[0] not in "[{|>&*!":
            found[key] = _unquote(value)
    return found


def skim(text: str) -> tuple[dict[str, str], str]:
    """(one-line fields, body) of an entry."""
    parts = split(text)
    return (scalars(parts[1]) if parts is not None else {}), body_of(text)
