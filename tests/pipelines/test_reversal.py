from __future__ import annotations

import pytest

from memoryvault.pipelines.reversal import Rule, find_reversed, reverses


@pytest.mark.parametrize(
    ("statement", "known"),
    [
        ("Actually use npm, not pnpm", "use pnpm, not npm"),
        ("Use npm from now on, not pnpm", "Always use pnpm"),
        ("Always squash commits before merging", "never squash commits"),
        ("You may use emojis in commit messages", "don't use emojis in commit messages"),
        ("we no longer use tabs", "always use tabs"),
        ("prefer spaces over tabs", "I prefer tabs over spaces for indentation"),
        ("Use npm, not pnpm", "Always use pnpm for packages"),
        ("Answer in English, not German", "Always answer me in German"),
        ("Never use npm", "use npm, not pnpm"),
        ("You may push without asking me", "Never push without asking me first"),
        ("Always run the linter before the tests", "Always run the tests before the linter"),
        ("Always npm, not pnpm", "Always use pnpm, not npm"),
        ("I like npm, not pnpm", "Always use pnpm, not npm"),
        ("I like tabs more than spaces", "I like spaces more than tabs"),
        ("Always merge main into the branch", "Always merge the branch into main"),
        ("From now on use poetry instead of uv", "From now on, use uv instead of pip"),
        ("Use uv instead of pip", "Use poetry instead of uv"),
        ("Commit directly to main", "Never commit directly to main, always open a pull request"),
        ("Never open a pull request", "Never commit directly to main, always open a pull request"),
        ("Always squash commits", "Never squash commits; rebase instead"),
        ("Never use emojis in commit messages", "Always use emojis in commit messages"),
        ("Always use print (not the logger)", "Always use the logger (not print)"),
        ("Never commit in the morning", "Always commit in the morning"),
        ("Never rebase before merging", "Always rebase before merging"),
        ("Always ask me before running the tests", "Stop asking me for permission to run the tests"),
        ("Don't ask me before running the tests", "Ask me before running the tests"),
        ("Always push on Fridays", "Push on Mondays, and never push on Fridays"),
        ("Always add emojis to commits", "Never add emojis, icons or colours to commits"),
    ],
)
def test_opposites_are_told(statement: str, known: str) -> None:
    assert reverses(statement, known)


@pytest.mark.parametrize(
    ("statement", "known"),
    [
        ("Don't use emojis in commit messages", "Write commit messages in English"),
        ("no more emojis in commit messages", "From now on, write commit messages in English."),
        ("Always use the logger (not print)", "Never use console.log, use the logger"),
        ("Don't leave dead code in the tests", "Write the tests first"),
        ("use pnpm, not npm", "Always use pnpm"),
        ("use pnpm", "use pnpm, not npm"),
        ("always use tabs", "always use tabs"),
        ("don't edit generated files", "never edit generated files"),
        ("never commit generated files", "always run the tests before committing"),
        ("prefer small commits", "never push to main"),
        ("Always write comments in English, not German.", "Always answer me in German"),
        ("Prefer integration tests over unit tests", "Always run unit tests before pushing"),
        ("Always run unit tests before pushing", "Prefer integration tests over unit tests"),
        ("Use tabs in Makefiles, not spaces", "Use spaces in Python, not tabs"),
        ("Never push without running the tests", "Always run the tests before pushing"),
        ("Never push without asking me", "never push on a Friday"),
        ("Before pushing, always run the tests", "Always run the tests before pushing"),
        ("After the tests pass, push to main", "Push to main after the tests pass"),
        ("In this module use tabs, not spaces", "Use tabs, not spaces, in this module"),
        ("Translate to English from German", "Translate from German to English"),
        ("Always open a pull request", "Never commit directly to main, always open a pull request"),
        ("Never commit directly to main, always open a pull request", "Always open a pull request"),
        ("Use the logger", "Never use print, use the logger."),
        ("Always ask me", "Don't guess, ask me"),
        ("Never ask me about formatting", "Never skip hooks; ask me"),
        ("Never use any in TypeScript", "Always use strict mode in TypeScript"),
        ("Never commit before running the tests", "Always run the tests before committing"),
        ("Always run the tests before committing", "Never commit before running the tests"),
        ("Never edit files before I approve the plan", "Always explain your plan before editing files"),
        ("Never push until the build is green", "Always push when the build is green"),
        ("Run the tests before every commit", "Stop asking me for permission to run the tests"),
        ("Don't ask me before running the tests", "Always run the tests before pushing"),
        ("Never ask me to restart the worker", "Restart the worker after a migration"),
        ("Always run `make lint` before committing", "Run the linter before you commit; never skip hooks"),
        ("Always push tags after a release", "If the tests fail, don't push"),
        ("Use pathlib instead of os.path in Python", "Use uv instead of pip"),
        ("Use fixtures instead of pytest mocks", "Write tests in pytest instead of unittest"),
        ("", "always use tabs"),
        ("no", "yes"),
    ],
)
def test_what_agrees_or_is_about_something_else_is_no_reversal(statement: str, known: str) -> None:
    assert not reverses(statement, known)


def test_the_rule_that_shares_most_is_the_one_reversed() -> None:
    rules = [
        Rule("a.md", "always run tests"),
        Rule("b.md", "never squash commits before merging"),
        Rule("c.md", "never squash"),
    ]
    found = find_reversed("always squash commits before merging", rules)
    assert found is not None
    assert found.path in {"b.md", "c.md"}
    assert find_reversed("use tabs", rules) is None
