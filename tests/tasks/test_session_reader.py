"""The reader of a session: the model in the recall service while it answers, n-grams otherwise."""

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from memoryvault.bench.reflection import MODELS
from memoryvault.hooks.recall_client import is_listening
from memoryvault.index import mpnet_files
from memoryvault.index.client import RecallClient, ServiceRefused
from memoryvault.pipelines.candidate import CATEGORIES
from memoryvault.pipelines.reading.reading import CHANNELS, Message
from memoryvault.pipelines.reading.sentences import sentences
from memoryvault.runtime.errors import ModelUnavailable
from memoryvault.runtime.settings import Settings
from memoryvault.services.mining import NO_MODEL, MiningRequest
from memoryvault.services.reading import NAME, SECOND, SessionReader
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.tasks.support import wait_until

RULE = "ok, that works. from now on every pull request needs an entry in the changelog. please fix the typo"


def message(text: str, before: str = "") -> Message:
    return Message(text, before, sentences(text))


@pytest.fixture
def serve(settings: Settings) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "memoryvault.tests.index.serve"]
        process = subprocess.Popen([*command, str(settings.vault.path), settings.state.root])
        started.append(process)
        wait_until(lambda: is_listening(settings.state.recall_socket), "the service listens", 60 * patience())
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_without_a_service_a_session_is_read_by_n_grams(settings: Settings) -> None:
    with SessionReader(settings) as reader:
        reading = reader.read(message(RULE))
        assert reader.name == "words"
    assert len(reading.sentences) == len(sentences(RULE))
    assert 0.0 <= reading.worth <= 1.0


@pytest.mark.model
def test_the_service_reads_with_the_model_and_finds_the_rule_in_its_message(
    settings: Settings, serve: Callable[[], subprocess.Popen[bytes]]
) -> None:
    serve()
    with SessionReader(settings) as reader:
        reading = reader.read(message(RULE, "All tests pass."))
        order = reader.read(message("please fix the typo in the heading", "All tests pass."))
        assert reader.name == NAME
    best = max(range(len(reading.sentences)), key=lambda index: reading.sentences[index].worth)
    assert sentences(RULE)[best].of(RULE).startswith("from now on every pull request")
    assert reading.sentences[best].category in CATEGORIES
    assert reading.worth > order.worth


@pytest.mark.model
def test_a_service_that_is_killed_leaves_the_rest_to_n_grams(
    settings: Settings, serve: Callable[[], subprocess.Popen[bytes]]
) -> None:
    process = serve()
    with SessionReader(settings) as reader:
        reader.read(message(RULE))
        process.send_signal(signal.SIGKILL)
        process.wait()
        again = reader.read(message(RULE))
        assert reader.name == "words"
    assert len(again.sentences) == len(sentences(RULE))


@contextmanager
def failing_service(
    settings: Settings, failures: int, after: int = 0, *, hangs_up: bool = False
) -> Iterator[list[bytes]]:
    """A recall service that fails at so many requests `after` others, then answers; yields the requests."""
    asked: list[bytes] = []
    part = {"sentence": [9.0], "category": [0.0] * len(CATEGORIES), "channel": [0.0] * len(CHANNELS)}
    part |= {"scope": [0.0, 0.0], "tier": [0.0] * 3, "apart": [0.0]}
    answer = {"v": 1, "ok": True, "window": [0.0] * 3, "sentences": [part] * len(sentences(RULE))}
    failure = {"v": 1, "ok": False, "failed": True, "error": "internal error: MemoryError"}

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                asked.append(line)
                fails = after < len(asked) <= after + failures
                if fails and hangs_up:
                    return
                self.wfile.write(json.dumps(failure if fails else answer).encode() + b"\n")

    os.makedirs(os.path.dirname(settings.state.recall_socket), exist_ok=True)
    with socketserver.ThreadingUnixStreamServer(settings.state.recall_socket, Answer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever).start()
        try:
            yield asked
        finally:
            server.shutdown()


def test_a_message_at_which_the_service_fails_is_read_by_n_grams_and_the_next_by_the_model(settings: Settings) -> None:
    with failing_service(settings, 1) as asked, SessionReader(settings, start=False) as reader:
        names = []
        for _ in range(2):
            assert len(reader.read(message(RULE)).sentences) == len(sentences(RULE))
            names.append(reader.name)
    assert names == ["words", NAME]
    assert len(asked) == 2


def with_second(settings: Settings) -> Settings:
    return replace(settings, reflection=replace(settings.reflection, second_model=True))


@pytest.mark.model
def test_the_second_model_reads_again_what_the_first_thinks_likely_and_nothing_else(
    settings: Settings, serve: Callable[[], subprocess.Popen[bytes]]
) -> None:
    mpnet_files.folder_in(Path(settings.state.models)).symlink_to(mpnet_files.prepare(MODELS))
    serve()
    with SessionReader(with_second(settings)) as reader:
        reading = reader.read(message(RULE, "All tests pass."))
        assert reader.name == SECOND
        best = max(range(len(reading.sentences)), key=lambda index: reading.sentences[index].worth)
        assert sentences(RULE)[best].of(RULE).startswith("from now on every pull request")
        assert all(part.apart is not None for part in reading.sentences)
        order = reader.read(message("please fix the typo in the heading", "All tests pass."))
        assert reader.name == NAME
        assert reading.worth > order.worth
    with SessionReader(settings) as reader:
        reader.read(message(RULE, "All tests pass."))
        assert reader.name == NAME, "the setting is off"


@pytest.mark.model
def test_where_the_second_model_fails_the_first_reads_the_rest_of_the_session(settings: Settings) -> None:
    with failing_service(settings, 1, after=1) as asked, SessionReader(with_second(settings), start=False) as reader:
        for _ in range(2):
            assert reader.read(message(RULE)).worth > 0
            assert reader.name == NAME
    assert [json.loads(line)["again"] for line in asked] == [False, True, False]


@pytest.mark.model
def test_where_the_service_ends_while_the_second_model_reads_the_first_has_read_the_message(settings: Settings) -> None:
    with (
        failing_service(settings, 2, after=1, hangs_up=True) as asked,
        SessionReader(with_second(settings), start=False) as reader,
    ):
        reader.read(message(RULE))
        assert reader.name == NAME
    assert len(asked) == 3, "the client asks a service that hung up once more"


def test_a_reader_that_insists_leaves_a_message_to_later_where_the_service_fails(settings: Settings) -> None:
    with (
        failing_service(settings, 1) as asked,
        SessionReader(settings, start=False, insist=True) as reader,
        pytest.raises(ModelUnavailable, match="MemoryError"),
    ):
        reader.read(message(RULE))
    assert len(asked) == 1


@pytest.mark.model
def test_a_reader_that_insists_says_that_an_installed_model_does_not_answer(settings: Settings) -> None:
    starting = replace(settings, memory=replace(settings.memory, autostart=True))
    with SessionReader(starting, start=False, insist=True) as reader, pytest.raises(ModelUnavailable):
        reader.read(message(RULE))
    with SessionReader(settings, insist=True) as reader:
        reader.read(message(RULE))
        assert reader.name == "words", "where no service may be started, there is none to wait for"


@pytest.mark.model
@pytest.mark.parametrize(("insist", "status"), [(True, NO_MODEL), (False, 0)])
def test_the_first_attempts_at_a_session_wait_for_an_installed_model_and_the_later_do_not(
    sandbox: Sandbox, settings: Settings, insist: bool, status: int
) -> None:
    (Path(settings.state.log) / "serve.stderr").mkdir(parents=True)  # So the service cannot be started.
    said = {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": RULE}}
    transcript = sandbox.root / "s1.jsonl"
    transcript.write_text(json.dumps(said) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "memoryvault.services.mining"],
        env={name: value for name, value in sandbox.environment.items() if name != "MEMORY_AUTOSTART"},
        input=json.dumps(asdict(MiningRequest(str(transcript), "claude", insist=insist))),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert ("the model does not answer" in done.stderr) == insist
    assert ("changelog" in done.stdout) != insist


@pytest.mark.model
@pytest.mark.parametrize("spans", [None, [[0, 5], [3, 9]], [[0, 999]], [["0", 1]], [[4, 4]]])
def test_ranges_that_are_none_are_refused_in_one_line(
    settings: Settings, serve: Callable[[], subprocess.Popen[bytes]], spans: object
) -> None:
    serve()
    with RecallClient(settings.state.recall_socket) as client, pytest.raises(ServiceRefused, match="ranges"):
        client.request({"op": "read", "text": "always use tabs", "sentences": spans}, 60 * patience())
