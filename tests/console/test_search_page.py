"""The search page: hits with scores, the command's filters, and lists by page."""

import re
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from memoryvault.index.engine import Hit, RecallResult, Rejection
from memoryvault.index.receipts import append_receipt, read_receipts, receipt
from memoryvault.services.indexing import reconcile_now
from memoryvault.tests.review.support import Bed
from memoryvault.vault.wording import cut

from .support import Front, said, visible
from .vaults import SESSION


def index(bed: Bed) -> None:
    """As the worker does after a change."""
    reconcile_now(bed.settings)


def rule(bed: Bed, slug: str, text: str, **fields: object) -> str:
    known: dict[str, object] = {"kind": "decisions", "status": "active", "created": "2026-05-04"}
    title = slug.replace("-", " ").capitalize()
    return bed.note(f"personal-private/decisions/{slug}.md", f"# {title}\n\n{text}", **known | fields)


LONG = "If you store prices, store whole cents, because halves of a cent that nobody sees add up to an error at last."


def titles(page: str) -> list[str]:
    return re.findall(r"<h2><a [^>]*>([^<]+)</a></h2>", page)


def test_a_question_is_answered_with_both_scores_and_leaves_a_receipt(bed: Bed, front: Front) -> None:
    rule(bed, "login-tokens", "Login tokens last for fifteen minutes.")
    rule(bed, "money", "Prices are whole cents.")
    index(bed)
    answer = front.get("search", q="how long do login tokens last?")
    assert titles(answer.text) == ["Login tokens"]
    text = visible(answer)
    assert re.search(r"score \d\.\d\d meaning – words \d+\.\d answers \+\d+\.\d", text)
    assert "Answered by keywords only: no embedding model." in text
    (receipt,) = read_receipts(Path(bed.settings.state.receipts))
    assert receipt["caller"] == "console"


@pytest.mark.parametrize("session", ["3f0c6a52-0000", 'a "quoted" \\ one'])
def test_the_session_of_a_hit_leads_to_all_that_was_learned_in_it(bed: Bed, front: Front, session: str) -> None:
    for slug, of in (("money", session), ("tokens", session), ("tabs", "another")):
        rule(bed, slug, "Something.", status="superseded", source=[{"host": "claude", "session": of}])
    index(bed)
    page = front.get("search", filter="slug=money", status="superseded").text
    (link,) = re.findall(r'href="([^"]+)">session ', page)
    assert sorted(titles(front.client.get(unescape(link)).text)) == ["Money", "Tokens"]


def test_a_note_that_is_its_title_is_said_once(bed: Bed, front: Front) -> None:
    rule(bed, "tokens-are-short", "Tokens are short.")
    index(bed)
    bed.note(
        "personal-private/decisions/money.md",
        f"# {cut(LONG, 60)}\n\n{LONG}\n\nAsk Ann.",
        kind="decisions",
        status="active",
    )
    index(bed)
    text = visible(front.get("search"))
    assert text.count("okens are short") == 1
    for answer in front.get("search"), front.get("search", q="how to store prices?"):
        assert LONG in titles(answer.text)
        assert visible(answer).count("you store") == visible(answer).count("Ask Ann") == 1


@pytest.mark.parametrize("question", ["", "how long do tokens last"])
def test_a_hit_has_the_day_on_which_it_was_said(bed: Bed, front: Front, question: str) -> None:
    """Old sessions are mined today; the commands give this day, too."""
    rule(bed, "tokens", "Tokens last for fifteen minutes.", updated="2026-05-04", surfaced_at="2026-01-09T12:00:00Z")
    index(bed)
    assert "2026-01-09" in visible(front.get("search", q=question))


@pytest.mark.slow
def test_filters_are_those_of_the_command(bed: Bed, front: Front) -> None:
    rule(bed, "one", "Tokens are short.", tags=["login"], project="shop")
    rule(bed, "two", "Tokens are long.", kind="fixes")
    rule(bed, "old", "Tokens were blue.", status="superseded")
    index(bed)
    assert titles(front.get("search", q="tokens", kind="fixes").text) == ["Two"]
    assert titles(front.get("search", project="shop").text) == ["One"]
    assert titles(front.get("search", tag="login").text) == ["One"]
    assert titles(front.get("search", filter="NOT kind=fixes").text) == ["One"]
    assert titles(front.get("search", status="superseded").text) == ["Old"]
    assert sorted(titles(front.get("search", status="any").text)) == ["Old", "One", "Two"]
    assert titles(front.get("search", since="2027-01-01").text) == []


def test_a_value_with_quotes_and_operators_stays_a_value(bed: Bed, front: Front) -> None:
    rule(bed, "one", "Tokens are short.")
    index(bed)
    answer = front.get("search", tag='x" OR kind="decisions')
    assert titles(answer.text) == []
    assert said(answer) == ""


def test_the_date_field_holds_days_only(bed: Bed, front: Front) -> None:
    """Chromium complains of anything else."""
    index(bed)
    assert 'name="since" value="2026-05-04"' in front.get("search", since="2026-05-04").text
    for since in ("30d", "soon", "<b>"):
        assert 'name="since" value=""' in front.get("search", since=since).text


def test_a_wrong_filter_is_an_error_of_one_line(bed: Bed, front: Front) -> None:
    index(bed)
    assert said(front.get("search", filter="colour=red")).startswith("filter: unknown key 'colour'")


@pytest.mark.slow
def test_without_words_all_entries_are_listed_by_page(bed: Bed, front: Front) -> None:
    for number in range(23):
        rule(bed, f"rule-{number:02}", "Something.", updated=f"2026-05-{number + 1:02}")
    index(bed)
    first = front.get("search")
    assert "23 entries" in visible(first)
    assert titles(first.text)[:2] == ["Rule 22", "Rule 21"]
    assert titles(front.get("search", page="2").text) == ["Rule 02", "Rule 01", "Rule 00"]
    assert titles(front.get("search", page="99").text) == ["Rule 02", "Rule 01", "Rule 00"]


def test_what_hardly_answers_is_shown_when_it_is_asked_for(bed: Bed, front: Front) -> None:
    rule(bed, "money", "Prices of tea and other things are whole cents in the shop.")
    index(bed)
    assert "Nothing answers that" in visible(front.get("search", q="zebra weather forecast"))
    weak = front.get("search", q="zebra weather forecast tea", weak="1")
    assert titles(weak.text) == ["Money"]
    assert "0 entries answer; 1 hardly" in visible(weak)


def test_without_an_index_it_says_so(front: Front) -> None:
    assert "Nothing can be listed" in visible(front.get("search"))


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


def test_recalls_are_listed_the_last_first_and_found_by_session_and_entry(bed: Bed, front: Front) -> None:
    leave(bed, "personal-private/a.md")
    leave(bed, "personal-private/b.md", minute=1)
    leave(bed, "personal-private/c.md", session=None, minute=2)
    text = visible(front.get("recall"))
    assert "3 recalls, the last first" in text
    assert text.index("without a session") < text.index(SESSION[:8])
    assert "1 recall, the last first" in visible(front.get("recall", q="b.md"))
    assert "2 recalls, the last first" in visible(front.get("recall", q=SESSION))
    assert "No recall has that" in visible(front.get("recall", q="nobody"))


def test_receipts_that_were_rotated_are_still_listed(bed: Bed, front: Front) -> None:
    leave(bed, "personal-private/b.md")
    file = Path(bed.settings.state.receipts)
    file.rename(file.with_name(file.name + ".20260511"))
    assert SESSION[:8] in visible(front.get("recall"))


def test_a_receipt_tells_hits_scores_stages_and_what_was_missing(bed: Bed, front: Front) -> None:
    leave(bed, "personal-private/login.md", degraded=("dense-late",))
    text = visible(front.get("recall", q=SESSION))
    assert "login given 0.69 0.73 17.7 +2.5" in text
    assert "Answered by keywords only: the model was late." in text
    assert "near below the floor; score 0.10, answers -1.5" in text
    assert "4.5 ms (keyword 3.0, check 1.0)" in text
    assert "a prompt of 9 characters, 12 tokens given" in text


def test_entries_given_before_are_counted_as_by_memory_inspect(bed: Bed, front: Front) -> None:
    result = RecallResult((), (), {"total": 1.0}, (), 0.0)
    nothing = receipt("a haiku", result, caller="hook", session=SESSION, given_before=1)
    append_receipt(Path(bed.settings.state.receipts), nothing)
    text = visible(front.get("recall", q=SESSION))
    assert "Nothing was shown: no other entry reached the floor of +0.0 and answers the prompt." in text
    assert text.count("given before") == 1
    assert "1 entry that the session was given before was not considered." in text


def test_a_torn_line_a_foreign_one_and_a_hit_without_a_path_hide_nothing(bed: Bed, front: Front) -> None:
    lines = ('{"at": 7}', "[]", '{"at": "2026-05-04T09:00:00", "hits": null, "ms": null}', '{"at": "2026-')
    without_path = '{"at": "2026-05-04T09:00:00", "hits": [{"score": 0.5}]}'
    Path(bed.settings.state.receipts).write_text("\n".join((without_path, *lines)), "utf-8")
    assert "2 recalls, the last first" in visible(front.get("recall"))
    assert "No recall has that" in visible(front.get("recall", q="kettle"))
