"""Names by which other tools, or we before, call what a command, its word or its option does here: who tries one is
told ours."""

from __future__ import annotations

from collections.abc import Mapping

_REMOVED = "`memory dismiss` takes an entry out of use, `memory undo` takes back what MemoryVault wrote by itself"
_DIGEST = "`_meta/corpus-digest.md`: `memory reflect corpus` makes it, `memory review --digest` goes through its lines"
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "list": ("ls", "dir", "entries"),
    "recall": ("find", "ask", "query", "grep"),
    "show": ("get", "cat", "read", "view", "open"),
    "save": ("add", "remember", "create", "new", "write", "store", "learn"),
    "evolve": ("edit", "update", "change", "replace"),
    "health": ("status", "stats"),
    "doctor": ("check", "test", "verify"),
    "init": ("setup", "install"),
    "service up": ("start", "run"),
    "console": ("web", "ui", "dashboard"),
    "config show": ("settings", "set"),
    "vault reindex": ("index", "sync", "rebuild"),
    "review": ("approve", "reject", "pending", "proposals"),
}
INSTEAD: Mapping[str, str] = {
    **{other: f"did you mean `memory {name}`?" for name, others in _COMMANDS.items() for other in others},
    "digest": _DIGEST,
    **dict.fromkeys(("rm", "delete", "remove", "forget"), _REMOVED),
}
"""Other name -> what to do instead, for the end of a line."""

OLD_NAMES: Mapping[str, str] = {
    "demo": "vault demo",
    "search": "recall",
    "inspect": "vault inspect",
    "inbox": "vault inbox",
    "promote idea": "idea promote",
    "discover-skills": "skills discover",
    "adapt-skills": "skills adapt",
    "watchlist": "skills watchlist",
    "scrub": "vault scrub",
    "index-skills": "skills index",
    "seed": "import seed",
    "migrate": "import migrate",
    "topics": "vault topics",
    "incident": "vault incident",
    "reindex": "vault reindex",
    "model": "config model",
    "jobs": "jobs list",
    "schedule": "jobs schedule",
    "worker": "service worker",
    "serve": "service serve",
    "up": "service up",
    "logs": "service logs",
    "config": "config show",
    "mcp": "service mcp",
    "eval": "config eval",
    "hook-command": "config hook-command",
}
"""Name of a command before there were groups -> its name now. They go with the next version."""

RUN_BY_PROGRAMS = ("worker", "serve", "mcp", "hook-command")
"""Old names that agents and units of the system run, which keep what a command says on stderr: to them the new one is
not told."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "repair": ("rebuild-index",),
    "delete": ("rm", "cancel"),
    "remove": ("rm", "cancel"),
    "show": ("read",),
    "check": ("lint",),
}
"""Other word behind a command -> ours, of which a command has at most one."""

OPTIONS: Mapping[str, str] = dict.fromkeys(("--text", "--content", "--message"), "--body")
"""Other option -> ours, which a command may have."""
