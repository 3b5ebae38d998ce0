"""The model that the user has chosen: which it is, what it receives, and what it may cost."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from memoryvault.runtime.errors import SettingsError
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.completion import ask_within, completer_of, estimated_tokens, tokens_to_reserve
from memoryvault.services.spending import Cap, SpendingBook, spent_since
from memoryvault.sources.completion import Completion, CompletionFailed, CompletionRequest
from memoryvault.sources.completion.completer import total_tokens
from memoryvault.sources.completion.openai import OpenAICompleter
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.stand_in_agent import StandInAgent
from memoryvault.tests.tasks.support import is_alive, wait_until

SCHEMA = {"type": "object"}


def settings_with(sandbox: Sandbox, shaped: Mapping[str, str] = {}, /, **reflection: object) -> Settings:
    lines = [f"{name} = {json.dumps(value)}" for name, value in reflection.items()]
    (sandbox.root / "config.toml").write_text("[reflection]\n" + "\n".join(lines) + "\n", "utf-8")
    settings = load_settings({**sandbox.environment, **shaped})
    settings.state.ensure()
    return settings


def ask(settings: Settings, seconds: float = 30.0) -> Completion:
    completer = completer_of(settings)
    assert completer is not None
    return completer.complete(CompletionRequest("the transcript", "the task", SCHEMA, 77, seconds))


def test_no_model_is_asked_unless_the_settings_file_says_so(sandbox: Sandbox) -> None:
    assert completer_of(settings_with(sandbox)) is None
    shaped = {
        "MEMORY_REFLECTION_MINER": "openai",
        "MEMORY_REFLECTION_ENDPOINT": "http://127.0.0.1:9/v1",
        "MEMORY_REFLECTION_MODEL": "m",
        "MEMORY_REFLECTION_AGENT_COMMAND": "/bin/false",
    }
    settings = settings_with(sandbox, shaped)
    assert completer_of(settings) is None, "a repository's environment is not the user's consent"
    assert settings.reflection.endpoint == ""


def test_a_choice_that_cannot_work_is_told_in_a_line(sandbox: Sandbox) -> None:
    with pytest.raises(SettingsError, match=r"set reflection\.endpoint and reflection\.model"):
        completer_of(settings_with(sandbox, miner="openai"))
    with pytest.raises(SettingsError, match="without https"):
        completer_of(settings_with(sandbox, miner="openai", model="m", endpoint="http://example.com/v1"))
    with pytest.raises(SettingsError, match="is not a program"):
        completer_of(settings_with(sandbox, miner="claude", agent_command="/nonexistent/claude"))
    with pytest.raises(SettingsError, match=r"no codex on PATH: set reflection\.agent_command"):
        completer_of(settings_with(sandbox, {"PATH": "/nonexistent"}, miner="codex"))


def test_a_key_is_taken_only_from_a_file_that_nobody_else_may_read(sandbox: Sandbox) -> None:
    key = sandbox.root / "key"
    chosen: dict[str, object] = {
        "miner": "openai",
        "model": "m",
        "endpoint": "https://example.com/v1",
        "api_key_file": str(key),
    }
    with pytest.raises(SettingsError, match="cannot be read"):
        completer_of(settings_with(sandbox, **chosen))
    key.write_text("sk-abc\n", "utf-8")
    key.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        completer_of(settings_with(sandbox, **chosen))
    key.chmod(0o600)
    assert isinstance(completer_of(settings_with(sandbox, **chosen)), OpenAICompleter)
    key.write_text("sk-abc\nsk-def\n", "utf-8")
    with pytest.raises(SettingsError, match="one key") as refused:
        completer_of(settings_with(sandbox, **chosen))
    assert "sk-" not in str(refused.value)


def test_a_program_in_a_relative_folder_of_the_path_is_not_run(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = StandInAgent(sandbox.root / "repo" / "bin")
    monkeypatch.chdir(sandbox.root / "repo")
    with pytest.raises(SettingsError, match="no claude on PATH"):
        completer_of(settings_with(sandbox, {"PATH": f"bin{os.pathsep}/nonexistent"}, miner="claude"))
    ask(settings_with(sandbox, {"PATH": str(agent.folder)}, miner="claude"))
    assert len(agent.calls) == 1


def test_claude_runs_headless_without_hooks_tools_or_a_stored_session(sandbox: Sandbox) -> None:
    agent = StandInAgent(sandbox.root / "bin")
    agent.tell(answer={"candidates": [1]})
    shaped = {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SESSION_ID": "3f0c6a52",
        "ANTHROPIC_BASE_URL": "http://elsewhere.example",
        "HTTPS_PROXY": "http://elsewhere.example",
        "NODE_OPTIONS": "--require /repo/evil.js",
    }
    completion = ask(settings_with(sandbox, shaped, miner="claude", agent_command=str(agent.program)))
    assert completion == Completion({"candidates": [1]}, 960)
    (call,) = agent.calls
    argv = call["argv"]
    assert argv[:5] == ["-p", "--safe-mode", "--tools", "", "--strict-mcp-config"]
    assert "--no-session-persistence" in argv
    assert json.loads(argv[argv.index("--settings") + 1]) == {"disableAllHooks": True}
    assert json.loads(argv[argv.index("--json-schema") + 1]) == SCHEMA
    assert argv[argv.index("--model") + 1] == "haiku"
    assert argv[argv.index("--system-prompt") + 1] == "the task"
    assert call["stdin"] == "the transcript"
    assert "the transcript" not in " ".join(argv)
    env = call["env"]
    assert env["MEMORY_WORKER_CHILD"] == "1"
    assert env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "77"
    assert not env.keys() & shaped.keys()
    assert env["HOME"] == str(sandbox.root / "home")
    assert "CLAUDE_CONFIG_DIR" not in env, "with it set, the agent would look for its login elsewhere"
    assert (call["files"], call["mode"]) == ([], "0o700")
    assert not Path(call["cwd"]).exists(), "the folder it ran in is gone"


def test_an_agent_whose_files_lie_elsewhere_is_told_so(sandbox: Sandbox) -> None:
    agent = StandInAgent(sandbox.root / "bin")
    elsewhere = {"CLAUDE_CONFIG_DIR": str(sandbox.root / "claude")}
    ask(settings_with(sandbox, elsewhere, miner="claude", agent_command=str(agent.program), model="sonnet"))
    (call,) = agent.calls
    assert call["env"]["CLAUDE_CONFIG_DIR"] == elsewhere["CLAUDE_CONFIG_DIR"]
    assert call["argv"][call["argv"].index("--model") + 1] == "sonnet"


def test_codex_runs_read_only_and_leaves_no_session(sandbox: Sandbox) -> None:
    agent = StandInAgent(sandbox.root / "bin", "codex")
    agent.tell(answer={"candidates": [2]})
    completion = ask(settings_with(sandbox, miner="codex", agent_command=str(agent.program)))
    assert completion == Completion({"candidates": [2]}, 960)
    (call,) = agent.calls
    assert call["argv"][:5] == ["exec", "--ephemeral", "--skip-git-repo-check", "-s", "read-only"]
    assert "features.hooks=false" in call["argv"]
    assert call["argv"][-1] == "-"
    assert call["stdin"] == "the task\n\nthe transcript"
    assert call["env"]["MEMORY_WORKER_CHILD"] == "1"
    assert call["files"] == ["schema.json"]


@pytest.mark.parametrize(
    ("name", "mode", "said"),
    [
        ("claude", "garbage", "no JSON"),
        ("claude", "exit 1", "exit status 1"),
        ("claude", "no answer", "no "),
        ("claude", "limit", "an error in the place"),
        ("claude", "error_max_turns", "error_max_turns"),
        ("claude", "error_max_structured_output_retries", "error_max_structured_output_retries"),
        ("codex", "garbage", "no JSON|wrote no answer"),
        ("codex", "exit 1", "exit status 1"),
        ("codex", "no answer", "no "),
        ("codex", "limit", "an error in the place"),
    ],
)
def test_an_agent_that_fails_is_a_failed_completion(sandbox: Sandbox, name: str, mode: str, said: str) -> None:
    agent = StandInAgent(sandbox.root / "bin", name)
    agent.tell(mode)
    with pytest.raises(CompletionFailed, match=said) as failure:
        ask(settings_with(sandbox, miner=name, agent_command=str(agent.program)))
    assert failure.value.may_have_cost
    if not mode.startswith("error_"):
        assert (failure.value.retry_after is None) == (mode == "exit 1"), "at its limit it says so in words"


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "said"), [("hang", "no answer within"), ("huge", "printed too much")])
@pytest.mark.hurried
def test_an_agent_that_does_not_end_is_killed_with_what_it_started(sandbox: Sandbox, mode: str, said: str) -> None:
    agent = StandInAgent(sandbox.root / "bin")
    agent.tell(mode)
    started = time.monotonic()
    with pytest.raises(CompletionFailed, match=said):
        ask(settings_with(sandbox, miner="claude", agent_command=str(agent.program)), seconds=2.0 * patience())
    assert time.monotonic() - started < 20 * patience()
    (call,) = agent.calls
    wait_until(lambda: not is_alive(call["pid"]) and not is_alive(call["started"]), "agent and sleep are gone")


@pytest.mark.slow
def test_the_hooks_of_the_agent_that_mines_do_nothing(sandbox: Sandbox) -> None:
    agent = StandInAgent(sandbox.root / "bin")
    settings = settings_with(sandbox, miner="claude", agent_command=str(agent.program))
    hooks = []
    for event, more in (("SessionStart", {"source": "startup"}), ("Stop", {}), ("SessionEnd", {"reason": "other"})):
        payload = {
            "hook_event_name": event,
            "session_id": "5d0c6a52-7d1e-4c55-9a51-0f6f6f2b8a22",
            "transcript_path": str(sandbox.transcript("5d0c6a52-7d1e-4c55-9a51-0f6f6f2b8a22", "{}\n")),
            "cwd": "/home/dev/shop",
            **more,
        }
        argv = json.loads(sandbox.memory("config", "hook-command", event, "--json"))
        hooks.append({"argv": argv, "stdin": json.dumps(payload), "env": dict(sandbox.environment)})
    agent.tell(hooks=hooks)
    ask(settings)
    assert os.listdir(settings.state.markers) == []
    assert sandbox.json("jobs", "list") == []

    # The same hooks in a session of the user's do something: the test would notice.
    for hook in hooks:
        sandbox.hook(json.loads(hook["stdin"])["hook_event_name"], json.loads(hook["stdin"]))
    assert [job["kind"] for job in sandbox.json("jobs", "list")] == ["reflect.session"]


class Scripted:
    """Answers, or fails, as it is told."""

    def __init__(self, outcome: Completion | CompletionFailed) -> None:
        self.outcome = outcome
        self.asked = 0

    def complete(self, request: CompletionRequest) -> Completion:
        self.asked += 1
        if isinstance(self.outcome, CompletionFailed):
            raise self.outcome
        return self.outcome


def spend(book: SpendingBook, completer: Scripted) -> Completion:
    request = CompletionRequest("p" * 300, "", SCHEMA, max_output_tokens=100, deadline_seconds=5)
    return ask_within([Cap("tokens", 10_000, "subject")], book, "s1", completer, request)


ESTIMATE = tokens_to_reserve("p" * 300, "", 100)


@pytest.mark.parametrize(
    ("outcome", "spent"),
    [
        (Completion({}, 75), 75),
        (Completion({}), ESTIMATE),
        (Completion({}, total_tokens(10**30, 5)), ESTIMATE),
        (Completion({}, total_tokens(2**62, 2**62)), ESTIMATE),
        (CompletionFailed("it broke off"), ESTIMATE),
        (CompletionFailed("turned away", may_have_cost=False), 0),
    ],
)
def test_spending_is_the_usage_or_estimate(tmp_path: Path, outcome: Completion | CompletionFailed, spent: int) -> None:
    book = SpendingBook(tmp_path / "state.db", "research")
    if isinstance(outcome, CompletionFailed):
        with pytest.raises(CompletionFailed):
            spend(book, Scripted(outcome))
    else:
        assert spend(book, Scripted(outcome)) is outcome
    (sums,) = spent_since(tmp_path / "state.db", "2000-01-01")
    assert (sums.purpose, sums.spent) == ("research", spent)


def test_an_estimate_is_rather_too_high() -> None:
    # What a common tokenizer makes of them: 9, 16 and 6 tokens.
    assert estimated_tokens("The quick brown fox jumps over the dog.") >= 9
    assert estimated_tokens("def f(xs): return [x*2 for x in xs if x]") >= 12
    assert estimated_tokens("記憶を保存する") >= 6
