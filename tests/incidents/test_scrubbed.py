"""No way of writing a failure-incident leaves a secret or a person's name in it."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.services.agent_proposals import AgentProposals
from memoryvault.services.conflicts import find_copy, settle_copy
from memoryvault.services.incidents import add

from ..review.support import Bed

REPORT = (
    "deploy refused for alex.herrero@acme.test in /home/alexherrero/shop\n"
    "postgres://app:hunter22@db.internal/shop <private>CANARY <private>x</private> CANARY</private>\n"
    "TypeError: cannot read x"
)
MUST_NOT_STAND = ("alex", "hunter22", "CANARY")
NOTE = "personal-private/failure-incident/deploy.md"


class Terminal(io.StringIO):
    """Standard input that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def saved(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["save", "failure-incident", "deploy", "--title", REPORT.splitlines()[0], "--body", REPORT]) == 0


def noted(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        add(bed.store, REPORT, resolution=f"asked alex.herrero@acme.test\n{REPORT}")


def evolved(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["save", "failure-incident", "deploy", "--body", "It failed."]) == 0
    reason = "told by alex.herrero@acme.test"
    assert main(["evolve", NOTE, "--reason", reason, "--body", REPORT]) == 0


def proposed(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    AgentProposals(bed.settings, bed.store, bed.journal).propose("failure-incident", REPORT.splitlines()[0], REPORT)


def edited_in_review(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    proposed(bed, monkeypatch)
    keys = iter("eq")
    monkeypatch.setattr("memoryvault.cli.editor.Drafts.edit", lambda _self, _path, _text: REPORT)
    monkeypatch.setattr("memoryvault.cli.review.read_key", lambda _question: next(keys))
    monkeypatch.setattr("sys.stdin", Terminal())
    assert main(["review"]) == 0


def merged(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "---\nkind: failure-incident\nstatus: active\n---\n\n# Deploy\n\n"
    copy = NOTE.replace(".md", ".sync-conflict-20260101-101010-ABCDEFG.md")
    for name in (NOTE, copy):
        (bed.vault / name).parent.mkdir(parents=True, exist_ok=True)
        (bed.vault / name).write_text(f"{head}{name}\n", "utf-8")
    settle_copy(bed.journal, find_copy(bed.store, copy), "merged", run="t", text=head + REPORT)


@pytest.mark.parametrize(
    "way",
    [
        saved,
        noted,
        proposed,
        merged,
        pytest.param(evolved, marks=pytest.mark.slow),
        pytest.param(edited_in_review, marks=pytest.mark.slow),
    ],
)
def test_no_way_of_writing_an_incident_goes_around_the_full_scrub(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, way: Callable[[Bed, pytest.MonkeyPatch], None]
) -> None:
    bed.enter(monkeypatch)
    way(bed, monkeypatch)
    texts = [text for text in bed.files().values() if "failure-incident" in text]
    assert texts
    everything = b"".join(path.read_bytes() for path in Path(bed.root).rglob("*") if path.is_file())
    for word in MUST_NOT_STAND:
        assert word not in "".join(texts)
        assert word.encode() not in everything
    assert "cannot read x" in "".join(texts)
