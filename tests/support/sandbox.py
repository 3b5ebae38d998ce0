"""The demo's sandbox for tests: a second try on a busy machine gives its hooks more time (support/hurry.py)."""

import json
from collections.abc import Mapping
from typing import Any

from memoryvault.demo import sandbox

from .hurry import patient

OPTIONS = 5
"""A host runs `python -I -S -c <code> <script> <event> …`."""


class Sandbox(sandbox.Sandbox):
    """As the demo's."""

    def hook(self, event: str, payload: Mapping[str, Any], *, argv: list[str] | None = None) -> str:
        command = self.hook_argv(event) if argv is None else argv
        return super().hook(event, payload, argv=[*command[:OPTIONS], *patient(command[OPTIONS:])])

    def refused(self, *arguments: str, code: int = 1, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
        """The line with which a command ends that prints nothing else; AssertionError where it does otherwise."""
        done = self.run(*arguments, stdin=stdin, env=env)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done
        return done.stderr

    def diagnosis(self) -> dict[str, dict[str, str]]:
        """What `memory doctor` finds, by what it is about; AssertionError where its exit code says otherwise."""
        done = self.run("doctor", "--json")
        found = {finding["what"]: finding for finding in json.loads(done.stdout)}
        is_faulty = any(finding["grade"] == "fault" for finding in found.values())
        assert (done.returncode, done.stderr) == (is_faulty, ""), done
        return found
