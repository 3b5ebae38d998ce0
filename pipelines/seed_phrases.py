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
PROBE_CHARS = 24
"""Distance of the words that are looked up; a phrase is more than twice as long."""
FEWEST_AFTER = 4
FEWEST_DISTINCT = 4
"""A phrase with fewer different words is the standard's example ("abandon abandon … about")."""
_WORD = re.compile(r"[A-Za-z]+")
_BETWEEN = re.compile(r"[\s\"'`,;.:)\[\]|>\d]{1,12}")


@functools.cache
def _numbers() -> dict[str, int]:
    return {word: number for number, word in enumerate(WORDS_FILE.read_text(encoding="ascii").split())}


def seed_phrases(text: str) -> Iterator[tuple[int, int]]:
    """Yield [start, end) of each phrase. Takes linear time: looks up a word every PROBE_CHARS characters."""
    numbers = _numbers()
    position = done = 0
    while (word := _WORD.search(text, position)) is not None:
        position = max(position + PROBE_CHARS, word.end())
        start = word.start()
        while start > done and text[start - 1].isalpha():
            start -= 1
        if text[start : word.end()].lower() not in numbers:
            continue
        run = _run(text, start)
        if len(run) >= FEWEST_AFTER:
            # The part of the phrase before the word that was looked up.
            before = _run(text, start, max(done, start - 5 * PROBE_CHARS))
            run = before if before and before[-1][0] >= run[0][0] else run
            yield from _phrases(text, run)
        done = run[-1][1]
        position = max(position, done)


def _run(text: str, start: int, earliest: int | None = None) -> list[tuple[int, int]]:
    """Return the ranges of the list's words around `start`, joined by separators, from `earliest` on."""
    numbers = _numbers()
    run: list[tuple[int, int]] = []
    last_end = None
    for word in _WORD.finditer(text, start if earliest is None else earliest):
        known = word.group().lower() in numbers
        joined = last_end is None or _BETWEEN.fullmatch(text, last_end, word.start()) is not None
        if known and (joined or not run):
            run.append(word.span())
        elif word.start() > start:
            break
        else:
            run = [word.span()] if known else []
        last_end = word.end()
    return run


def _phrases(text: str, run: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    if len(run) < LENGTHS[-1]:
        return
    words = [text[start:end].lower() for start, end in run]
    numbers = [_numbers()[word] for word in words]
    if len(set(words)) < FEWEST_DISTINCT or numbers == sorted(numbers):  # Sorted, it is the list itself.
        return
    for length in LENGTHS:
        for first in range(len(run) - length + 1):
            if _is_checked(numbers[first : first + length]):
                yield run[first][0], run[first + length - 1][1]
                return
    if len(run) in LENGTHS:  # Perhaps with a typing error.
        yield run[0][0], run[-1][1]


def _is_checked(numbers: list[int]) -> bool:
    """Whether the last bits are the checksum: the first bits of SHA-256 of the others."""
    bits = "".join(f"{number:011b}" for number in numbers)
    checks = len(numbers) // 3
    entropy = int(bits[:-checks], 2).to_bytes((len(bits) - checks) // 8, "big")
    return f"{hashlib.sha256(entropy).digest()[0]:08b}"[:checks] == bits[-checks:]
