"""OpenCode's database as the program leaves it while it runs: the rows lie in the write-ahead log."""

import json
import sqlite3
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL,
  permission text, time_created integer NOT NULL, time_updated integer NOT NULL, revert text);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
"""
BEGAN_MS = 1_772_359_200_000
"""2026-03-01T10:00:00Z"""
TYPED = {"memoryvault": "typed"}
"""What our plugin notes at a part that came from the prompt."""
RUN_BY_A_PROGRAM = [{"permission": "question", "pattern": "*", "action": "deny"}]


class OpenCodeRows:
    """The database in a folder, open: SQLite takes the log away with the last connection."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "opencode.db"
        self._connection = sqlite3.connect(self.path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")
        self._connection.executescript(SCHEMA)
        self._count = 0

    def close(self) -> None:
        self._connection.close()

    def named(self, session: str) -> Path:
        """The name under which a session is read."""
        return self.path.with_name(f"{self.path.name}#{session}")

    def session(self, session: str, directory: str, *, parent: str | None = None, permission: Any = None) -> None:
        values = (session, parent, directory, "A title", None if permission is None else json.dumps(permission))
        self._connection.execute("INSERT INTO session VALUES(?, ?, ?, ?, ?, ?, ?, NULL)", (*values, BEGAN_MS, BEGAN_MS))

    def user(self, session: str, *parts: dict[str, Any]) -> str:
        return self.message(session, {"role": "user"}, *parts)

    def agent(self, session: str, *parts: dict[str, Any], **data: Any) -> str:
        return self.message(session, {"role": "assistant", "time": {"completed": 1}, **data}, *parts)

    def message(self, session: str, data: dict[str, Any], *parts: dict[str, Any]) -> str:
        at, message = self._next("msg")
        created = {**data, "time": {"created": at, **data.get("time", {})}}
        self._connection.execute("INSERT INTO message VALUES(?, ?, ?, ?, ?)",
                                 (message, session, at, at, json.dumps(created)))  # fmt: skip
        for part in parts:
            self.part(session, message, part)
        return message

    def part(self, session: str, message: str, data: dict[str, Any]) -> None:
        at, part = self._next("prt")
        if data["type"] == "tool":
            data = {**data, "state": {"time": {"start": at}, **data["state"]}}
        self._connection.execute("INSERT INTO part VALUES(?, ?, ?, ?, ?, ?)",
                                 (part, message, session, at, at, json.dumps(data, ensure_ascii=False)))  # fmt: skip
        self.run("UPDATE session SET time_updated = ? WHERE id = ?", at, session)

    def run(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, values)

    def _next(self, kind: str) -> tuple[int, str]:
        self._count += 1
        return BEGAN_MS + self._count * 1000, f"{kind}_{self._count:06}"


def typed(text: str) -> dict[str, Any]:
    """A part that was typed at the prompt, with our plugin there."""
    return {"type": "text", "text": text, "metadata": TYPED}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def tool(name: str, arguments: dict[str, Any], **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": name, "callID": "c1", "state": {"status": "completed", "input": arguments, **state}}
