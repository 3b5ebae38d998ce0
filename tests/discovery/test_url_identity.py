"""Which addresses are identical."""

import pytest

from memoryvault.pipelines.url_identity import canonical_url, repository_of

REPOSITORY = "https://github.com/Owner/Tool"


@pytest.mark.parametrize(
    "spelling",
    [
        "http://github.com/owner/tool",
        "https://www.github.com/Owner/Tool/",
        "https://github.com/Owner/Tool.git",
        "https://github.com/Owner/Tool?tab=readme-ov-file#installation",
        "https://github.com:443/Owner/Tool",
        "https://github.com/Owner/Tool/blob/master/README.md",
        "https://raw.githubusercontent.com/Owner/Tool/refs/heads/main/README.md",
        "HTTPS://GITHUB.COM/Owner//Tool",
    ],
)
def test_a_repository_is_one_thing_however_it_is_linked(spelling: str) -> None:
    assert canonical_url(spelling) == canonical_url(REPOSITORY)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://github.com/o/r/tree/main/skills/a", "https://github.com/o/r/blob/main/skills/a/SKILL.md"),
        ("https://example.org/a/", "http://www.example.org/a?ref=list#top"),
        ("https://example.org/a?b=1&c=2", "https://example.org/a?c=2&b=1&fbclid=x"),
        ("https://example.org/caf%C3%A9", "https://example.org/café"),
        ("https://example.org/index.html", "https://example.org"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
        ("https://gitlab.com/o/r/-/tree/main", "https://gitlab.com/o/r"),
    ],
)
def test_two_spellings_of_a_page_are_one(one: str, other: str) -> None:
    assert canonical_url(one) == canonical_url(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://github.com/o/r/tree/main/skills/a", "https://github.com/o/r/tree/main/skills/b"),
        ("https://github.com/o/r", "https://github.com/o/r/tree/main/skills"),
        ("https://github.com/o/r/tree/v2/a", "https://github.com/o/r/tree/main/a"),
        ("https://example.org/watch?v=1", "https://example.org/watch?v=2"),
        ("https://example.org/#/tool/a", "https://example.org/#/tool/b"),
        ("https://example.org:8443/a", "https://example.org/a"),
    ],
)
def test_different_addresses_stay_different(one: str, other: str) -> None:
    assert canonical_url(one) != canonical_url(other)


@pytest.mark.parametrize("url", ["", "mailto:a@b.c", "javascript:alert(1)", "https://", "http://[::1", "x" * 3000])
def test_text_that_is_not_a_web_address_has_no_canonical_form(url: str) -> None:
    assert canonical_url(url) is None


def test_a_lookalike_host_is_not_github() -> None:
    assert repository_of("https://gіthub.com/anthropics/skills") is None  # Cyrillic і
    assert repository_of("https://github.com.evil.example/anthropics/skills") is None
    assert repository_of("https://github.com@evil.example/anthropics/skills") is None
    assert repository_of("https://github.com/anthropics/skills/tree/main/x") == ("anthropics", "skills")
    assert repository_of("https://github.com/sponsors/anthropics") is None
