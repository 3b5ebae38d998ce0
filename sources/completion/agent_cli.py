"""Ask the user's own agent: `claude -p` or `codex exec`, headless, without tools, hooks or a stored session.

It runs in an empty folder with a given environment, so that no repository's settings or instructions reach it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...runtime.json_text import json_objects, parse_json
from .completer import (
    MAX_ANSWER_BYTES,
    Completion,
    CompletionFailed,
    CompletionRequest,
    object_in,
    total_tokens,
    unanswered,
)

MAX_PROMPT_BYTES = 9_000_000
"""`claude -p` reads at most 10 MB."""
DEFAULT_CLAUDE_MODEL = "haiku"
CHILD_VARIABLE = "MEMORY_WORKER_CHILD"
"""With this variable our hooks do nothing, so that the session of the mining agent is not mined."""


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended."""

    returncode: int
    stdout: bytes
    cut: str = ""
    """Why it was killed; '' if it ended by itself."""


class Run(Protocol):
    """Runs a program in its own process group, which is killed at the deadline. Raises OSError."""

    def __call__(
        self, argv: Sequence[str], input: bytes, *, env: Mapping[str, str], cwd: str, deadline_seconds: float
    ) -> ProgramResult: ...


@dataclass(frozen=True)
class _AgentCompleter:
    """Asks an agent's program. `env`: the whole environment; `folder`: where the empty working folders are made."""

    program: str
    run: Run
    env: Mapping[str, str]
    folder: Path
    model: str = ""

    def _ran(
        self, arguments: Sequence[str], prompt: str, env: Mapping[str, str], cwd: Path, seconds: float
    ) -> ProgramResult:
        name = Path(self.program).name
        data = prompt.encode("utf-8", "replace")
        if len(data) > MAX_PROMPT_BYTES:
            raise CompletionFailed(f"the prompt is longer than {MAX_PROMPT_BYTES} bytes", may_have_cost=False)
        try:
            env = {**self.env, **env, CHILD_VARIABLE: "1"}
            ran = self.run([self.program, *arguments], data, env=env, cwd=str(cwd), deadline_seconds=seconds)
        except OSError as error:
            raise CompletionFailed(f"{name} cannot be started: {error.strerror}", may_have_cost=False) from None
        if ran.cut:
            raise CompletionFailed(f"{name} was stopped: {ran.cut}")
        if ran.returncode == 127:
            raise CompletionFailed(f"{name} cannot be started", may_have_cost=False)
        return ran


class ClaudeCompleter(_AgentCompleter):
    """Asks `claude -p`."""

    def complete(self, request: CompletionRequest) -> Completion:
        """See Completer."""
        arguments = [
            "-p",
            "--safe-mode",
            "--tools",
            "",
            "--strict-mcp-config",
            "--no-session-persistence",
            "--settings",
            '{"disableAllHooks":true}',
            "--permission-mode",
            "dontAsk",
            "--model",
            self.model or DEFAULT_CLAUDE_MODEL,
            "--output-format",
            "json",
            "--json-schema",
            json.dumps(request.schema),
            "--system-prompt",
            request.system,
        ]
        env = {
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_output_tokens),
            # Otherwise it spends nearly all output tokens on thinking (seen with 2.1.197).
            "MAX_THINKING_TOKENS": "0",
        }
        with _empty_folder(self.folder) as cwd:
            ran = self._ran(arguments, request.prompt, env, cwd, request.deadline_seconds)
        answer = _result_of(ran)
        usage = answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        value = answer.get("structured_output")
        if not isinstance(value, dict):
            raise unanswered("claude gave no structured output")
        cached = [counts.get(name, 0) for name in ("cache_creation_input_tokens", "cache_read_input_tokens")]
        return Completion(value, total_tokens(counts.get("input_tokens"), *cached, counts.get("output_tokens")))


def _result_of(ran: ProgramResult) -> Mapping[str, Any]:
    """Parse the result object of `claude -p --output-format json`."""
    try:
        answer = parse_json(ran.stdout)
    except ValueError:
        if ran.returncode == 0:
            raise unanswered("claude failed: what it printed is no JSON") from None
        raise CompletionFailed(f"claude failed: exit status {ran.returncode}") from None
    if not isinstance(answer, dict) or answer.get("type") != "result":
        raise unanswered("claude failed: what it printed is no result")
    if answer.get("is_error") and answer.get("subtype") == "success":  # The host's words in the answer's place.
        raise unanswered("claude gave an error in the place of an answer")
    if answer.get("is_error") or answer.get("subtype") != "success" or ran.returncode != 0:
        raise CompletionFailed(f"claude failed: {str(answer.get('subtype'))[:60]}")
    return answer


class CodexCompleter(_AgentCompleter):
    """Asks `codex exec`, which writes its answer to a file and prints events with the usage."""

    def complete(self, request: CompletionRequest) -> Completion:
        """See Completer. Codex has no limit of output tokens; the deadline and the size of the answer limit it."""
        with _empty_folder(self.folder) as cwd:
            schema_file, answer_file = cwd / "schema.json", cwd / "answer.json"
            schema_file.write_text(json.dumps(request.schema), "utf-8")
            arguments = [
                "exec",
                "--ephemeral",
                "--skip-git-repo-check",
                "-s",
                "read-only",
                "-c",
                "features.hooks=false",
                "-c",
                'model_reasoning_effort="low"',
                *(("-m", self.model) if self.model else ()),
                "--json",
                "--output-schema",
                str(schema_file),
                "-o",
                str(answer_file),
                "-",
            ]
            ran = self._ran(arguments, f"{request.system}\n\n{request.prompt}", {}, cwd, request.deadline_seconds)
            if ran.returncode != 0:
                if any(event.get("type") == "turn.failed" for event in json_objects(ran.stdout.splitlines())):
                    raise unanswered("codex gave an error in the place of an answer")
                raise CompletionFailed(f"codex failed: exit status {ran.returncode}")
            answer = _read_answer(answer_file)
        usage = _codex_usage(ran.stdout)
        try:
            value = object_in(answer)
        except CompletionFailed as failed:
            raise unanswered(str(failed)) from None
        return Completion(value, total_tokens(usage.get("input_tokens"), usage.get("output_tokens")))


def _read_answer(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ANSWER_BYTES + 1)
    except OSError:
        raise unanswered("codex wrote no answer") from None
    if len(data) > MAX_ANSWER_BYTES:
        raise CompletionFailed(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
    return data.decode("utf-8", "replace")


def _codex_usage(stdout: bytes) -> Mapping[str, Any]:
    """Return the usage in the last turn.completed event."""
    usages = [event.get("usage") for event in json_objects(stdout.splitlines())]
    return next((usage for usage in reversed(usages) if isinstance(usage, dict)), {})


@contextmanager
def _empty_folder(parent: Path) -> Iterator[Path]:
    """A new folder of mode 0700 that is deleted again."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="call-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
