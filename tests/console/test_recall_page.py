"""The recall page: receipts by session, their details, and marks of hits."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoryvault.index.engine import Hit, RecallResult, Rejection
from memoryvault.index.receipts import append_receipt, read_marks, receipt
from memoryvault.services.hook_log import TRIAL_SESSION
from memoryvault.tests.review.support import Bed

from .support import Front, said, visible

SESSION = "3f0c6a52-0000-4000-8000-000000000001"


def leave(bed: Bed, path: str, *, session: str | None = SESSION, minute: int = 0, **more: Any) -> str:
    """A receipt of a recall with one hit; the time it names."""
    hit = Hit(path, "slug", "Title", "decisions", "active", None, 0.69, 0.73, 17.7, "text", 0, None, answers=2.5)
    near = Rejection("personal-private/near.md", 0.1, 0.2, None, -1.5, "below-floor")
    result = RecallResult((hit,), more.get("degraded", ()), {"keyword": 3.0, "check": 1.0, "total": 4.5}, (near,), 0.0)
    line = receipt(
        "how long?", result, caller="hook" if session else "command", session=session, project="shop", tokens=12,
        now=datetime(2026, 5, 4, 9, minute, tzinfo=UTC), injected=[path] if session else [],
    )  # fmt: skip
    append_receipt(Path(bed.settings.state.receipts), line)
    return str(line["at"])


def test_recalls_are_listed_by_session_the_last_first(bed: Bed, front: Front) -> None:
    leave(bed, "personal-private/a.md")
    leave(bed, "personal-private/b.md", minute=1, degraded=("dense-late",))
    leave(bed, "personal-private/c.md", session=None, minute=2)
    text = visible(front.get("recall"))
    assert text.index("without a session") < text.index(SESSION[:8])
    assert "1 in part" in text
    assert "without a session" not in visible(front.get("recall", q="b.md")).partition("Asked by")[2]


def test_the_trials_of_hooks_are_not_listed(bed: Bed, front: Front) -> None:
    leave(bed, "personal-private/a.md", session=f"{TRIAL_SESSION}0123456789ab")
    leave(bed, "personal-private/b.md")
    text = visible(front.get("recall"))
    assert SESSION[:8] in text
    assert TRIAL_SESSION[:8] not in text
    file = Path(bed.settings.state.receipts)
    file.rename(file.with_name(file.name + ".20260511"))
    assert SESSION[:8] in visible(front.get("recall")), "older ones that were rotated are still there"


def test_a_receipt_tells_hits_scores_stages_and_what_was_missing(bed: Bed, front: Front) -> None:
    leave(bed, "personal-private/login.md", degraded=("dense-late",))
    text = visible(front.get("recall", session=SESSION))
    assert "login given 0.69 0.73 17.7 +2.5" in text
    assert "Answered by keywords only: the model was late." in text
    assert "near below the floor; score 0.10, answers -1.5" in text
    assert "4.5 ms, by stage keyword 3.0 ms check 1.0 ms" in text
    assert "12 tokens given" in text


def test_entries_given_before_are_counted_as_by_memory_inspect(bed: Bed, front: Front) -> None:
    result = RecallResult((), (), {"total": 1.0}, (), 0.0)
    nothing = receipt("a haiku", result, caller="hook", session=SESSION, given_before=1)
    append_receipt(Path(bed.settings.state.receipts), nothing)
    text = visible(front.get("recall", session=SESSION))
    assert "Nothing was shown: no other entry reached the floor of +0.0." in text
    assert text.count("given before") == 1
    assert "1 entry that the session was given before was not considered." in text


def test_a_mark_on_what_is_not_on_record_is_refused(bed: Bed, front: Front) -> None:
    at = leave(bed, "personal-private/login.md")
    fields = {"session": SESSION, "useful": "yes"}
    assert "no recall on record" in said(
        front.post("recall/mark", None, **fields, at=at, path="personal-private/other.md")
    )
    assert "no recall on record" in said(
        front.post("recall/mark", None, **fields, at="", path="personal-private/login.md")
    )
    assert "useful or as noise" in said(front.post("recall/mark", session=SESSION, at=at, useful="maybe"))
    assert not read_marks(Path(bed.settings.state.log) / "marks.jsonl")


def test_a_torn_line_and_a_foreign_one_hide_nothing(bed: Bed, front: Front) -> None:
    file = Path(bed.settings.state.receipts)
    file.write_text('{"at": 7}\n[]\n{"at": "2026-05-04T09:00:00", "hits": null, "ms": null}\n{"at": "2026-', "utf-8")
    assert "without a session" in visible(front.get("recall"))
    assert front.get("recall", session="none").status_code == 200


def test_an_unknown_session_is_reported(front: Front) -> None:
    assert said(front.get("recall", session="nobody")) == "no recall of a session nobody is on record"
