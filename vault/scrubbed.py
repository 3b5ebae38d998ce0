"""The type that stands between what a user said and what is written to the vault."""

from __future__ import annotations

from collections.abc import Iterable


class Scrubbed(str):
    """Text from which secrets and personal data have been removed.

    The scrubber is the normal producer. The writers of the vault accept nothing else for titles,
    bodies and free-text fields, so that a path around the scrubber does not type-check and does not run.
    Every operation of `str` gives a plain `str` again; `joined` keeps the type.
    """

    __slots__ = ()

    @classmethod
    def trusted(cls, text: str, *, reason: str) -> Scrubbed:
        """Text that needs no scrubbing: this program wrote it, or it was in the vault already.

        `reason` says why, for the reader of the call; it may not be empty.
        """
        if not reason.strip():
            raise ValueError("a reason is needed for text that bypasses the scrubber")
        return cls(text)

    @classmethod
    def joined(cls, parts: Iterable[Scrubbed], separator: str = "\n\n") -> Scrubbed:
        """The parts that are not empty, joined. Raises TypeError for a part that was not scrubbed."""
        checked = []
        for part in parts:
            if not isinstance(part, Scrubbed):
                raise TypeError("only scrubbed text can be joined to scrubbed text")
            checked.append(part)
        return cls(separator.join(part for part in checked if part))
