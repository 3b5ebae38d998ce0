"""Finding what is remembered already."""

import pytest

from memoryvault.tests.support.files import put_note
from memoryvault.vault import store as store_module
from memoryvault.vault.entry import Entry, fingerprint, parse_entry
from memoryvault.vault.registry import find_by_fingerprint, find_by_fingerprints
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import VaultStore

ONE, TWO = fingerprint("one"), fingerprint("two")


def save(store: VaultStore, path: str, mark: str, status: str = "active") -> None:
    store.create(path, {"kind": "fix", "status": status, "fingerprint": mark}, None, Scrubbed("Body."))


def test_several_are_found_in_one_pass(store: VaultStore) -> None:
    save(store, "personal-private/fix/a.md", ONE)
    save(store, "personal-private/fix/b.md", TWO)
    found = find_by_fingerprints(store, [TWO, ONE, fingerprint("three")])
    assert [entry.slug for entry in found[ONE]] == ["a"]
    assert [entry.slug for entry in found[TWO]] == ["b"]
    assert found[fingerprint("three")] == []
    assert find_by_fingerprints(store, []) == {}


def test_the_digits_in_a_body_are_not_a_fingerprint(store: VaultStore) -> None:
    store.create("personal-private/fix/quote.md", {"kind": "fix"}, None, Scrubbed(f"fingerprint: {ONE}"))
    assert find_by_fingerprint(store, ONE) == []


def test_a_broken_file_does_not_end_the_search(store: VaultStore) -> None:
    save(store, "personal-private/fix/good.md", ONE)
    (store.vault / "personal-private" / "fix" / "bad.md").write_bytes(b"---\n\xff: [\n" + ONE.encode() + b"\n---\n")
    assert [entry.slug for entry in find_by_fingerprint(store, ONE)] == ["good"]


@pytest.mark.parametrize("bad", ["", "xyz", ONE.upper(), ".*" * 10])
def test_what_is_no_fingerprint_is_a_bug(store: VaultStore, bad: str) -> None:
    with pytest.raises(ValueError, match="fingerprint"):
        find_by_fingerprint(store, bad)


def test_thousands_of_files_are_skimmed_and_not_parsed(store: VaultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        put_note(store.vault, f"personal-private/fix/n{number}.md", fingerprint=fingerprint(str(number)))
    parsed: list[str] = []

    def parse_and_note(path: str, data: bytes) -> Entry:
        parsed.append(path)
        return parse_entry(path, data)

    monkeypatch.setattr(store_module, "parse_entry", parse_and_note)
    assert len(find_by_fingerprint(store, fingerprint("17"))) == 1
    assert parsed == ["personal-private/fix/n17.md"]
