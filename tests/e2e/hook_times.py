"""How long each hook took as the client itself measured it.

The client's transcript records a duration only for hooks that printed something and for Stop. Its event
export (OTLP logs over HTTP, here to a listener on loopback) has one `hook_execution_complete` per hook run,
silent ones included. What runs while the client leaves (SessionEnd) is not exported any more.
"""

import json
import statistics
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from ..support.loopback_http import LoopbackServer, QuietHandler


@dataclass(frozen=True)
class HookRun:
    """One event's hooks as the client saw them."""

    event: str
    session: str
    milliseconds: float
    hooks: int
    succeeded: int


class HookListener(LoopbackServer):
    """`with HookListener() as listener:` receives on loopback.

    `listener.environment()` points the client to it.
    """

    def __init__(self) -> None:
        self._runs: list[HookRun] = []
        self._lock = threading.Lock()
        super().__init__(_handler(self))

    def environment(self) -> dict[str, str]:
        return {
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "OTEL_LOGS_EXPORT_INTERVAL": "100",
        }

    @property
    def runs(self) -> tuple[HookRun, ...]:
        with self._lock:
            return tuple(self._runs)

    def receive(self, export: dict[str, Any]) -> None:
        runs = list(_hook_runs(export))
        with self._lock:
            self._runs.extend(runs)


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
                        session=str(fields["session.id"]),
                        milliseconds=float(fields["total_duration_ms"]),
                        hooks=int(fields["num_hooks"]),
                        # A hook that refuses a tool call is "blocking", and has done what it is for.
                        succeeded=int(fields["num_success"]) + int(fields.get("num_blocking") or 0),
                    )


def table(seen: Iterable[HookRun], logged: Iterable[Mapping[str, Any]]) -> list[str]:
    """One line per event: the client's measure of `seen`, and that of the hooks' own log records.

    The hooks' own time begins when the interpreter does and lacks what the client needs to start a process.
    """
    client: dict[str, list[float]] = {}
    for run in seen:
        client.setdefault(run.event, []).append(run.milliseconds)
    own: dict[str, list[float]] = {}
    for record in logged:
        if record.get("event") == "hook":
            own.setdefault(str(record["hook"]), []).append(float(record["duration_ms"]))
    figures = f"{'median':>8}{'max':>8}"
    lines = [f"{'milliseconds':<20}{'client: runs':>14}{figures}{'own log: runs':>16}{figures}"]
    for event in [*client, *(event for event in own if event not in client)]:
        lines.append(f"{event:<20}{_columns(client.get(event, []), 14)}{_columns(own.get(event, []), 16)}")
    return lines


def _columns(times: list[float], width: int) -> str:
    if not times:
        return f"{'-':>{width}}{'-':>8}{'-':>8}"
    return f"{len(times):>{width}}{statistics.median(times):>8.0f}{max(times):>8.0f}"


def _handler(listener: HookListener) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self._body()
            if self.path.endswith("/v1/logs"):
                listener.receive(json.loads(raw))
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
