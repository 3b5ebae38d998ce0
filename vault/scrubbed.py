"""The type of text that may be written to the vault: secrets and personal data were removed from it."""

from __future__ import annotations

from collections.abc import Iterable

from .wording import one_line


class Scrubbed(str):
    """Text from which secrets and personal data have been removed.

    Usually made by the scrubber. The writers of the vault accept nothing else for titles, bodies and free-text fields,
    so that a path around the scrubber does not type-check and does not run. Every operation of `str` gives a plain
    `str` again; `joined` and `on_one_line` keep the type.
    """

    __slots__ = ()

    @classmethod
    def trusted(cls, text: str, *, reason: str) -> Scrubbed:
        """Mark text that needs no scrubbing: this program wrote it, or it was in the vault already.

        `reason` explains it to the reader of the call. Raises ValueError if it is empty.
        """
        if not reason.strip():
            raise ValueError("a reason is needed for text that bypasses the scrubber")
        return cls(text)

    @classmethod
    def joined(cls, parts: Iterable[Scrubbed]) -> Scrubbed:
        """Join the parts that are not empty as paragraphs. Raises TypeError for a part that was not scrubbed."""
        checked = []
        for part in parts:
            if not isinstance(part, Scrubbed):
                raise TypeError("only scrubbed text can be joined to scrubbed text")
            checked.append(part)
        return cls("\n\n".join(part for part in checked if part))

    def on_one_line(self) -> Scrubbed:
        """Return the same text with each run of white space made one space."""
        return Scrubbed(one_line(self))
