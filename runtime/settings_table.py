"""The table of settings: section, key, default, allowed values, variable and description.

Declared once, as a field of its section's class. `SETTINGS` is the table of all of them; the parser, the error
messages, `memory config show` and the reference page are made from it. To add a setting, add a field. Standard library
only.
"""

# ruff: noqa: RUF009 - the functions below make fields, as `field` does

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

SettingType = Literal["switch", "whole number", "text", "path"]

GENERIC = "generic"
"""Stands for the variable MEMORY_<SECTION>_<KEY>, or MEMORY_<KEY> in the section [memory]."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    type: SettingType
    doc: str
    variable: str | None = GENERIC
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int | None = None
    pattern: str | None = None
    """Regular expression for the whole text; `pattern_in_words` says the same to the user."""
    pattern_in_words: str = ""
    name: str = ""
    """`section.key`; filled in, like the default, from the field."""
    default: Any = None

    @property
    def section(self) -> str:
        return self.name.partition(".")[0]

    @property
    def key(self) -> str:
        return self.name.partition(".")[2]

    @property
    def allowed(self) -> str:
        """Return the allowed values in words."""
        if self.type == "switch":
            return "true or false"
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type == "path":
            return "an absolute path, or one that begins with ~/"
        if self.type == "text":
            return self.pattern_in_words or "a text"
        if self.maximum is not None:
            return f"a whole number from {self.minimum} to {self.maximum}"
        return f"a whole number of at least {self.minimum}"


MCP_TOOLS = ("recall", "list", "read", "review", "save", "evolve", "idea", "read_topic", "write_topic")
_TOOL = f"({'|'.join(MCP_TOOLS)})"


# Each of these makes one field: its default, what the setting does, and what is allowed.


def _field(default: Any, setting: Setting) -> Any:
    return field(default=default, metadata={"setting": setting})


def _switch(default: bool, doc: str, *, variable: str | None = GENERIC) -> Any:
    return _field(default, Setting("switch", doc, variable))


def _whole(default: int, doc: str, low: int, high: int | None = None, *, variable: str | None = GENERIC) -> Any:
    return _field(default, Setting("whole number", doc, variable, minimum=low, maximum=high))


def _choice(default: str, doc: str, *choices: str, variable: str | None = GENERIC) -> Any:
    return _field(default, Setting("text", doc, variable, choices))


def _text(default: str, doc: str, pattern: str, in_words: str, *, variable: str | None = GENERIC) -> Any:
    return _field(default, Setting("text", doc, variable, pattern=pattern, pattern_in_words=in_words))


def _path(default: Path | None, doc: str, *, variable: str | None = GENERIC) -> Any:
    return _field(default, Setting("path", doc, variable))


@dataclass(frozen=True, slots=True)
class VaultSection:
    """Where the markdown files are."""

    path: Path | None = _path(None, "The folder MemoryVault/ itself, inside your Obsidian vault.")
    ideas_path: Path | None = _path(
        None, "The note that lists your ideas; not set: Ideas.md beside it.", variable="IDEAS_SURFACE_PATH"
    )


@dataclass(frozen=True, slots=True)
class MemorySection:
    """What MemoryVault does."""

    enabled: bool = _switch(True, "When false, hooks do nothing and no job starts.")
    review_mode: str = _choice(
        "interactive",
        "A likely memory waits for your decision (interactive), goes to the inbox (auto), or is saved (silent).",
        "interactive",
        "auto",
        "silent",
    )
    incubator_gc_months: int = _whole(
        6, "Months (of 30 days) until you are asked about an idea that nobody came back to.", 1, 1200
    )
    disable_auto_memory: bool = _switch(False, "Sessions get nothing of the agent's own notes (`memory vault topics`).")
    import_host_memory: bool = _switch(True, "Claude Code's own notes are copied into the vault.")
    agent_commands: str = _choice(
        "propose",
        "What an agent's shell writes waits for review, and other changes are refused (propose); or it counts as "
        "yours (trust).",
        "propose",
        "trust",
        variable=None,
    )
    autostart: bool = _switch(True, "Hooks may start the worker and the recall service.")
    log_level: str = _choice("info", "How much is logged.", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class RecallSection:
    """Recall for a prompt."""

    k: int = _whole(5, "Most entries printed for one prompt.", 1, 50)
    token_budget: int = _whole(2000, "Tokens for the entries of one prompt; 0 is no limit.", 0)
    core_words: int = _whole(700, "Words for what a session is given at its start; 0 is no limit.", 0)
    eagerness: str = _choice("balanced", "How readily an entry comes with a prompt.", "cautious", "balanced", "eager")
    unreviewed: bool = _switch(
        True, "What you said and did not review yet may come with a prompt, marked as not confirmed."
    )


@dataclass(frozen=True, slots=True)
class SessionSection:
    """When a session is reflected."""

    quiet_seconds: int = _whole(90, "Quiet time after a turn before it is reflected.", 0, 86_400)


@dataclass(frozen=True, slots=True)
class ReflectionSection:
    """How memories are found in a session."""

    eagerness: str = _choice(
        "balanced", "How readily what you said is saved or proposed.", "cautious", "balanced", "eager"
    )
    second_model: bool = _switch(
        True,
        "A second model, if it is installed, reads again what seems likely, and compares statements; it takes 0.3 GB of"
        " memory meanwhile.",
    )
    session_entries: int = _whole(40, "Most entries of one session that wait; the likeliest do. 0 is no limit.", 0)
    inbox_days: int = _whole(90, "Days until a note in the inbox that was not said again is archived.", 1, 3650)
    corpus_review_entries: int = _whole(
        20, "Most memories of old sessions that wait for review at a time; a quarter fewer ideas.", 1
    )
    # What follows can send text off this machine. The environment, which a repository may shape, has no say in it.
    miner: str = _choice(
        "local",
        "Who reads sessions: this machine (local), or also your agent (claude, codex) or an OpenAI-compatible "
        "endpoint (openai). docs/how-to/miners.md",
        "local",
        "claude",
        "codex",
        "openai",
        variable=None,
    )
    endpoint: str = _text(
        "",
        "Base address, for miner openai; naming it is your consent to send it scrubbed text.",
        r"(https?://[^\s@?#]+)?",
        "an https address, or an http address on this machine, as in http://127.0.0.1:11434/v1",
        variable=None,
    )
    model: str = _text(
        "",
        "The model to ask; claude takes haiku when it is not set, codex its own default.",
        r"[\w./:@+-]{0,200}",
        "the name of a model, as in qwen3:4b",
        variable=None,
    )
    api_key_file: Path | None = _path(
        None, "File with the endpoint's key, readable by you alone (mode 600).", variable=None
    )
    agent_command: Path | None = _path(
        None, "The agent's program, for miner claude or codex; not set: found on PATH.", variable=None
    )
    session_token_cap: int = _whole(
        100_000, "Most tokens a model may cost for one session; 0 is no limit.", 0, variable=None
    )
    daily_token_cap: int = _whole(
        500_000, "Most tokens a model may cost for mining on one day; 0 is no limit.", 0, variable=None
    )


@dataclass(frozen=True, slots=True)
class ResearchSection:
    """Research on an idea. An idea is private text: nothing leaves the machine unless `network` is true."""

    network: bool = _switch(
        False,
        "Search engines may be asked a few words of an idea, and the links in it followed. docs/how-to/research.md",
        variable=None,
    )
    providers: str = _text(
        "wikipedia, github, hackernews",
        "Which are asked, in this order, after searxng.",
        r"((wikipedia|github|hackernews)(\s*,\s*(wikipedia|github|hackernews))*)?",
        "some of wikipedia, github, hackernews, with commas",
        variable=None,
    )
    searxng: str = _text(
        "",
        "A SearXNG that answers in JSON, also in your own network.",
        r"(https?://[^\s@?#]+)?",
        "an address, as in http://127.0.0.1:8888",
        variable=None,
    )
    seconds: int = _whole(300, "Longest time for one idea, all attempts together.", 5, 540)
    fetches: int = _whole(3, "Most requests for one idea, redirects included, robots.txt not.", 0, 20)
    tokens: int = _whole(5000, "Most tokens for one idea, of what is written into the notes.", 0)


@dataclass(frozen=True, slots=True)
class EmbeddingSection:
    """The model behind recall by meaning."""

    model: str = _text(
        "all-MiniLM-L6-v2",
        "An embedding model on this machine, by name or folder; `memory config model use` changes it.",
        r"\S(.*\S)?",
        "the name of a model, as in all-MiniLM-L6-v2, or its folder",
        variable="AGENT_TOOLKIT_EMBEDDING_MODEL",
    )


@dataclass(frozen=True, slots=True)
class QueueSection:
    """The worker."""

    workers: int = _whole(2, "Jobs that run at the same time.", 1, 64)


@dataclass(frozen=True, slots=True)
class DiscoverySection:
    """Search for new skills elsewhere, once you have confirmed the sources (docs/how-to/discovery.md)."""

    ask_model: bool = _switch(
        False, "Send a pattern's text to the model of reflection.miner for a second opinion.", variable=None
    )
    daily_token_cap: int = _whole(50_000, "Tokens for second opinions in a day; 0 asks for none.", 0, variable=None)
    github_api: str = _text(
        "https://api.github.com",
        "GitHub's interface, for topics and facts of repositories.",
        r"https?://[^\s/]+(/[^\s]*)?",
        "an address, as in https://api.github.com",
        variable=None,
    )


@dataclass(frozen=True, slots=True)
class HostsSection:
    """Folders of the agents. A transcript elsewhere is refused."""

    claude_config_dir: Path = _path(Path("~/.claude"), "Claude Code's folder.", variable="CLAUDE_CONFIG_DIR")
    codex_home: Path = _path(Path("~/.codex"), "Codex CLI's folder.", variable="CODEX_HOME")
    copilot_home: Path = _path(Path("~/.copilot"), "Copilot CLI's folder.")
    antigravity_home: Path = _path(Path("~/.gemini"), "The folder that Antigravity keeps its own in (experimental).")
    opencode_home: Path = _path(Path("~/.config/opencode"), "OpenCode's folder of settings and plugins.")
    opencode_data: Path = _path(Path("~/.local/share/opencode"), "The folder of OpenCode's database, opencode.db.")
    gemini_home: Path = _path(Path("~/.gemini"), "Gemini CLI's folder.")


@dataclass(frozen=True, slots=True)
class McpSection:
    """Which tools `memory service mcp` offers. No variable can change them: a repository may set variables."""

    tools: str = _text(
        ", ".join(MCP_TOOLS),
        "The tools that an agent may use; none where it is empty. docs/how-to/mcp.md",
        rf"({_TOOL}(\s*,\s*{_TOOL})*)?",
        "some of " + ", ".join(MCP_TOOLS) + ", with commas",
        variable=None,
    )


SECTIONS: Mapping[str, type[Any]] = {
    "vault": VaultSection,
    "memory": MemorySection,
    "recall": RecallSection,
    "session": SessionSection,
    "reflection": ReflectionSection,
    "research": ResearchSection,
    "embedding": EmbeddingSection,
    "queue": QueueSection,
    "discovery": DiscoverySection,
    "hosts": HostsSection,
    "mcp": McpSection,
}


def _rows() -> tuple[Setting, ...]:
    rows = []
    for section, class_ in SECTIONS.items():
        for declared in dataclasses.fields(class_):
            row: Setting = declared.metadata["setting"]
            variable = row.variable
            if variable == GENERIC:
                prefix = "MEMORY_" if section == "memory" else f"MEMORY_{section.upper()}_"
                variable = prefix + declared.name.upper()
            name = f"{section}.{declared.name}"
            rows.append(dataclasses.replace(row, name=name, default=declared.default, variable=variable))
    return tuple(rows)


SETTINGS = _rows()
"""Every setting there is, in the order of the sections."""
BY_NAME: Mapping[str, Setting] = {row.name: row for row in SETTINGS}


def render_settings_reference() -> str:
    """Return the reference of all settings as markdown: one table for each section."""
    parts = []
    for section, class_ in SECTIONS.items():
        parts.append(f"## [{section}]\n\n{(class_.__doc__ or '').strip()}\n")
        parts.append("| key | default | allowed | variable | what it does |\n|---|---|---|---|---|")
        for row in SETTINGS:
            if row.section == section:
                default = "not set" if row.default in (None, "") else f"`{as_toml(row.default)}`"
                variable = f"`{row.variable}`" if row.variable else "config.toml only"
                parts.append(f"| `{row.key}` | {default} | {row.allowed} | {variable} | {row.doc} |")
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def as_toml(value: object) -> str:
    """Return a setting's value as config.toml writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        text = str(value).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text}"'
    return str(value)
