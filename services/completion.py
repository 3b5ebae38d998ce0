"""Ask the language model that the user has chosen, within a budget.

`completer_of(settings)` is None unless `reflection.miner` names a model. `ask_within` reserves tokens in
state.db before it asks and settles afterwards, for any purpose: mining, summaries of research, adaptation.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..runtime.errors import SettingsError
from ..runtime.settings import Settings, child_environment
from ..sources.completion import Completer, Completion, CompletionFailed, CompletionRequest
from ..sources.completion.agent_cli import ClaudeCompleter, CodexCompleter, ProgramResult
from ..sources.completion.openai import OpenAICompleter, endpoint_fault
from ..tasks.queue import supervisor
from .spending import Cap, SpendingBook

BYTES_A_TOKEN = 3
"""Bytes per token. Tokenizers give English 4, code 3 to 4, other scripts about 3 to 4: 3 overestimates tokens."""
OVERHEAD_TOKENS = 300
"""Tokens that an endpoint adds around the messages: the schema, the roles."""
MAX_KEY_BYTES = 4096
CALLS_FOLDER = "calls"


def completer_of(settings: Settings) -> Completer | None:
    """Return the model that the user has chosen; None for the local miner.

    Raises SettingsError if the choice cannot work: no endpoint, no such program, a key that others may read.
    """
    chosen = settings.reflection
    match chosen.miner:
        case "openai":
            if not chosen.endpoint or not chosen.model:
                raise SettingsError("reflection.miner is openai: set reflection.endpoint and reflection.model too")
            fault = endpoint_fault(chosen.endpoint)
            if fault is not None:
                raise SettingsError(f"reflection.endpoint is {chosen.endpoint!r}: {fault}")
            return OpenAICompleter(chosen.endpoint, chosen.model, _key_in(chosen.api_key_file))
        case "claude" | "codex":
            completer = ClaudeCompleter if chosen.miner == "claude" else CodexCompleter
            return completer(
                program=_program(settings),
                run=_run_guarded,
                env=_agent_environment(settings),
                folder=Path(settings.state.cache) / CALLS_FOLDER,
                model=chosen.model,
            )
        case _:
            return None


def _key_in(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(MAX_KEY_BYTES)
    except OSError as error:
        raise SettingsError(f"reflection.api_key_file: {path} cannot be read: {error.strerror}") from error
    if stat.S_IMODE(mode) & 0o077:
        raise SettingsError(f"reflection.api_key_file: others may read {path}: run `chmod 600 {path}`")
    key = data.decode("utf-8", "replace").strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(f"reflection.api_key_file: {path} does not hold one key and nothing else")
    return key


def _program(settings: Settings) -> str:
    """Return the agent's program by its full path. A relative folder on PATH would differ between repositories."""
    chosen = settings.reflection.agent_command
    if chosen is not None:
        if not os.access(chosen, os.X_OK) or not chosen.is_file():
            raise SettingsError(f"reflection.agent_command: {chosen} is not a program")
        return str(chosen)
    name = settings.reflection.miner
    folders = child_environment(settings)["PATH"].split(os.pathsep)
    found = shutil.which(name, path=os.pathsep.join(folder for folder in folders if os.path.isabs(folder)))
    if found is None:
        raise SettingsError(f"reflection.miner is {name}, but there is no {name} on PATH: set reflection.agent_command")
    return found


def _agent_environment(settings: Settings) -> dict[str, str]:
    """Return the allow-listed environment plus the location of the agent's login."""
    env = {name: value for name, value in child_environment(settings).items() if not name.startswith("MEMORY_")}
    hosts = settings.hosts
    for variable, folder, usual in (
        ("CLAUDE_CONFIG_DIR", hosts.claude_config_dir, ".claude"),
        ("CODEX_HOME", hosts.codex_home, ".codex"),
    ):
        # With the variable set, even to the default folder, Claude Code keeps its login elsewhere.
        if folder == Path(env["HOME"]) / usual:
            env.pop(variable, None)
        else:
            env[variable] = str(folder)
    return env


def _run_guarded(
    argv: Sequence[str], input: bytes, *, env: Mapping[str, str], cwd: str, deadline_seconds: float
) -> ProgramResult:
    result = supervisor.run_child(argv, input, deadline_seconds, env=env, cwd=cwd, guard=True)
    cut = {"deadline": f"no answer within {deadline_seconds:.0f} s", "overflow": "it printed too much"}
    return ProgramResult(result.returncode, result.stdout, cut.get(result.ended, ""))


def estimated_tokens(text: str) -> int:
    """Estimate the number of tokens of a text, rather too high than too low."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def tokens_to_reserve(prompt: str, system: str, max_output_tokens: int) -> int:
    """Return the tokens to reserve for a call."""
    return estimated_tokens(prompt) + estimated_tokens(system) + OVERHEAD_TOKENS + max_output_tokens


def ask_within(
    caps: Sequence[Cap], book: SpendingBook, subject: str, completer: Completer, request: CompletionRequest
) -> Completion:
    """Ask a model under caps. A reservation whose call died counts in full, so that no crash pays for it again.

    Raises BudgetRefused before anything is sent, CompletionFailed; both are settled.
    """
    estimate = tokens_to_reserve(request.prompt, request.system, request.max_output_tokens)
    reservation = book.reserve(subject, {"tokens": estimate}, caps)
    try:
        completion = completer.complete(request)
    except CompletionFailed as error:
        book.settle(reservation, {"tokens": estimate if error.may_have_cost else 0})
        raise
    spent = completion.tokens
    book.settle(reservation, {"tokens": estimate if spent is None else spent})
    return completion
