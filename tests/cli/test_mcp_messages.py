"""`memory service mcp` and messages that the protocol's own client never sends, over real pipes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryvault.tests.support.forked import ForkedSandbox

pytestmark = pytest.mark.slow

NO_REQUEST = -32600
NO_JSON = -32700
PING = {"jsonrpc": "2.0", "id": "the end", "method": "ping"}


class Line:
    """A server, and its lines."""

    def __init__(self, root: Path) -> None:
        self.sandbox = ForkedSandbox(root)
        self.sandbox.memory("save", "preferences", "tabs", "--body", "Indent with tabs, never with spaces.")
        self.sandbox.memory("vault", "reindex")
        self.server = subprocess.Popen(
            [sys.executable, "-m", "memoryvault", "service", "mcp"],
            env=self.sandbox.environment,
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def answers(self, *lines: bytes) -> list[Any]:
        """What comes back for these lines, up to the answer to a ping that is sent after them."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(b"".join(line + b"\n" for line in lines) + json.dumps(PING).encode() + b"\n")
        self.server.stdin.flush()
        found = []
        while (answer := json.loads(self.server.stdout.readline())).get("id") != PING["id"]:
            found.append(answer)
        return found

    def answer(self, line: bytes) -> Any:
        """The only answer to one request, however long it takes."""
        assert self.server.stdout is not None
        sent = self.answers(line)
        return sent[0] if sent else json.loads(self.server.stdout.readline())


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    made = Line(tmp_path_factory.mktemp("messages"))
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}
    made.answers(
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode(),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    )
    yield made
    made.server.communicate(timeout=20)
    assert made.server.returncode == 0


@pytest.mark.parametrize(
    ("sent", "code", "ids"),
    [
        (b"{nope", NO_JSON, [None]),
        (b"[" * 100_000, NO_JSON, [None]),
        (b'{"id":5,"method":"ping"}', NO_REQUEST, [5]),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}', NO_REQUEST, [5]),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":7}', NO_REQUEST, ["\ufffd"]),
        (b'{"jsonrpc":"2.0","id":5,"result":null}', NO_REQUEST, [None]),
        (b'[{"jsonrpc":"2.0","id":6,"method":"ping"}]', NO_REQUEST, [None]),
    ],
)
def test_what_is_no_request_is_answered(line: Line, sent: bytes, code: int, ids: list[Any]) -> None:
    """A host would else wait for it until its own time limit."""
    found = line.answers(sent)
    assert [each["id"] for each in found] == ids
    assert {each["error"]["code"] for each in found} == {code}


@pytest.mark.parametrize("sent", [b"", b"   ", b'{"jsonrpc":"2.0","method":"notifications/unknown"}'])
def test_what_asks_for_nothing_is_not_answered(line: Line, sent: bytes) -> None:
    assert line.answers(sent) == []


@pytest.mark.parametrize("query", [b"tabs or spaces \\ud83d", b"tabs or spaces \xff", b"tabs or spaces \\u0000"])
def test_half_an_emoji_in_a_question_is_no_reason_not_to_answer_it(line: Line, query: bytes) -> None:
    request = b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"recall","arguments":{"query":"%s"}}}'
    found = line.answer(request % query)
    assert found["result"]["structuredContent"]["hits"][0]["path"] == "personal-private/preferences/tabs.md"


def test_a_host_that_reads_no_more_leaves_no_traceback(tmp_path: Path) -> None:
    """As one that is killed while it waits for an answer."""
    server = subprocess.Popen(
        [sys.executable, "-m", "memoryvault", "service", "mcp"],
        env=ForkedSandbox(tmp_path).environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.stdout is not None
    server.stdout.close()
    server.stdout = None
    _, said = server.communicate(json.dumps(PING).encode() + b"\n", timeout=60)
    assert (server.returncode, said) == (0, b"")
