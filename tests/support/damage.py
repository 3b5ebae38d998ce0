"""Damage to a file, at random but from a seed: what a dying disk, a half-done sync or a stray program leaves."""

import os
import random

NOT_TEXT = (b"\xe6\xf4\x3b\x55", b"\xff\xfe\xe6\xb8", b"\xc3", b"\xed\xa0\x80")
PAGE = 4096


def rounds(default: int) -> int:
    """How many rounds a fuzz test runs: MEMORY_FUZZ_ROUNDS, or a few."""
    return int(os.environ.get("MEMORY_FUZZ_ROUNDS", default))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """`data` with one or two places of it overwritten, cut off or zeroed."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2))):
        if out:  # The first may have cut all of it off.
            _damage_once(out, chance)
    return bytes(out)


def _damage_once(data: bytearray, chance: random.Random) -> None:
    # Every third time in the first page, where the schema is.
    where = chance.randrange(min(len(data), PAGE) if chance.random() < 1 / 3 else len(data))
    # Most of a file is empty: rather where something is.
    while not any(data[where : where + 8]) and chance.random() < 0.95:
        where = chance.randrange(len(data))
    match chance.randrange(6):
        case 0:
            _put(data, where, chance.choice(NOT_TEXT))
        case 1:
            _put(data, where, chance.randbytes(chance.randint(1, 64)))
        case 2:
            data[where] ^= 1 << chance.randrange(8)
        case 3:
            start = where // PAGE * PAGE
            _put(data, start, chance.choice((bytes(PAGE), chance.randbytes(PAGE))))
        case 4:
            del data[where:]
        case _:
            letters = [at for at in range(where, min(where + 200, len(data))) if 97 <= data[at] <= 122]
            for at in letters[: chance.randint(1, 4)]:  # Still text, but another one.
                data[at] = chance.randrange(97, 123)


def _put(data: bytearray, where: int, by: bytes) -> None:
    data[where : where + len(by)] = by[: len(data) - where]
