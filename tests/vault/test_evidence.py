"""Evidence is for the reader of a note; recall sees what stands before it."""

import pytest

from memoryvault.vault.evidence import strip_evidence


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("Ship on Tuesdays.\n\n## Evidence\n\n> we ship on Tuesdays\n", "Ship on Tuesdays."),
        ("Ship on Tuesdays.\n", "Ship on Tuesdays.\n"),
        (
            "# Ship\n\nEvidence shows it.\n\n### Evidence of more\n",
            "# Ship\n\nEvidence shows it.\n\n### Evidence of more\n",
        ),
        ("## Evidence\n\n> only that\n", ""),
        ("", ""),
    ],
)
def test_what_stands_before_the_evidence_is_kept(body: str, kept: str) -> None:
    assert strip_evidence(body) == kept
