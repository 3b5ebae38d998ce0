"""`memory config model` with real processes: consent, download, the change in the background, and the way back."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.index.client import RecallClient
from memoryvault.index.drain import drain, embed_with
from memoryvault.index.embedder import CHECKSUM_FILE, DEFAULT_MODEL, Embedder, load_embedder, locate_model
from memoryvault.index.model_download import download
from memoryvault.index.store import IndexStore
from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.settings import load_settings
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.stores import open_index
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.loopback_hub import LoopbackHub
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import answered
from memoryvault.tests.support.tiny_model import make_model
from memoryvault.tests.tasks.support import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.model]

NAME = "BAAI/bge-large-en-v1.5"
NOTES = 40


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models of different dimensions: `old` and `bge-large-en-v1.5`."""
    root = tmp_path_factory.mktemp("tiny")
    make_model(root / "old", dimension=24, seed=1)
    make_model(root / "bge-large-en-v1.5", dimension=32, seed=2)
    return root


def quick_model(folder: Path) -> Path:
    """A downloaded model that loads without sentence-transformers, whose import takes most of a process' time here:
    the packaged weights in a folder of another name."""
    packaged = locate_model(DEFAULT_MODEL, Path())
    folder.mkdir()
    for file in packaged.folder.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / CHECKSUM_FILE).write_text(f"{packaged.sha256}\n", "ascii")
    return folder


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With another dimension than the old model's."""
    return quick_model(tmp_path_factory.mktemp("quick") / "quick")


@pytest.fixture(scope="module")
def old(tiny: Path) -> Embedder:
    return load_embedder(str(tiny / "old"), models_folder=tiny, threads=1)


@pytest.fixture
def sandbox(tmp_path: Path, old: Embedder) -> Sandbox:
    """A vault of notes, embedded by the old model."""
    return embedded_vault(tmp_path, old)


class ModelSandbox(ForkedSandbox):
    """Each process loads its model as ever, and finds imported what loads it: that would take most of its time."""

    libraries = ("sentence_transformers",)


def embedded_vault(root: Path, model: Embedder) -> Sandbox:
    made = ModelSandbox(root, {"MEMORY_TEST_LEASE_SECONDS": "2"})
    (root / "config.toml").write_text(f'# mine\n[embedding]\nmodel = "{model.name}"\n', "utf-8")
    folder = made.vault / "personal-private" / "fix"
    folder.mkdir(parents=True)
    for number in range(NOTES):
        text = f"Note {number}: the worker deploys version {number} on tuesday morning."
        (folder / f"note-{number}.md").write_text(f"---\nkind: fix\nstatus: active\n---\n\n{text}\n", "utf-8")
    settings = load_settings(made.environment)
    reconcile_now(settings)
    with open_index(settings) as index:
        assert drain(index, embed_with(model), model=model.name).remaining == 0
        index.put_in_force(model.name)
    return made


def in_force(sandbox: Sandbox) -> dict[str, object]:
    (row,) = [model for model in sandbox.json("config", "model")["models"] if model["in_force"]]
    return dict(row)


def vectors(sandbox: Sandbox) -> dict[str, int]:
    with IndexStore(sandbox.state / "index.db") as store:
        return {Path(model.name).name: model.embedded for model in store.vector_models()}


@pytest.fixture
def hub(tiny: Path) -> Iterator[LoopbackHub]:
    with LoopbackHub(NAME, tiny / "bge-large-en-v1.5").serving() as serving:
        yield serving


def test_without_consent_nothing_is_requested_and_nothing_changes(sandbox: Sandbox, hub: LoopbackHub) -> None:
    before = (sandbox.root / "config.toml").read_bytes()
    sandbox.settings = {**sandbox.settings, "HF_ENDPOINT": hub.endpoint}
    use = ("config", "model", "use", NAME)
    done = sandbox.run(*use)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    _, asked = answered(sandbox, use, "n\n")
    assert "Download it?" in asked
    assert "nothing was downloaded" in asked
    assert hub.requests == []
    assert (sandbox.root / "config.toml").read_bytes() == before


def test_a_model_is_downloaded_embedded_beside_swapped_and_undone(sandbox: Sandbox, quick: Path, tiny: Path) -> None:
    """From a model of 24 dimensions to one of 384, and back."""
    with LoopbackHub(NAME, quick).serving() as hub:
        sandbox.settings = {**sandbox.settings, "HF_ENDPOINT": hub.endpoint}  # for all that runs
        done = sandbox.run("config", "model", "use", NAME, "--yes", "--json")
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert (said["in_force"], said["to_do"], said["dimension"]) == (False, NOTES, 384)
        assert said["query_ms"] > 0
        assert (sandbox.root / "config.toml").read_text("utf-8") == f'# mine\n[embedding]\nmodel = "{NAME}"\n'
        assert in_force(sandbox)["name"] == str(tiny / "old")
        served = len(hub.requests)
        with sandbox.recall_service():
            before = sandbox.json("recall", "which day does the worker deploy?")
            assert before["degraded"] == [], "the old model answers"
            sandbox.memory("service", "worker", "--until-idle")
            assert in_force(sandbox) | {"embedded": 0} == {
                "name": NAME, "installed": True, "in_force": True, "dimension": 384, "embedded": 0, "to_do": 0,
                "coming": False,
            }  # fmt: skip
            socket = StatePaths(str(sandbox.state)).recall_socket
            with RecallClient(socket) as client:
                wait_until(lambda: client.ping()["model"] == NAME, "the service that runs changes over")
            assert sandbox.json("recall", "which day does the worker deploy?")["degraded"] == []
            assert vectors(sandbox) == {"old": NOTES, "bge-large-en-v1.5": NOTES}
            # Back: its vectors are still there.
            back = sandbox.json("config", "model", "use", str(tiny / "old"))
            assert back["in_force"] is True
            with RecallClient(socket) as client:
                wait_until(lambda: client.ping()["model"] == str(tiny / "old"), "and back")
            assert sandbox.json("recall", "which day does the worker deploy?")["degraded"] == []
        assert len(hub.requests) == served, "after the download nobody asked the hub again"


def test_what_was_downloaded_is_all_that_it_takes_to_load_a_model(tmp_path: Path, hub: LoopbackHub, tiny: Path) -> None:
    """One that takes sentence-transformers, unlike that of the test before."""
    download(NAME, tmp_path, hub.endpoint)
    loaded = load_embedder(NAME, models_folder=tmp_path, threads=1)
    original = load_embedder(str(tiny / "bge-large-en-v1.5"), models_folder=tiny, threads=1)
    assert (loaded.name, loaded.dimension, loaded.query_prefix) == (NAME, 32, original.query_prefix)
    assert (
        abs(loaded.encode(["we deploy on tuesday"]).vectors - original.encode(["we deploy on tuesday"]).vectors).max()
        < 1e-6
    )


def test_a_damaged_download_changes_nothing(sandbox: Sandbox, hub: LoopbackHub, tiny: Path) -> None:
    hub.wrong_checksum = True
    done = sandbox.run("config", "model", "use", NAME, "--yes", env={"HF_ENDPOINT": hub.endpoint})
    assert done.returncode == 1
    assert "checksum" in done.stderr
    assert "Traceback" not in done.stderr
    assert in_force(sandbox)["name"] == str(tiny / "old")
    assert NAME not in (sandbox.root / "config.toml").read_text("utf-8")


@pytest.mark.parametrize("point", ["mid-child@2", "before-effect"])
def test_a_killed_change_goes_on_while_the_old_answers(sandbox: Sandbox, tiny: Path, quick: Path, point: str) -> None:
    sandbox.memory("config", "model", "use", str(quick))
    armed = {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": point}
    killed = sandbox.run("service", "worker", "--until-idle", env=armed)
    assert killed.returncode == (-signal.SIGKILL if point == "before-effect" else 0), killed.stderr
    done = vectors(sandbox)["quick"]
    assert done == (NOTES if point == "before-effect" else 32), "what was embedded is kept"
    assert in_force(sandbox)["name"] == str(tiny / "old")
    for job in sandbox.json("jobs", "list", "--state", "queued"):
        if job["kind"] == "model.upgrade":
            for step in ("cancel", "retry"):  # now, not when its backoff of a minute is over
                sandbox.memory("jobs", step, str(job["id"]))
    wait_until(lambda: _swapped(sandbox, quick), "the next worker ends it", seconds=120)
    assert vectors(sandbox) == {"old": NOTES, "quick": NOTES}


def _swapped(sandbox: Sandbox, folder: Path) -> bool:
    sandbox.memory("service", "worker", "--until-idle")
    return in_force(sandbox)["name"] == str(folder)


def test_a_change_of_mind_cancels_the_change(tmp_path: Path, quick: Path) -> None:
    before = quick_model(tmp_path / "before")
    sandbox = embedded_vault(tmp_path, load_embedder(str(before), models_folder=tmp_path, threads=1))
    sandbox.memory("config", "model", "use", str(quick))
    assert sandbox.json("config", "model", "use", str(before))["in_force"] is True
    sandbox.memory("service", "worker", "--until-idle")
    assert in_force(sandbox)["name"] == str(before)
    states = {job["state"] for job in sandbox.json("jobs", "list") if job["kind"] == "model.upgrade"}
    assert states == {"cancelled"}


def test_a_model_named_in_the_settings_by_hand_takes_over_too(sandbox: Sandbox, tiny: Path, quick: Path) -> None:
    (sandbox.root / "config.toml").write_text(f'[embedding]\nmodel = "{quick}"\n', "utf-8")
    assert in_force(sandbox)["name"] == str(tiny / "old")
    wait_until(lambda: _swapped(sandbox, quick), "the drain asks for the change", seconds=120)


def test_a_new_index_is_embedded_with_the_model_chosen_since_the_service_began(tmp_path: Path, quick: Path) -> None:
    """The settings name it, and a service that lives on has read them before."""
    before = quick_model(tmp_path / "before")
    sandbox = embedded_vault(tmp_path, load_embedder(str(before), models_folder=tmp_path, threads=1))
    with sandbox.recall_service():
        sandbox.memory("config", "model", "use", str(quick))
        sandbox.memory("service", "worker", "--until-idle")
        for part in sandbox.state.glob("index.db*"):
            part.unlink()
        sandbox.memory("vault", "reindex")
        assert vectors(sandbox) == {"quick": NOTES}
        assert in_force(sandbox)["name"] == str(quick)


def test_a_variable_that_wins_over_the_settings_file_is_named(sandbox: Sandbox, tiny: Path) -> None:
    variable = {"AGENT_TOOLKIT_EMBEDDING_MODEL": "all-MiniLM-L6-v2"}
    done = sandbox.run("config", "model", "use", str(tiny / "old"), env=variable)
    assert done.returncode == 2
    assert "AGENT_TOOLKIT_EMBEDDING_MODEL" in done.stderr


def test_the_family_decides_the_prefix_and_the_folder_the_longest_text(tiny: Path) -> None:
    bge = load_embedder(str(tiny / "bge-large-en-v1.5"), models_folder=tiny)
    assert bge.query_prefix == "Represent this sentence for searching relevant passages: "
    assert (bge.passage_prefix, bge.max_tokens, bge.dimension) == ("", 64, 32)
    text = "which day do we deploy"
    asked, plain = bge.encode([text], query=True).vectors, bge.encode([text, bge.query_prefix + text]).vectors
    assert abs(asked[0] - plain[1]).max() < 1e-5 < abs(asked[0] - plain[0]).max()
    assert bge.encode(["deploy " * 500]).vectors.shape == (1, 32)
    old = load_embedder(str(tiny / "old"), models_folder=tiny)
    assert old.query_prefix == ""
