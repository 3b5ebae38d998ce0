"""Parse JSON that another program may have written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Return the value. Raises ValueError, also for one that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def json_objects(lines: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the lines of a log; lines that hold none are left out."""
    for line in lines:
        with suppress(ValueError):
            value = parse_json(line)
            if isinstance(value, dict):
                yield value
