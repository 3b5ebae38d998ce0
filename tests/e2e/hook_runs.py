"""What the client itself says of each hook: its event export (OTLP logs over HTTP, here to a listener on loopback) has
one `hook_execution_complete` per hook run, but for what runs while it leaves (SessionEnd)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from ..support.loopback_http import LoopbackServer, QuietHandler


@dataclass(frozen=True)
class HookRun:
    """One event's hooks as the client saw them."""

    event: str
    hooks: int
    succeeded: int


class HookListener(LoopbackServer):
    """`with HookListener() as listener:` receives on loopback.

    `listener.environment()` points the client to it.
    """

    def __init__(self) -> None:
        self.runs: list[HookRun] = []
        super().__init__(_handler(self))

    def environment(self) -> dict[str, str]:
        return {
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "OTEL_LOGS_EXPORT_INTERVAL": "100",
        }


def _hook_runs(export: dict[str, Any]) -> Iterator[HookRun]:
    for resource in export.get("resourceLogs", ()):
        for scope in resource.get("scopeLogs", ()):
            for record in scope.get("logRecords", ()):
                fields: dict[str, Any] = {
                    attribute["key"]: next(iter(attribute["value"].values()), None)
                    for attribute in record.get("attributes", ())
                }
                if fields.get("event.name") == "hook_execution_complete":
                    yield HookRun(
                        event=str(fields["hook_event"]),
                        hooks=int(fields["num_hooks"]),
                        # A hook that refuses a tool call is "blocking", and has done what it is for.
                        succeeded=int(fields["num_success"]) + int(fields.get("num_blocking") or 0),
                    )


def _handler(listener: HookListener) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self._body()
            if self.path.endswith("/v1/logs"):
                listener.runs.extend(_hook_runs(json.loads(raw)))
            self.send("application/json", "{}")

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.body()
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

    return Handler
