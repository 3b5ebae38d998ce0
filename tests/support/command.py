"""The `memory` command in this process, for what a test prepares or looks up: a process of its own takes half a second.

Where the process itself is what is tested (its output, its exit code, that it is killed), `Sandbox.run` starts one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from memoryvault.cli.main import main


def memory(environment: Mapping[str, str], *arguments: str) -> str:
    """Run it with that environment alone; what it printed. AssertionError with what it complained of when it fails."""
    out, errors = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, environment, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        code = main(arguments)
    assert code == 0, f"memory {' '.join(arguments)} failed:\n{out.getvalue()}{errors.getvalue()}"
    return out.getvalue()


def memory_json(environment: Mapping[str, str], *arguments: str) -> Any:
    """The JSON that it prints."""
    return json.loads(memory(environment, *arguments, "--json"))
