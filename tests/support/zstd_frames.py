"""A Zstandard frame of stored blocks (RFC 8878), so that tests need no compressor."""

import shutil
import sys

import pytest

MAGIC = b"\x28\xb5\x2f\xfd"
WINDOW = bytes([0x00, 0x58])
"""Frame header: no size of the content, a window of 2 MiB."""
BLOCK_BYTES = 128 << 10


def packed(data: bytes) -> bytes:
    """Pack as a writer does that does not know how much will come."""
    blocks = [data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES)] or [b""]
    parts = [MAGIC, WINDOW]
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        parts += ((last | len(block) << 3).to_bytes(3, "little"), block)
    return b"".join(parts)


needs_decoder = pytest.mark.skipif(
    sys.version_info < (3, 14) and shutil.which("zstd") is None, reason="neither the program zstd nor Python 3.14"
)
