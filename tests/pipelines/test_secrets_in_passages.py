"""What a candidate takes out of a message is a part of it: a secret is recognised by what stands around it there."""

from __future__ import annotations

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.scrub import scrub
from memoryvault.vault.turn import Origin, Role, Turn

KEY = "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFb3dJQkFBS0NBUUVB"
HOOK = "T024BE7LD/B03QVXWZK/abcdefghklmnopqrstuvwxyz"


def shown(said: str, agent: str = "Done.", origin: Origin = Origin.PROMPT, about: str = "") -> str:
    """All words of the candidates, as they are written: scrubbed one by one."""
    turns = (
        Turn(Role.ASSISTANT, Origin.ASSISTANT, agent, "before", "session", cwd="/home/dev/shop", confirmed=True),
        Turn(Role.USER, origin, said, "record", "session", cwd="/home/dev/shop", about=about, confirmed=True),
    )
    found = [each for each in mine(turns) if each.role == "user"]
    assert found
    return "\n".join(scrub(text) for each in found for text in _texts(each))


def _texts(candidate: Candidate) -> tuple[str, ...]:
    return candidate.statement, candidate.excerpt, candidate.occasion


def test_what_the_user_answers_is_not_cut_within_an_address_that_is_a_secret() -> None:
    answered = shown(
        "no, use email instead of it", f"Shall I post to https://hooks.slack.com/services/{HOOK} as before?"
    )
    assert "as before?" in answered
    assert HOOK[:9] not in answered


def test_what_is_added_to_a_statement_does_not_hide_a_secret_at_its_end() -> None:
    text = shown(f"no, use that instead of client-key-data: {KEY}", "Shall I use the key of the cluster?")
    assert "in answer to" in text
    assert KEY not in text


def test_a_file_that_is_named_beside_a_statement_does_not_name_the_home_folder() -> None:
    text = shown("no, put it there instead of here. The place is /home/janeroe/shop/notes.py", "Where shall it go?")
    assert "janeroe" not in text


def test_a_passage_does_not_hold_the_body_of_a_key_whose_head_is_cut_off() -> None:
    head, end = "-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"
    lines = [f"abcdefghijklmnopqrstuvwxyz{number:02d}" for number in range(40)]
    text = shown("\n".join((head, *lines, end, "", "always use the key above for deploys")))
    assert not [line for line in lines if line in text]
