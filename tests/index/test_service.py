"""The recall service as a real process, with real signals and real sockets."""

import json
import os
import resource
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memoryvault.index.client import RecallClient, RequestFailed, ServiceRefused, ServiceUnavailable
from memoryvault.index.daemon import CannotServe, listen
from memoryvault.index.drain import drain
from memoryvault.index.protocol import MAX_MESSAGE_BYTES
from memoryvault.index.receipts import query_hash, read_receipts
from memoryvault.runtime.priority import BACKGROUND_NICENESS
from memoryvault.runtime.process_lock import lock_holder
from memoryvault.tests.index.bed import Bed, ServiceProcess
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.tasks.support import wait_until

pytestmark = pytest.mark.slow

Start = Callable[..., ServiceProcess]


@pytest.fixture
def vault_of_two(bed: Bed) -> Bed:
    bed.write("personal-private/preferences/use-pnpm.md", "We use pnpm here.", kind="preferences", status="active")
    for number in range(8):
        bed.write(f"notes/n{number}.md", f"Filler about nothing much, number {number}.", status="active")
    bed.write("personal-private/fix/tz.md", "Set TZ before the clock tests.", kind="fix", status="active")
    bed.refresh()
    return bed


def connect(bed: Bed) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(bed.state.recall_socket)
    return connection


def test_it_answers_a_prompt_asked_sideways_with_a_block_for_the_model(vault_of_two: Bed, listening: Start) -> None:
    with listening().client() as client:
        answer = client.recall("which yarn", k=1, session="s-1", cwd="/", render=True, budget_ms=5000)
    assert answer["paths"] == ["personal-private/preferences/use-pnpm.md"]
    assert answer["status"] == "Loaded 1 relevant entries: use-pnpm"
    assert "We use pnpm here." in answer["block"]
    assert answer["degraded"] == []


def test_an_item_of_a_list_is_never_without_what_forbids_it(vault_of_two: Bed, listening: Start) -> None:
    ban = "We ship on Tuesday.\n\n## Never without asking\n\n- push to a release branch\n- drop the quokka database"
    vault_of_two.write("personal-private/preferences/deploys.md", f"# Deploys\n\n{ban}", kind="preferences")
    talk = "".join(f"- talk of thing {number} in the morning\n" for number in range(40))
    long = f"Do none of these without asking:\n{talk}- drop the wombat database"
    vault_of_two.write("personal-private/preferences/work.md", f"# Work\n\n{long}", kind="preferences")
    vault_of_two.refresh()
    with listening().client() as client:
        asked = [client.recall(f"drop the {one} database", session=one, render=True) for one in ("quokka", "wombat")]
    assert "- Deploys: Never without asking: - push to a release branch" in asked[0]["block"]
    assert "- Work: Do none of these without asking: […] - drop the wombat database" in asked[1]["block"]


def test_it_steps_back_for_the_hooks_that_ask_it(vault_of_two: Bed, listening: Start) -> None:
    running = listening()
    assert os.getpriority(os.PRIO_PROCESS, running.pid) >= BACKGROUND_NICENESS


def test_a_question_whose_time_was_over_before_it_was_read_is_refused_and_a_clock_of_another_kind_not_believed(
    vault_of_two: Bed, listening: Start
) -> None:
    with listening().client() as client:
        with pytest.raises(ServiceRefused, match="the time for this question is over"):
            client.recall("which yarn", budget_ms=5000, until=time.monotonic() - 0.01)
        assert client.recall("which yarn", budget_ms=5000, until=time.monotonic() + 1e6)["paths"]


@pytest.mark.hurried
def test_keywords_answer_while_the_model_is_still_loading(vault_of_two: Bed, service: Start) -> None:
    running = service("--load-seconds", "30")
    running.wait_until_listening(model=False)
    with running.client() as client:
        answer = client.recall("pnpm", budget_ms=200 * patience())
        assert client.ping()["loading"] is True
    assert answer["degraded"] == ["model-loading"]
    assert [hit["slug"] for hit in answer["hits"]] == ["use-pnpm"]


def test_without_a_model_it_says_so_and_answers_from_keywords(vault_of_two: Bed, service: Start) -> None:
    running = service("--no-model")
    answer = running.wait_until_listening()
    assert answer["model"] is None
    assert answer["failure"] == "the model is not installed"
    with running.client() as client:
        assert client.recall("pnpm")["degraded"] == ["no-model"]
        with pytest.raises(ServiceRefused, match="not installed"):
            client.request({"op": "embed", "texts": ["a"]}, 5)


def test_a_text_too_long_for_a_request_fails_alone(vault_of_two: Bed, listening: Start) -> None:
    with listening().client() as client:
        with pytest.raises(RequestFailed, match="too long"):
            client.embed(["x" * MAX_MESSAGE_BYTES])
        assert len(client.embed(["short"]).vectors) == 1


@pytest.mark.hurried
def test_a_question_overtakes_a_batch(vault_of_two: Bed, listening: Start) -> None:
    running = listening("--text-seconds", str(0.02 * patience()))
    batch_took: list[float] = []

    def embed() -> None:
        start = time.monotonic()
        with running.client() as client:
            client.embed([f"text {number} " + "word " * 200 for number in range(60)])
        batch_took.append(time.monotonic() - start)

    batch = threading.Thread(target=embed)
    batch.start()
    time.sleep(0.2)
    with running.client() as client:
        start = time.monotonic()
        answer = client.recall("which yarn do we take", budget_ms=2000 * patience())
        took = time.monotonic() - start
    assert batch.is_alive()
    batch.join()
    assert answer["degraded"] == []
    assert took < 0.5 * patience() < 1.0 * patience() < batch_took[0]


def test_a_text_at_which_the_service_fails_does_not_hold_up_the_others(bed: Bed, listening: Start) -> None:
    for number in range(5):
        bed.write(f"notes/n{number}.md", "POISON" if number == 3 else f"Note number {number}.")
    bed.index()
    with listening().client() as client:
        report = drain(bed.store, client.embed, model="fake")
    assert (report.processed, report.errors, report.remaining, report.reason) == (4, 1, 1, None)
    assert [path for path, _ in report.failed] == ["notes/n3.md"]


@pytest.mark.hurried
def test_a_budget_that_the_model_cannot_keep_gets_keywords_in_time(vault_of_two: Bed, listening: Start) -> None:
    with listening("--text-seconds", str(1.5 * patience())).client() as client:
        start = time.monotonic()
        answer = client.recall("pnpm please", budget_ms=200 * patience())
        took = time.monotonic() - start
    assert answer["degraded"] == ["dense-late"]
    assert [hit["slug"] for hit in answer["hits"]] == ["use-pnpm"]
    assert took < 0.3 * patience()


def test_what_the_session_holds_is_not_given_again_until_it_forgets(vault_of_two: Bed, listening: Start) -> None:
    rule = vault_of_two.write("personal-private/_always-load/pnpm-always.md", "Always pnpm.", status="active")
    vault_of_two.index()
    injected = os.path.join(vault_of_two.state.markers, "injected-s-1")
    with open(injected, "w") as file:
        file.write(f"personal-private/preferences/use-pnpm.md\n{rule.relative_to(vault_of_two.vault)}\n")
    with listening("--no-model").client() as client:
        assert client.recall("we use pnpm here", session="s-1")["paths"] == []
        os.truncate(injected, 0)
        assert len(client.recall("we use pnpm here", session="s-1")["paths"]) == 2
        assert len(client.recall("pnpm")["paths"]) == 2
        client.ping()  # A receipt is written after its answer.
    told = [line["given_before"] for line in read_receipts(Path(vault_of_two.state.receipts))]
    assert told == [2, 0, 0]


def test_a_rule_that_did_not_fit_the_sessions_start_is_recalled(vault_of_two: Bed, listening: Start) -> None:
    vault_of_two.write("personal-private/_always-load/said.md", "We use clocks of fake brass.", status="active")
    vault_of_two.write("personal-private/_always-load/omitted.md", "We use pnpm in the shop.", status="active")
    vault_of_two.write("personal-private/fix/flagged.md", "We use pnpm in the yard.", always_load="true")
    vault_of_two.index()
    with open(os.path.join(vault_of_two.state.markers, "injected-s-1"), "w") as file:
        file.write("personal-private/_always-load/said.md\n")
    with listening("--no-model").client() as client:
        found = {path.rsplit("/", 1)[-1] for path in client.recall("we use pnpm here", session="s-1", k=9)["paths"]}
        assert found == {"use-pnpm.md", "omitted.md", "flagged.md"}
        of_another = client.recall("we use pnpm here", session="whose-start-nobody-saw", k=9)["paths"]
        assert of_another == ["personal-private/preferences/use-pnpm.md"]


def test_an_answer_counts_what_was_found_by_meaning_by_words_and_both_ways(vault_of_two: Bed, listening: Start) -> None:
    with listening().client() as client:
        found = client.recall("we use pnpm here", session="s-9")["found"]
    assert found == {"vec_hits": 10, "grep_hits": 1, "deduped_count": 1}


def test_each_recall_leaves_a_receipt_without_the_prompt(vault_of_two: Bed, listening: Start) -> None:
    with listening().client() as client:
        client.recall("we use pnpm here", session="s-9", render=True, k=1)
        client.recall("clock")
        client.ping()
    first, second = read_receipts(Path(vault_of_two.state.receipts))
    assert first["query"] == query_hash("we use pnpm here")
    assert first["session"] == "s-9"
    assert first["caller"] == "hook"
    assert first["injected"] == ["personal-private/preferences/use-pnpm.md"]
    assert first["hits"][0]["dense"] > 0
    assert first["hits"][0]["keyword"] > 0
    assert {"keyword", "dense", "embed", "total"} <= set(first["ms"])
    assert second["injected"] == []
    assert "use pnpm here" not in Path(vault_of_two.state.receipts).read_text()
    assert stat.S_IMODE(os.stat(vault_of_two.state.receipts).st_mode) == 0o600


def test_the_receipt_has_what_came_unreviewed(vault_of_two: Bed, listening: Start) -> None:
    path, source = "personal-private/_review/quokka.md", "{host: claude, session: s-1}"
    vault_of_two.write(path, "Deploy the quokka with the green button.", status="pending", source=source)
    vault_of_two.refresh()
    with listening().client() as client:
        answer = client.recall("deploy the quokka with the green button", session="s-9", render=True)
        client.ping()
    assert "not confirmed: Deploy the quokka" in answer["block"]
    (left,) = read_receipts(Path(vault_of_two.state.receipts))
    assert path in left["injected"]
    assert path in [hit["path"] for hit in left["hits"]]


@pytest.mark.hurried
def test_a_client_that_hangs_holds_up_nobody_and_is_dropped(vault_of_two: Bed, listening: Start) -> None:
    running = listening("--connection-seconds", str(patience()))
    silent, half = connect(vault_of_two), connect(vault_of_two)
    half.sendall(b'{"v":1,"op":"recall","text":"never fin')
    with running.client() as client:
        start = time.monotonic()
        assert client.recall("pnpm")["paths"]
        assert time.monotonic() - start < 0.5 * patience()
    for hanging in (silent, half):
        assert hanging.recv(10) == b""
        hanging.close()


def test_without_a_free_descriptor_it_does_not_spin(vault_of_two: Bed, listening: Start) -> None:
    running = listening()
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (3, 3))

    def processor_seconds() -> float:
        fields = Path(f"/proc/{running.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    with connect(vault_of_two):
        before = processor_seconds()
        time.sleep(1)
        assert processor_seconds() - before < 0.15


def test_a_message_of_100_mb_is_refused_without_growing(vault_of_two: Bed, listening: Start) -> None:
    running = listening()
    piece = b"x" * 1_000_000
    with connect(vault_of_two) as flood:
        sent = 0
        with pytest.raises(OSError):  # noqa: PT012 - it may break at any piece
            for _ in range(100):
                flood.sendall(piece)
                sent += len(piece)
            raise ConnectionError("all of it was taken")
    assert sent < 12_000_000
    with open(f"/proc/{running.pid}/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    assert peak < 200_000
    with running.client() as client:
        assert client.recall("pnpm")["paths"]


NONSENSE: tuple[tuple[bytes, str], ...] = (
    (b"hello", "not JSON"),
    (b"[1]", "not a JSON object"),
    (b'{"v":1,"op":"dance"}', "unknown op"),
    (b'{"v":1,"op":"recall"}', "text is missing"),
    (b'{"v":1,"op":"recall","text":"a","k":"many"}', "k must be a number"),
    (b'{"v":1,"op":"recall","text":"a","session":"../../etc"}', "session id"),
    (b'{"v":1,"op":"recall","text":"a","filter":"garbage"}', "not a clause"),
    (b'{"v":0,"op":"ping"}', "update the client"),
    (b"[" * 100_000, "not JSON"),
)


def test_nonsense_gets_one_line_and_the_connection_goes_on(vault_of_two: Bed, listening: Start) -> None:
    listening()
    with connect(vault_of_two) as connection, connection.makefile("rb") as answers:
        for line, error in NONSENSE:
            connection.sendall(line + b"\n")
            answer = json.loads(answers.readline())
            assert answer["ok"] is False
            assert error in answer["error"]
            assert "\n" not in answer["error"]
            connection.sendall(b'{"v":1,"op":"ping"}\n')
            assert json.loads(answers.readline())["ok"] is True


def test_a_newer_client_makes_it_leave(vault_of_two: Bed, listening: Start) -> None:
    running = listening()
    with connect(vault_of_two) as connection:
        connection.sendall(b'{"v":2,"op":"recall","text":"a"}\n')
        assert json.loads(connection.recv(1000))["ok"] is False
    assert running.wait() == "stopped\n"


def test_a_killed_service_leaves_a_socket_that_the_next_one_replaces_and_its_client_finds_that(
    vault_of_two: Bed, listening: Start
) -> None:
    first = listening()
    with first.client() as client:
        assert client.ping()["pid"] == first.pid
        first.process.kill()
        first.process.wait()
        assert os.path.exists(vault_of_two.state.recall_socket)
        with pytest.raises(ServiceUnavailable):
            client.ping()
        second = listening()
        assert client.ping()["pid"] == second.pid


@pytest.mark.hurried
def test_a_stopped_service_costs_a_client_no_more_than_its_patience(vault_of_two: Bed, listening: Start) -> None:
    running = listening()
    os.kill(running.pid, signal.SIGSTOP)
    try:
        start = time.monotonic()
        with pytest.raises(ServiceUnavailable), running.client() as client:
            client.recall("pnpm", timeout_seconds=0.2)
        assert time.monotonic() - start < 0.4 * patience()
    finally:
        os.kill(running.pid, signal.SIGCONT)
    with running.client() as client:
        assert client.recall("pnpm")["paths"]


def test_a_stopped_service_is_replaced_and_leaves_when_it_goes_on(
    vault_of_two: Bed, service: Start, listening: Start
) -> None:
    first = listening()
    os.kill(first.pid, signal.SIGSTOP)
    second, third = (service("--hangs-seconds", "1") for _ in range(2))
    wait_until(lambda: not (second.process.poll() is third.process.poll() is None), "one of them has left")
    replaced_it, came_late = (second, third) if second.process.poll() is None else (third, second)
    assert came_late.wait() == "already running\n"
    replaced_it.wait_until_listening()
    assert lock_holder(vault_of_two.state.recall_lock) == replaced_it.pid
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait() == "its socket was removed\n"
    with replaced_it.client() as client:
        assert client.ping()["pid"] == replaced_it.pid
        assert client.recall("pnpm")["paths"]


def test_a_service_that_answers_is_not_replaced(vault_of_two: Bed, service: Start, listening: Start) -> None:
    first = listening()
    assert service("--hangs-seconds", "0.5").wait() == "already running\n"
    with first.client() as client:
        assert client.ping()["pid"] == first.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.hurried
def test_a_signal_ends_it_cleanly_after_its_answer(vault_of_two: Bed, listening: Start, number: signal.Signals) -> None:
    running = listening("--text-seconds", str(0.5 * patience()))
    answers: list[list[str]] = []

    def ask() -> None:
        with running.client() as client:
            answers.append(client.recall("a new pnpm question", floor=False)["paths"])

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.2 * patience())
    os.kill(running.pid, number)
    asking.join()
    assert running.wait() == "stopped\n"
    assert running.process.returncode == 0
    assert answers[0]
    assert not os.path.exists(vault_of_two.state.recall_socket)


def test_it_leaves_when_nobody_uses_it(vault_of_two: Bed, service: Start) -> None:
    running = service("--idle-seconds", "0.3")
    assert running.wait() == "nobody used it\n"
    assert not os.path.exists(vault_of_two.state.recall_socket)


def test_it_leaves_when_its_state_folder_is_taken_away(vault_of_two: Bed, listening: Start) -> None:
    running = listening()
    os.unlink(vault_of_two.state.recall_socket)
    assert running.wait() == "its socket was removed\n"


def test_only_the_user_can_open_the_socket(vault_of_two: Bed, service: Start) -> None:
    service().wait_until_listening()
    assert stat.S_IMODE(os.stat(vault_of_two.state.recall_socket).st_mode) == 0o600


def test_a_place_where_no_socket_can_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("not a folder")
    with pytest.raises(CannotServe, match=r"the recall service cannot start .*taken.*: prompts are answered by"):
        listen(str(tmp_path / "taken" / "recall.sock"), 1)


def test_another_user_is_turned_away(vault_of_two: Bed, service: Start) -> None:
    running = service("--foreign")
    wait_until(lambda: os.path.exists(vault_of_two.state.recall_socket), "it listens")
    with pytest.raises(ServiceUnavailable, match=r"reset|hung up|closed"), running.client() as client:
        client.ping()


def test_twenty_prompts_at_once_are_all_answered_by_both_arms(vault_of_two: Bed, listening: Start) -> None:
    listening("--text-seconds", "0.005")

    def ask(number: int) -> dict[str, Any]:
        with RecallClient(vault_of_two.state.recall_socket) as client:
            return client.recall(f"pnpm question {number}", budget_ms=3000, floor=False)

    with ThreadPoolExecutor(20) as pool:
        assert all(result["degraded"] == [] and result["paths"] for result in pool.map(ask, range(20)))


def test_an_index_that_is_deleted_and_rebuilt_under_it_is_picked_up(vault_of_two: Bed, listening: Start) -> None:
    with listening().client() as client:
        assert client.recall("pnpm")["degraded"] == []
        vault_of_two.close_store()
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(vault_of_two.state.index_db + suffix):
                os.unlink(vault_of_two.state.index_db + suffix)
        answer = client.recall("pnpm")
        assert answer["degraded"] == ["no-index"]
        assert answer["found"]["grep_hits"] >= len(answer["paths"]) > 0
        vault_of_two.refresh()
        assert client.recall("pnpm")["degraded"] == []
