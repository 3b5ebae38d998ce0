"""A note and a question meet in whatever Unicode form each was written: half-width, full-width, decomposed."""

from unicodedata import normalize

import pytest

from memoryvault.vault.entry import parse_entry

from .bed import Bed, slugs

NOTES = {
    "guard": ("認証ガードはｶﾞｰﾄﾞﾚｰﾙより先に登録する。", "ガードレール登録"),
    "gateway": ("ＡＰＩ ｇａｔｅｗａｙ の証明書は毎月更新する。", "api gateway certificate"),
    "resume": (normalize("NFD", "The résumé parser falls back to Tesseract."), "résumé parser"),
    "rollout": ("배포는 항상 화요일에 한다.", normalize("NFD", "배포 화요일")),
    "traffic": ("Der Verkehr läuft über den Spiegel in Zürich.", normalize("NFD", "Verkehr Zürich Spiegel")),
    "invoice": ("The oﬃce ﬁle of invoices is kept in Basel.", "office file invoices"),
}


@pytest.fixture
def written(bed: Bed) -> Bed:
    for slug, (body, _) in NOTES.items():
        bed.write(f"personal-private/convention/{slug}.md", body, kind="convention", status="active")
    return bed


@pytest.mark.parametrize("slug", NOTES)
@pytest.mark.parametrize("place", ["index", "files"])
def test_words_alone_find_the_note(written: Bed, slug: str, place: str) -> None:
    if place == "index":
        written.index()
    assert slugs(written.recall(NOTES[slug][1], dense=False))[:1] == [slug]


def test_the_words_that_are_embedded_are_those_of_the_question(written: Bed) -> None:
    written.refresh()
    assert slugs(written.recall("ガードレール"))[:1] == ["guard"]
    assert slugs(written.recall("ＴＥＳＳＥＲＡＣＴ ｐａｒｓｅｒ"))[:1] == ["resume"]


def test_what_is_shown_is_as_the_user_wrote_it(written: Bed) -> None:
    before = (written.vault / "personal-private/convention/guard.md").read_bytes()
    written.index()
    (hit, *_) = written.recall("ガードレール登録", dense=False).hits
    assert "ｶﾞｰﾄﾞﾚｰﾙ" in hit.excerpt
    assert (written.vault / "personal-private/convention/guard.md").read_bytes() == before
    assert "ｶﾞｰﾄﾞﾚｰﾙ" in parse_entry("a.md", before).body
