"""Read one SKILL.md: its frontmatter and its first paragraph."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from ...runtime.paths import read_regular
from ...vault.frontmatter import is_broken, load_fields
from ...vault.header import split_header
from ...vault.wording import beginning_of

READ_BYTES = 256 << 10
"""Bytes of a file that are read; its size goes into the digest."""
MAX_HEADER_CHARACTERS = 16_000
MAX_TEXT_CHARACTERS = 4000
MAX_NAME_CHARACTERS = 100
_HEADING = re.compile(r"#{1,6}(?:\s|\Z)")


@dataclass(frozen=True)
class SkillText:
    """What a skill says about itself: foreign text, unchecked."""

    name: str
    description: str
    """'' if it has none."""
    summary: str
    """First paragraph of its text; '' if there is none."""
    version: str
    digest: str
    """SHA-256, hexadecimal, of the bytes read and the size."""
    warnings: tuple[str, ...]


def read_skill(path: Path) -> SkillText | None:
    """Read a skill; None for an empty file. Raises OSError, also for a link or a special file."""
    data, status = read_regular(path, READ_BYTES)
    warnings = []
    if status.st_size > READ_BYTES:
        warnings.append(f"it has {status.st_size / 1e6:.1f} MB; only its beginning was read")
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if "\ufffd" in text[:-4]:
        warnings.append("it is not UTF-8")
    if not text.strip("\ufeff \n\t\ufffd"):
        return None
    parts = split_header(text)
    fields: dict[str, object] = {}
    body = text
    if parts is None:
        warnings.append("it has no frontmatter")
    elif len(parts[1]) > MAX_HEADER_CHARACTERS:
        warnings.append("its frontmatter is too long to be one")
        body = parts[2].partition("\n")[2]
    else:
        if is_broken(parts[1]):
            warnings.append("its frontmatter is not valid YAML; what could be read of it was")
        fields = load_fields(parts[1])
        body = parts[2].partition("\n")[2]
    return SkillText(
        name=_text(fields.get("name"))[:MAX_NAME_CHARACTERS] or path.parent.name,
        description=beginning_of(_text(fields.get("description")), MAX_TEXT_CHARACTERS),
        summary=beginning_of(_first_paragraph(body), MAX_TEXT_CHARACTERS),
        version=_version(fields),
        digest=hashlib.sha256(data + str(status.st_size).encode()).hexdigest(),
        warnings=tuple(warnings),
    )


def _version(fields: dict[str, object]) -> str:
    metadata = fields.get("metadata")
    value = fields.get("version") or (metadata.get("version") if isinstance(metadata, dict) else None)
    return _text(value)[:40] if isinstance(value, str | int | float) else ""


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).split())


def _first_paragraph(body: str) -> str:
    """Return the first lines of prose: no heading, code or markup."""
    lines: list[str] = []
    fenced = False
    for line in body.split("\n"):
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fenced = not fenced
        if fenced or not bare or _HEADING.match(bare) or bare.startswith(("```", "~~~", "<", "|", "![")):
            if lines:
                break
            continue
        lines.append(bare)
    return " ".join(lines)
