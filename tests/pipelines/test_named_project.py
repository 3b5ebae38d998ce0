"""A rule that names a project is that project's."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.mining.named_project import named_project


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("In the shop repo, never force-push.", "shop"),
        ("For my `tide-tables` project always use UTC.", "tide-tables"),
        ("In this repo, never force-push.", None),
        ("In the git repo, never commit generated files.", None),
        ("Inside our monorepo project, always run the affected tests.", None),
        ("In the shop repo and in the blog repo, never force-push.", None),
    ],
)
def test_its_name_is_a_word_that_says_which(sentence: str, name: str | None) -> None:
    assert named_project(sentence) == name
