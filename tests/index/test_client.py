"""Starting the recall service on demand."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import memoryvault
from memoryvault.index import client as client_module
from memoryvault.index.client import RecallClient, ServiceUnavailable, ensure_service
from memoryvault.index.recall import recall_entries
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.semantic_similarity import SemanticSimilarity
from memoryvault.tests.index.bed import Bed, ServiceProcess
from memoryvault.tests.support.hurry import patience

pytestmark = pytest.mark.slow


@pytest.fixture
def user(bed: Bed) -> Iterator[Settings]:
    """Settings of a user whose shell carries what must not get in."""
    environment = {
        "HOME": str(bed.root),
        "PATH": os.environ["PATH"],
        "MEMORY_VAULT_PATH": str(bed.vault),
        "MEMORY_STATE_DIR": str(bed.root / "s"),
        "MEMORY_CONFIG": str(bed.root / "config.toml"),
        "PYTHONPATH": "/a/repository",
        "HTTPS_PROXY": "http://a.repository",
    }
    settings = load_settings(environment)
    yield settings
    with contextlib.suppress(ServiceUnavailable), RecallClient(settings.state.recall_socket) as client:
        pid = client.ping()["pid"]
        client.stop()
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)


def fake(settings: Settings) -> list[str]:
    serve = "memoryvault.tests.index.serve"
    return [sys.executable, "-I", "-m", serve, str(settings.vault_path), settings.state.root]


def test_it_is_started_once_detached_and_clean(user: Settings) -> None:
    assert ensure_service(user, 30, wait_for_model=True, command=fake(user))
    with RecallClient(user.state.recall_socket) as client:
        pid = client.ping()["pid"]
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    names = {line.split(b"=")[0].decode() for line in environment if line}
    assert not names & {"PYTHONPATH", "HTTPS_PROXY"}
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) != os.getsid(0)
    assert Path(user.state.log, "serve.stderr").stat().st_mode & 0o777 == 0o600, "whatever the shell's umask is"
    assert ensure_service(user, 0, command=["/bin/false"])
    with RecallClient(user.state.recall_socket) as client:
        assert client.ping()["pid"] == pid


@pytest.mark.hurried
def test_it_does_not_wait_when_it_is_not_asked_to(user: Settings) -> None:
    start = time.monotonic()
    assert not ensure_service(user, 0, command=[*fake(user), "--load-seconds", "30"])
    assert time.monotonic() - start < 1 * patience()
    assert ensure_service(user, 30, command=["/bin/true"])


def test_a_service_of_another_version_is_replaced(user: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ensure_service(user, 30, command=fake(user))
    with RecallClient(user.state.recall_socket) as client:
        first = client.ping()["pid"]
    monkeypatch.setattr(client_module, "__version__", "99")
    # The one that comes is of the old version too (it is our own program), but it is not asked to leave again.
    assert ensure_service(user, 30, command=fake(user))
    with RecallClient(user.state.recall_socket) as client:
        assert client.ping()["pid"] != first


def test_a_service_says_the_version_that_it_runs_when_another_is_installed_meanwhile(bed: Bed, tmp_path: Path) -> None:
    """Else the newer client takes it for one of its own, and leaves the old code serving."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "memoryvault").symlink_to(Path(memoryvault.__file__).parent)
    installed = packages / f"memoryvault-{memoryvault.__version__}.dist-info"
    installed.mkdir()
    service = ServiceProcess(bed.vault, bed.state, packages=packages)
    try:
        service.wait_until_listening()
        installed.rename(upgraded := packages / "memoryvault-99.0.dist-info")
        (upgraded / "METADATA").write_text("Metadata-Version: 2.1\nName: memoryvault\nVersion: 99.0\n")
        with service.client() as client:
            assert client.ping()["version"] == memoryvault.__version__
    finally:
        service.end()


def test_likeness_in_meaning_is_asked_of_the_service_and_unknown_without_it(user: Settings) -> None:
    texts = ["we ship on Tuesdays", "the kettle is upstairs"]
    with SemanticSimilarity(user) as meaning:
        assert meaning.cosines(texts[0], texts) == [None, None]
    assert ensure_service(user, 30, wait_for_model=True, command=fake(user))
    with SemanticSimilarity(user) as meaning:
        same, other = meaning.cosines(texts[0], texts)
    assert same == pytest.approx(1.0, abs=1e-5)
    assert other is not None
    assert other < 0.99


def test_where_no_service_can_be_started_one_line_says_so_and_the_index_answers(bed: Bed, user: Settings) -> None:
    Path(user.state.log, "serve.stderr").mkdir(parents=True)
    bed.write("notes/pnpm.md", "We install with pnpm.", status="active")
    bed.index()
    request: dict[str, object] = {"k": 5, "project": None, "include": []}
    answer = recall_entries(user, bed.state, "pnpm", request, caller="test", patience_seconds=0)
    assert [hit["slug"] for hit in answer.hits] == ["pnpm"]
    assert "cannot be started" in answer.without_service
    with pytest.raises(ServiceUnavailable, match="cannot be started"):
        ensure_service(user)


def test_nobody_there_is_said_in_one_line(bed: Bed) -> None:
    with (
        pytest.raises(ServiceUnavailable, match="memory service serve"),
        RecallClient(bed.state.recall_socket) as client,
    ):
        client.ping()


def test_a_connection_dropped_for_silence_is_opened_again(bed: Bed, listening: Callable[..., ServiceProcess]) -> None:
    running = listening("--connection-seconds", "0.2")
    with running.client() as client:
        client.ping()
        time.sleep(0.5)
        assert client.embed(["a text"]).model == "fake"
