"""Tokens that no rule knows: drawn by lot or not, by the trained model."""

import json
import random
import string

import pytest

from memoryvault.pipelines.scrub import Policy, scrub
from memoryvault.pipelines.secret_model import ALPHABET, WEIGHTS_FILE, features_of, load, packaged

SIGNS = string.ascii_letters + string.digits


def drawn(alphabet: str, length: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


def token(form: str, seed: int) -> str:
    match form:
        case "dotted":
            return drawn(SIGNS, 8, seed) + "." + drawn(SIGNS + "_-", 32, seed)
        case "prefixed":
            return "qzk_" + drawn(string.hexdigits.lower(), 40, seed)
        case "tilde":
            return drawn(SIGNS + SIGNS + "~._-", 37, seed)
        case _:
            return drawn(string.ascii_lowercase + string.digits, 48, seed)


@pytest.mark.parametrize("form", ["dotted", "prefixed", "tilde", "one case"])
def test_most_tokens_of_unlisted_issuers_are_found(form: str) -> None:
    found = ["[REDACTED-" in scrub(f"the one for staging: \n{token(form, seed)}\nworks") for seed in range(40)]
    assert sum(found) >= 28


def test_the_whole_token_goes() -> None:
    secret = token("dotted", 3)
    assert scrub(f"try {secret} instead", Policy.SECRETS) == "try [REDACTED-API-KEY] instead"


@pytest.mark.parametrize(
    "text",
    [
        "see cmd/entire/cli/strategy/common.go:119 and docs/plans/2026-02-01-auto-summarise-design.md",
        "web-frontend-7d4b9c6f5d-x2x9k is not ready",
        "github.com/acme/shop v0.0.0-20210921155107-089bfa567519",
        "container 3f2a9b1c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a died",
        "tests/hooks/test_stub.py::test_it_ends_in_time[claude-3]",
        "arn:aws:kms:us-east-1:003084325827:key/84a66985-f968-4bac-82c2-365518adf157",
        "https://files.test/v1/Qt8Q9C-_IjRouHVpD2Tuf3oHWGhDQ3kcjbAn",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert scrub(text, Policy.SECRETS) == text


def test_a_token_that_was_cut_short_stays() -> None:
    assert scrub("export X_TOKEN=abx_9fK2mQx7...", Policy.SECRETS).endswith("x7...")


@pytest.mark.parametrize("dots", ["...", "…"])
@pytest.mark.parametrize("name", ["API_KEY=", 'token = "'])
def test_a_whole_token_before_dots_is_removed(name: str, dots: str) -> None:
    token = "Zk3mQ9xT7vB2nL5wR8yH4dF6sJ1pC0aG"
    closing = '"' if name.endswith('"') else ""
    assert token[:20] not in scrub(f"{name}{token}{dots}{closing}", Policy.SECRETS)


def test_the_weights_are_numbers_for_the_features_there_are() -> None:
    data = json.loads(WEIGHTS_FILE.read_text("utf-8"))
    model = packaged()
    assert set(data["weights"]) == set(features_of("dO29Q~F5-VwnW.lZdd11xFF", "it is ", model.bigrams))
    assert all(isinstance(value, float | int) for value in data["weights"].values())
    assert len(model.bigrams) == len(ALPHABET) ** 2


def test_weights_of_another_version_are_refused() -> None:
    with pytest.raises(ValueError, match="rebuild"):
        load('{"format": 0}')


@pytest.mark.slow
def test_training_gives_the_same_weights_again_and_finds_what_it_never_saw() -> None:
    pytest.importorskip("numpy")
    from memoryvault.bench.train_scrub import dump, share_found, train

    models = {form: train(form) for form in ("dotted", "all signs", "prefix, one case")}
    assert dump(train("dotted")) == dump(models["dotted"])
    assert dump(models["all signs"]) != dump(models["dotted"])
    assert dump(packaged()) == WEIGHTS_FILE.read_text("utf-8")
    for form, model in models.items():
        assert share_found(model, form) > 0.8
