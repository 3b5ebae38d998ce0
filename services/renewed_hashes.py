"""Lines of the journal say what a file was after an act by its hash; this gives them another one."""

from __future__ import annotations

import json
from collections.abc import Mapping


def with_hashes(line: bytes, renewed: Mapping[str, str]) -> bytes:
    """The line of an act with the new hashes; any other as it is."""
    try:
        act = json.loads(line)
        found = [change for change in act["changes"] if change["after_hash"] in renewed]
    except (ValueError, KeyError, TypeError):
        return line
    for change in found:
        change["after_hash"] = renewed[change["after_hash"]]
    return json.dumps(act).encode("ascii") + b"\n" if found else line
