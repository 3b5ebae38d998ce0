"""A failure is recognised again."""

import io
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.services.agent_proposals import AgentProposals
from memoryvault.services.conflicts import find_copy, settle_copy
from memoryvault.services.incidents import add, find
from memoryvault.services.indexing import reconcile_now
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.files import put
from memoryvault.vault.failure import read_failure

from ..review.support import Bed

PYTHON = """\
2026-07-01 10:00:01,123 worker-7 starting
Traceback (most recent call last):
  File "/home/ann/src/shop/app.py", line 12, in main
    run(job)
    ~~~^^^^^
  File "/home/ann/src/shop/db.py", line 88, in connect
    raise OperationalError
sqlite3.OperationalError: database is locked: /tmp/pytest-of-ann/pytest-3/q.db (pid 4711)
"""
ELSEWHERE = """\
\x1b[31mTraceback (most recent call last):\x1b[0m
  File "/Users/bob/code/shop/app.py", line 19, in main
    run(other_job)
  File "/Users/bob/code/shop/db.py", line 93, in connect
    raise OperationalError  # reworded
sqlite3.OperationalError: database is locked: /tmp/pytest-of-bob/pytest-90/q.db (pid 99)
"""
RUST = "error[E0425]: cannot find value `x` in this scope\n --> src/a.rs:3:4\n  |\n3 |    x + 1\n"
SAME = [
    (PYTHON, ELSEWHERE),
    (
        "TypeError: x is not a function\n    at load (/a/src/main.js:10:5)\n    at async run (/a/src/run.js:2:1)\n",
        "TypeError: x is not a function\n    at load (/b/c/src/main.js:99:7)\n    at async run (/b/c/src/run.js:3:9)\n",
    ),
    (
        "Error: timeout after 3000 ms for request 0b54a9e2-4b34-4e0e-9d64-7f0a5f1f2c11 at 0x7ffe12",
        "Error: timeout after 2999 ms for request 11111111-4b34-4e0e-9d64-7f0a5f1f2c11 at 0xdeadbeef",
    ),
    ("fatal: bad object 3f2a1bc9d8e7", "fatal: bad object 0a1b2c3d4e5f"),
    (RUST, "   Compiling shop v0.1.0\n" + RUST.replace("src/a.rs:3:4", "/home/bob/shop/src/a.rs:7:4")),
]
DIFFERENT = [
    (PYTHON, PYTHON.replace("database is locked", "no such table")),
    (PYTHON, PYTHON.replace("in connect", "in vacuum")),
    (PYTHON, PYTHON.replace("sqlite3.OperationalError", "ValueError")),
    ("Error: port refused", "Error: port closed"),
    (RUST, RUST.replace("a.rs:3:4", "b.rs:9:4")),
    ("error: linker failed\nld: cannot find -lssl", "error: linker failed\nld: cannot find -lz"),
    ("error: link failed\nundefined symbol: open_lock", "error: link failed\nundefined symbol: open_log"),
    ("E  assert 1 == 2\n\ntests/a.py:3: AssertionError", "E  assert 1 == 2\n\ntests/b.py:9: AssertionError"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_failure_has_one_fingerprint(one: str, other: str) -> None:
    assert read_failure(one).normalised == read_failure(other).normalised


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_failure_has_another(one: str, other: str) -> None:
    assert read_failure(one).fingerprint != read_failure(other).fingerprint


def test_a_second_occurrence_is_counted_in_one_entry_scrubbed(bed: Bed) -> None:
    token = "ghp_" + "b" * 36
    first = add(bed.store, PYTHON + f"\nann@example.com used {token}", project="shop")
    second = add(bed.store, ELSEWHERE + "\nann@example.com used " + token, resolution=f"One file per worker. {token}")
    assert (first.is_new, second.is_new, second.path, second.occurrences) == (True, False, first.path, 2)
    ((path, text),) = bed.files().items()
    assert path.startswith("personal-projects/shop/failure-incident/")
    assert "One file per worker." in text
    assert not any(secret in text for secret in (token, "ann@", "/home/ann"))
    entry = bed.store.read(path)
    assert (entry.kind, entry.fingerprint) == ("failure-incident", first.fingerprint)


def test_the_ladder_is_exact_first_and_recall_after(bed: Bed) -> None:
    add(bed.store, PYTHON, resolution="One file per worker.")
    asked: list[str] = []

    def ask(question: str) -> list[str]:
        asked.append(question)
        return list(bed.files())

    (exact,) = find(bed.store, ELSEWHERE, ask)
    assert (exact.exact, exact.resolution, asked) == (True, "One file per worker.", [])
    (like,) = find(bed.store, "sqlite3.OperationalError: database is locked", ask)
    assert not like.exact
    assert asked


def test_rejected_incident_is_not_found(bed: Bed) -> None:
    noted = add(bed.store, PYTHON)
    bed.edit(noted.path, "status: active", "status: rejected")
    assert find(bed.store, PYTHON, lambda _: []) == []


@pytest.mark.slow
def test_of_a_huge_report_a_part_is_kept_by_which_it_is_known_again(bed: Bed) -> None:
    add(bed.store, "x\n" * 500_000 + PYTHON)
    assert len(next(iter(bed.files().values()))) < 25_000
    assert [one.exact for one in find(bed.store, "x\n" * 400_000 + PYTHON, lambda _: [])] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1_000, 15_000, 200_000])
@pytest.mark.parametrize(
    ("begin", "end"),
    [("<private>", "</private>"), ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----")],
)
def test_a_cut_falls_into_no_private_passage_and_no_key(bed: Bed, begin: str, end: str, lines: int) -> None:
    secret = "\n".join([begin, *["CANARY9keyLINE47Zq1abcdefgh"] * lines, end])
    noted = add(bed.store, f"start\n{secret}\n{PYTHON}", resolution="<private>CANARY</private> restart")
    text = (bed.vault / noted.path).read_text("utf-8")
    assert "CANARY" not in text
    assert "restart" in text


@pytest.mark.parametrize(
    "line", ["   at " + "a " * 9000, "/a" * 9000, "   " + "(a" * 9000, "1." * 9000, '  File "' + " " * 9000]
)
def test_a_hostile_report_costs_no_time(line: str) -> None:
    begun = time.process_time()
    read_failure("\n".join([line] * 20))
    assert time.process_time() - begun < 2


def test_the_command(ask: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(PYTHON))
    memory("vault", "incident", "find", code=1)
    memory("vault", "incident", "add", "--body", PYTHON, "--project", "", "--resolution", "One file each.")
    reconcile_now(ask.settings)
    (one,) = memory.json("vault", "incident", "find", "--body", ELSEWHERE)
    assert (one["exact"], one["resolution"]) == (True, "One file each.")
    other = "OperationalError: the database is locked, sqlite3"
    assert "like it" in memory("vault", "incident", "find", "--body", other).out
    memory("vault", "incident", "add", "--body", " ", code=2)


# No way of writing a failure-incident leaves a secret or a person's name in it


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
    monkeypatch.setattr("memoryvault.cli.review_dialogue.read_key", lambda _question: next(keys))
    monkeypatch.setattr("sys.stdin", Terminal())
    assert main(["review"]) == 0


def merged(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "---\nkind: failure-incident\nstatus: active\n---\n\n# Deploy\n\n"
    copy = NOTE.replace(".md", ".sync-conflict-20260101-101010-ABCDEFG.md")
    for name in (NOTE, copy):
        put(bed.vault / name, f"{head}{name}\n")
    settle_copy(bed.journal, find_copy(bed.store, copy), "merged", run="t", text=head + REPORT)


@pytest.mark.parametrize(
    "way",
    [
        saved,
        noted,
        proposed,
        merged,
        *(pytest.param(way, marks=pytest.mark.slow) for way in (evolved, edited_in_review)),
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
