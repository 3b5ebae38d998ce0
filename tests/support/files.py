"""Files that a test finds already there."""

from pathlib import Path


def put(path: Path, text: str | bytes = "") -> Path:
    """Write a file, and the folders above it; its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def put_note(vault: Path, path: str, text: str = "Text.", **fields: object) -> Path:
    """A note as a person writes it, with these fields in its header; its path."""
    header = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return put(vault / path, f"---\n{header}---\n\n{text}\n")
