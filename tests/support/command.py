"""Run commands in the process of the test."""

import json
from typing import Any, NamedTuple

import pytest

from memoryvault.cli.main import main


class Said(NamedTuple):
    """What a command printed."""

    out: str
    err: str


class Command:
    """`memory` with the environment of the test."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> Said:
        """Run it and return what it printed; AssertionError for another exit code."""
        self._capsys.readouterr()
        ended = main(words)
        said = Said(*self._capsys.readouterr())
        assert ended == code, said
        return said

    def json(self, *words: str) -> Any:
        """Return the value that it prints with `--json`."""
        return json.loads(self(*words, "--json").out)
