"""The worker's metrics for Prometheus: `http://127.0.0.1:<port>/metrics`, when queue.metrics_port is set.

It listens on the loopback interface only and answers only requests whose Host header names it, so that no
web page in the user's browser can read it under another name (DNS rebinding).
"""

from __future__ import annotations

import json
import logging
import os
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from ... import __version__
from ...vault.errors import MemoryVaultError
from .ledger import Ledger
from .records import WorkerBeat

log = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
REQUEST_SECONDS = 5.0
JOB_BUCKETS = (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0)
HOOK_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
MAX_LOG_BYTES_PER_LOOK = 8_000_000
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Seconds in buckets; not safe against two writers."""

    def __init__(self, buckets: tuple[float, ...]) -> None:
        self.buckets = buckets
        self.counts = [0] * (len(buckets) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.buckets, seconds)] += 1
        self.sum += seconds

    def lines(self, name: str, labels: str) -> Iterable[str]:
        """In the text format."""
        total = 0
        for limit, count in zip((*(f"{b:g}" for b in self.buckets), "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels},le="{limit}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self.sum:.6f}"
        yield f"{name}_count{{{labels}}} {total}"


class Attempts:
    """What this worker's attempts came to: how they ended, how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, Histogram] = {}

    def ended(self, kind: str, outcome: str, seconds: float) -> None:
        """One attempt has ended."""
        with self._lock:
            self._ended[kind, outcome] += 1
            self._seconds.setdefault(kind, Histogram(JOB_BUCKETS)).observe(seconds)

    def lines(self) -> list[str]:
        """In the text format."""
        with self._lock:
            lines = ["# TYPE memoryvault_job_attempts_total counter"]
            for (kind, outcome), count in sorted(self._ended.items()):
                lines.append(f'memoryvault_job_attempts_total{{kind="{kind}",outcome="{outcome}"}} {count}')
            lines.append("# TYPE memoryvault_job_duration_seconds histogram")
            for kind, histogram in sorted(self._seconds.items()):
                lines += histogram.lines("memoryvault_job_duration_seconds", f'kind="{kind}"')
            return lines


class HookTimes:
    """Durations of the hooks, read off the log that they write, from the moment the worker started."""

    def __init__(self, log_file: str) -> None:
        self._path = Path(log_file)
        self._inode, self._offset = self._end()
        self._seconds: dict[str, Histogram] = {}

    def _end(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return 0, 0
        return status.st_ino, status.st_size

    def lines(self) -> list[str]:
        """In the text format, with what was logged since the last call."""
        for fields in self._new_lines():
            if fields.get("event") == "hook" and isinstance(fields.get("ms"), int | float):
                event = "".join(c for c in str(fields.get("hook")) if c.isalnum())[:40]
                self._seconds.setdefault(event, Histogram(HOOK_BUCKETS)).observe(fields["ms"] / 1000)
        lines = ["# TYPE memoryvault_hook_duration_seconds histogram"]
        for event, histogram in sorted(self._seconds.items()):
            lines += histogram.lines("memoryvault_hook_duration_seconds", f'event="{event}"')
        return lines

    def _new_lines(self) -> Iterable[Mapping[str, Any]]:
        inode, size = self._end()
        if inode != self._inode or size < self._offset:
            self._inode, self._offset = inode, 0  # It was rotated.
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(MAX_LOG_BYTES_PER_LOOK)
        except OSError:
            return
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            try:
                fields = json.loads(line)
            except ValueError:
                continue
            if isinstance(fields, dict):
                yield fields


def render(ledger: Ledger, attempts: Attempts, hooks: HookTimes, spool: str) -> str:
    """The whole page.  Raises QueueUnavailable."""
    lines = ["# TYPE memoryvault_jobs gauge"]
    for kind, state, count in ledger.live_counts():
        lines.append(f'memoryvault_jobs{{kind="{kind}",state="{state}"}} {count}')
    lines.append("# TYPE memoryvault_job_oldest_due_seconds gauge")
    for kind, seconds in ledger.oldest_due():
        lines.append(f'memoryvault_job_oldest_due_seconds{{kind="{kind}"}} {seconds:.3f}')
    lines += attempts.lines()
    lines += hooks.lines()
    lines += ["# TYPE memoryvault_spool_files gauge", f"memoryvault_spool_files {_files(spool)}"]
    beat: WorkerBeat | None = ledger.worker()
    if beat is not None:
        lines += ["# TYPE memoryvault_worker_start_time_seconds gauge",
                  f"memoryvault_worker_start_time_seconds {beat.started_at:.3f}"]  # fmt: skip
    lines += ["# TYPE memoryvault_worker_info gauge", f'memoryvault_worker_info{{version="{__version__}"}} 1']
    return "\n".join(lines) + "\n"


def _files(folder: str) -> int:
    try:
        return sum(name.endswith(".json") for name in os.listdir(folder))
    except OSError:
        return 0


class MetricsServer:
    """Serves the page in a thread of its own.  A port that is taken is a warning, never a reason not to work."""

    def __init__(self, port: int, page: Callable[[], str]) -> None:
        self._page = page
        self._port = port
        self._server: HTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int | None:
        """Where it listens, None if it does not."""
        return self._server.server_port if self._server else None

    def start(self) -> None:
        """Listen."""
        try:
            self._server = HTTPServer((ADDRESS, self._port), _handler(self._page))
        except (OSError, OverflowError) as error:
            log.warning("no metrics: port %d on %s: %s", self._port, ADDRESS, error)
            return
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), name="metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(timeout=REQUEST_SECONDS)
            self._server = None


def _handler(page: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_SECONDS
        server_version = "memoryvault"
        sys_version = ""

        def do_GET(self) -> None:
            port = self.server.server_port  # type: ignore[attr-defined]
            if self.headers.get_all("Host") not in ([f"{ADDRESS}:{port}"], [f"localhost:{port}"]):
                self._answer(403, "this address is for this machine only\n")
            elif self.path != "/metrics":
                self._answer(404, "there is only /metrics\n")
            else:
                try:
                    self._answer(200, page())
                except MemoryVaultError as error:
                    self._answer(503, f"{error}\n")

        def _answer(self, status: int, text: str) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a scraper comes every few seconds."""

    return Handler
