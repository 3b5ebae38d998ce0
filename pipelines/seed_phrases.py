"""Find the phrases that restore a wallet (BIP-39): twelve to twenty-four words of a list of 2,048.

The list (`bip39_english.txt`) is the standard's, from the package `mnemonic` (MIT).
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

WORDS_FILE = Path(__file__).with_name("bip39_english.txt")
LENGTHS = (24, 21, 18, 15, 12)
FEWEST_DISTINCT = 4
"""A phrase with fewer different words is the standard's example ("abandon abandon … about")."""
_WORD = re.compile(r"[A-Za-z]+")
_BETWEEN = re.compile(r"[\s\"'`,;.:)\[\]|>\d-]{1,12}")


@functools.cache
def _numbers() -> dict[str, int]:
    return {word: number for number, word in enumerate(WORDS_FILE.read_text(encoding="ascii").split())}


def seed_phrases(text: str) -> Iterator[tuple[int, int]]:
    """Yield [start, end) of each phrase."""
    numbers = _numbers()
    run: list[tuple[int, int]] = []
    for word in _WORD.finditer(text):
        known = word.group().lower() in numbers
        if run and not (known and _BETWEEN.fullmatch(text, run[-1][1], word.start())):
            yield from _phrases(text, run)
            run = []
        if known:
            run.append(word.span())
    yield from _phrases(text, run)


def _phrases(text: str, run: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    if len(run) < LENGTHS[-1]:
        return
    words = [text[start:end].lower() for start, end in run]
    numbers = [_numbers()[word] for word in words]
    if len(set(words)) < FEWEST_DISTINCT or numbers == sorted(numbers):  # Sorted, it is the list itself.
        return
    # The whole run: "seed" and "phrase" are words of the list, too, and a window's checksum may be right by chance.
    if (
        len(run) in LENGTHS
        or any(  # Of such a length, perhaps with a typing error.
            _is_checked(numbers[first : first + length]) for length in LENGTHS for first in range(len(run) - length + 1)
        )
    ):
        yield run[0][0], run[-1][1]


def _is_checked(numbers: list[int]) -> bool:
    """Whether the last bits are the checksum: the first bits of SHA-256 of the others."""
    bits = "".join(f"{number:011b}" for number in numbers)
    checks = len(numbers) // 3
    entropy = int(bits[:-checks], 2).to_bytes((len(bits) - checks) // 8, "big")
    return f"{hashlib.sha256(entropy).digest()[0]:08b}"[:checks] == bits[-checks:]
