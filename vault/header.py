"""Find the YAML header of a note, between two `---` lines, and read its one-line fields, without a YAML library.

Light module: hooks read the few entries that they print with it. `entry.parse_entry` is the full parser.
"""

from __future__ import annotations

from .statuses import is_in_use, meant_status

BYTE_ORDER_MARK = "\ufeff"
UNREADABLE = "?"
"""Key under which `parse_scalars` returns the name of a field of DECISIVE that it cannot read."""
DECISIVE = ("status", "project")
"""Fields that can keep a note out of a prompt."""
CONFLICT, TEMPLATE, UNREADABLE_STATUS = "conflict", "template", "unreadable"
"""Statuses read into a note that is not in use: with both sides of a merge from git, a template of Obsidian's, or a
header that can't be read."""
_TEMPLATES = ("template", "templates")
"""A folder of this name, in any case and with a number or signs around it, holds templates, but for notes of this
kind."""
_MARKS = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")
_FILLED_IN = (
    *("{{date", "{{time", "{{title"),
    *("{{value", "{{vdate", "{{macro", "{{clipboard", "{{selected", "{{linkcurrent"),
)
"""Of Obsidian and its plugin QuickAdd, in any case."""
_NULLS = ("~", "null", "Null", "NULL")


def is_boundary(line: str) -> bool:
    """Whether this is a line of three or more hyphens, and maybe trailing blanks."""
    bare = line.rstrip()
    return len(bare) >= 3 and bare.count("-") == len(bare)


def split_header(text: str) -> tuple[str, str, str] | None:
    """Split into (all up to the opening line inclusive, the header, the rest from the closing line on).

    Joined, the three are `text` again. None if `text` does not begin with a header that is closed.
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
    before = start - 1  # the end of the line before one that begins with a hyphen
    while (before := text.find("\n-", before)) >= 0:
        end = text.find("\n", before + 1)
        if is_boundary(text[before + 1 : len(text) if end < 0 else end]):
            return text[:start], text[start : before + 1], text[before + 1 :]
        before += 1
    return None


def extent(text: str) -> int:
    """Return the number of characters before the line that closes the header: 0 without a header, all if none closes
    it."""
    parts = split_header(text)
    if parts is not None:
        return len(text) - len(parts[2])
    return len(text) if is_boundary(text.removeprefix(BYTE_ORDER_MARK).lstrip().partition("\n")[0]) else 0


def is_open(text: str) -> bool:
    """Whether a header begins in `text`, the first piece of a file, and does not end in it."""
    return extent(text) == len(text) > 0


def is_lost(text: str) -> bool:
    """Whether a note without a header was meant to have one: it is not closed and has a field of DECISIVE, or it is
    not opened and says that the note is not in use."""
    plain = text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n").replace("\r", "\n").lstrip()
    for number, paragraph in enumerate(plain.split("\n\n")):
        first, *fields = paragraph.lstrip("\n").split("\n")
        if number == 0 and is_boundary(first) and is_open(text) and any(map(_decisive, fields)):
            return True
        if (number == 0 and first[:3] not in ("```", "~~~")) or is_boundary(first):
            has_rule = any(line and not any(map(str.isalnum, line)) for line in (first, *fields))
            if has_rule and not is_in_use(
                meant_status(parse_scalars("\n".join([first, *fields])).get("status", "").lower())
            ):
                return True
    return False


def body_of(text: str) -> str:
    """Return the text after the header, or all of it, without blank lines around it."""
    parts = split_header(text)
    return _body_after(parts, text)


def _body_after(parts: tuple[str, str, str] | None, text: str) -> str:
    """`parts`: of `split_header(text)`."""
    if parts is None:
        return text.removeprefix(BYTE_ORDER_MARK).strip()
    return parts[2].partition("\n")[2].strip()


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if value[:1] in ("'", '"') and (end := value.rfind(f"{value[0]} ", 1, value.rfind(" #") + 1)) > 0:
        return _unquote(value[: end + 1])
    cut = value.find(" #")
    return value[:cut].rstrip() if cut >= 0 else value


def _texts(value: str, depth: int = 3) -> list[str]:
    """Parse the text on one line, or each item of a list `[a, b]`; nothing for a block, a mapping or a reference."""
    if not value or depth == 0 or value[0] in "{|>&*!" or value.partition(" #")[0].rstrip() in _NULLS:
        return []
    if value[0] != "[":
        return [_unquote(value)]
    whole = value if value.endswith("]") else value[: max(value.rfind(" #"), 0)].rstrip()
    inner = whole[1:-1].strip() if len(whole) > 1 and whole.endswith("]") else ""
    is_one = inner[:1] == "[" or (inner[:1] in ("'", '"') and inner.endswith(inner[0]) and inner.count(inner[0]) == 2)
    return [text for item in ([inner] if is_one else inner.split(",")) for text in _texts(item.strip(), depth - 1)]


def _is_beyond_one_line(value: str) -> bool:
    """Whether the value is a block, tagged, a reference, or a list or a quotation that goes on."""
    if value[:1] in ("'", '"'):
        return value[0] not in value[1:]
    return value[:1] in tuple("|>&*!") or (value[:1] == "[" and "]" not in value)


def _is_plain(item: str) -> bool:
    """Whether the item of a list, or the value below a field, is a scalar and not a mapping."""
    return item[:1] in ("'", '"', "[") or not (": " in item or item.endswith(":"))


def _status(texts: list[str]) -> str:
    """Return the first of a field's values that is not `active`: a note is active only if all are."""
    return next((text for text in texts if meant_status(text.lower()) != "active"), texts[0] if texts else "")


def _decisive(line: str) -> str:
    """Return the field of DECISIVE that the line begins with, in any case and behind any invisible character; or ''."""
    word = ""
    for character in line.lstrip(" \t\"'"):
        if character.isalnum() or character in "_-":
            word += character
        elif character.isprintable():
            break
    return word.lower() if word.lower() in DECISIVE else ""


def canonical(name: str) -> str:
    """Return the name of a field as the program writes it: Obsidian takes `Status` and `status` for one property."""
    return name.lower() if name.lower() in DECISIVE else name


def parse_scalars(header: str) -> dict[str, str]:
    """Parse the one-line `key: value` fields of a header, as text. A list of one item counts as that item, since
    Obsidian writes a property of the type list as one. Other lists, blocks and nested fields are left out. If such a
    field is in DECISIVE, its name is returned under UNREADABLE: it must not be taken for absent.

    Of several lines of `status` the first that is not `active` counts; of another field the last line."""
    found: dict[str, list[str]] = {}
    key = ""  # the field whose list the next lines may be
    unreadable = ""
    first = next((bare for line in header.split("\n") if (bare := line.strip()) and bare[0] != "#"), "")
    if first[:1] == "{" or "\n{" in header:  # YAML's mapping in braces, which may be JSON
        unreadable = next((field for field in DECISIVE if field in header.lower()), "")
        if first[:1] == "{":
            return {UNREADABLE: unreadable} if unreadable else {}
    is_nested = False  # whether indented lines belong to the field before them
    for line in header.split("\n"):
        bare = line.strip()
        if not bare or bare[0] == "#":
            continue
        if line[0] in " \t" and not is_nested and ":" in bare and _decisive(bare):
            line = bare
        if bare == "-" or bare[:2] in ("- ", "-\t"):
            item = bare[1:].strip()
            if key and _is_plain(item):
                found[key] += _texts(item)
                continue
        elif line[0] not in " \t-":
            name, separator, rest = line.partition(":")
            value = rest.strip()
            name, key = name if name.isidentifier() else _unquote("".join(filter(str.isprintable, name)).strip()), ""
            name = canonical(name)
            if separator and name and (not value or rest[0] in " \t"):
                # Most values are plain: a page reads thousands of headers, a hook a few at every prompt.
                is_plain = value[:1].isalnum() and "#" not in value and value not in _NULLS
                values = [value] if is_plain else _texts(value)
                found[name] = found.get(name, []) + values if name == "status" else values
                key = "" if value else name
                is_beyond = not is_plain and _is_beyond_one_line(value)
                is_nested = not value or value[0] == "{" or is_beyond
                if is_beyond and name in DECISIVE:
                    unreadable = name
            else:
                unreadable = _decisive(line) or unreadable
            continue
        found.pop(key, None)  # nested
        if key in DECISIVE and _is_plain(bare):
            unreadable = key
        key = ""
    scalars = {key: texts[0] for key, texts in found.items() if len(texts) == 1 and texts[0]}
    if status := _status(found.get("status", [])):
        scalars["status"] = status
    return {**scalars, UNREADABLE: unreadable} if unreadable else scalars


def is_mark(line: str) -> bool:
    """Whether the line is one of git's conflict marks."""
    return line[:7] in _MARKS and line[7:8] in ("", " ", "\r")


def conflict_line(text: str) -> int:
    """Return the number of the line, from 1, at which git's conflict marks begin; 0 for a text without a conflict.

    Marks within fenced code are an example, unless the marks of the same conflict go on outside of it.
    """
    if "<<<<<<<" not in text and ">>>>>>>" not in text:
        return 0
    marks = {number: line[0] for number, line in enumerate(text.split("\n"), 1) if is_mark(line)}
    if not marks:
        return 0
    from .automemory import find_fences  # Only for the few notes that have such a mark.

    fenced: set[int] = set()
    number, position = 1, 0
    for start, end in find_fences(text):
        first = number + text.count("\n", position, start)
        number, position = first + text.count("\n", start, end), end
        fenced.update(range(first, number))
    plain = {mark for number, mark in marks.items() if number not in fenced}
    in_header = range(2, text.count("\n", 0, extent(text)) + 1)
    if "<" in plain or (">" in plain and "=" in marks.values()) or any(number in in_header for number in marks):
        return min(marks.keys() - fenced or marks)
    return 0


def out_of_use(path: str, text: str) -> str:
    """Return why a text is no memory, whatever its status: CONFLICT, TEMPLATE, UNREADABLE_STATUS for a header that is
    not opened or closed, or bytes that are no text; '' if it may be one."""
    if conflict_line(text):
        return CONFLICT
    parts = split_header(text)
    header = parts[1] if parts is not None else ""
    if in_templates(path, header) or _is_filled_in(header, text):
        return TEMPLATE
    return UNREADABLE_STATUS if "\0" in text or (parts is None and is_lost(text)) else ""


def in_templates(path: str, header: str) -> bool:
    """Whether a note with this header lies in a folder of templates."""
    folders = [each for each in path.split("/")[:-1] if "".join(filter(str.isalpha, each)).lower() in _TEMPLATES]
    return bool(folders) and parse_scalars(header).get("kind") not in folders


def _is_filled_in(header: str, text: str) -> bool:
    """Whether the note has a place that Obsidian fills in: in its header, or in its text outside of code."""
    if ("{{" in header and "}}" in header) or ("<%" in header and "%>" in header):
        return True
    if not any(mark in text for mark in ("{{", "<%")):
        return False
    from .automemory import find_regions  # Only for the few notes that have such a mark.

    plain, position = "", 0
    for start, end, what in find_regions(text):
        if what == "code":
            plain, position = plain + text[position:start], end
    plain += text[position:]
    _, opens, rest = plain.partition("<%")
    if opens and "%>" in rest:
        return True
    return any(piece[:1] in (":", "}") for mark in _FILLED_IN for piece in plain.lower().split(mark)[1:])


def skim(text: str) -> tuple[dict[str, str], str]:
    """Split an entry into (its one-line fields, its body)."""
    parts = split_header(text)
    return (parse_scalars(parts[1]) if parts is not None else {}), _body_after(parts, text)
