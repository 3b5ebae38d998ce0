"""An OpenAI-compatible endpoint is asked once, within its deadline, and nowhere else."""

import json
import socket
import time
from collections.abc import Iterator

import pytest

from memoryvault.sources.completion import Completion, CompletionFailed, CompletionRequest
from memoryvault.sources.completion.completer import object_in
from memoryvault.sources.completion.openai import OpenAICompleter, endpoint_fault
from memoryvault.tests.support.loopback_model import LoopbackModel

SCHEMA = {"type": "object", "properties": {"candidates": {"type": "array"}}}
KEY = "sk-test-4f9a2c7e1b"


@pytest.fixture
def model() -> Iterator[LoopbackModel]:
    with LoopbackModel().serving() as served:
        yield served


def ask(model: LoopbackModel, *, seconds: float = 20.0, key: str | None = None) -> Completion:
    return OpenAICompleter(model.endpoint, "qwen3:4b", key).complete(
        CompletionRequest("the transcript", "name what is worth it", SCHEMA, 99, seconds)
    )


@pytest.mark.parametrize("streams", [True, False])
def test_the_answer_and_its_usage_are_read_whether_it_streams_or_not(model: LoopbackModel, streams: bool) -> None:
    model.streams = streams
    completion = ask(model)
    assert completion.value == {"candidates": []}
    assert completion.tokens == 740


def test_the_request_names_model_schema_and_limit(model: LoopbackModel) -> None:
    ask(model, key=KEY)
    (request,) = model.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "qwen3:4b"
    assert request.body["max_tokens"] == 99
    assert request.body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert [message["role"] for message in request.body["messages"]] == ["system", "user"]


def test_a_model_that_does_not_say_what_it_cost_has_no_token_count(model: LoopbackModel) -> None:
    model.usage = False
    assert ask(model).tokens is None


OBJECT = '{"candidates": [{"quote": "a </think> or ``` in it"}]}'


@pytest.mark.parametrize(
    "answer",
    [
        OBJECT,
        f"```json\n{OBJECT}\n```",
        f"Here is what I found:\n\n```json\n{OBJECT}\n```",
        f"```\n{OBJECT}\n```\n\nLet me know if you need more!",
        f"Is it {{}}? No.\n</think>\n\n{OBJECT}",
        f"<think>\n{{\n```json\n</think>\n```json\n  {OBJECT}\n```",
    ],
)
def test_text_around_a_models_answer_is_skipped(answer: str) -> None:
    assert object_in(answer) == json.loads(OBJECT)


@pytest.mark.parametrize(
    "answer",
    ["", "none", "[]", "[1, {}]", "```json\n[{}]\n```", OBJECT[:-3], f"```json\n{OBJECT[:-3]}\n```", "{" * 9999],
)
def test_half_an_object_or_another_value_is_no_answer(answer: str) -> None:
    with pytest.raises(CompletionFailed, match="no JSON"):
        object_in(answer)


def test_an_endpoint_with_newer_parameter_names_is_asked_again_with_them(model: LoopbackModel) -> None:
    model.faults = ["dialect", "dialect"]
    assert ask(model).value == {"candidates": []}
    old_names = [("max_tokens" in one.body, "temperature" in one.body) for one in model.requests]
    assert old_names == [(True, True), (False, False)]


@pytest.mark.parametrize(
    ("fault", "said", "may_have_cost"),
    [
        ("429", "status 429", False),
        ("500", "status 500", True),
        ("truncated", "did not finish", True),
        ("no-finish", "broke off", True),
        ("garbage", "no JSON", True),
        ("error-event", "reported an error", True),
        ("cut", "broke off|connection failed", True),
        ("huge", "longer than", True),
    ],
)
def test_a_failure_says_in_a_line_what_it_was_and_whether_it_may_have_cost(
    model: LoopbackModel, fault: str, said: str, may_have_cost: bool
) -> None:
    model.faults = [fault]
    with pytest.raises(CompletionFailed, match=said) as failure:
        ask(model, key=KEY)
    assert failure.value.may_have_cost is may_have_cost
    assert KEY not in str(failure.value)
    assert len(model.requests) == 1


def test_a_document_that_was_cut_off_is_no_answer(model: LoopbackModel) -> None:
    model.streams, model.faults = False, ["cut"]
    with pytest.raises(CompletionFailed, match="no JSON"):
        ask(model)


def test_the_pause_that_a_busy_endpoint_asks_for_is_reported(model: LoopbackModel) -> None:
    model.faults = ["429", "500"]
    with pytest.raises(CompletionFailed) as busy:
        ask(model)
    with pytest.raises(CompletionFailed) as broken:
        ask(model)
    assert (busy.value.retry_after, broken.value.retry_after) == (3600, None)


@pytest.mark.parametrize("fault", ["slow", "silent"])
def test_a_slow_endpoint_is_cut_off_at_the_deadline_though_it_goes_on_sending(model: LoopbackModel, fault: str) -> None:
    model.faults = [fault]
    started = time.monotonic()
    with pytest.raises(CompletionFailed, match=r"no answer within") as failure:
        ask(model, seconds=0.3)
    assert time.monotonic() - started < 30
    assert failure.value.may_have_cost


def test_a_redirect_is_not_followed_and_the_key_goes_nowhere_else(model: LoopbackModel) -> None:
    with LoopbackModel().serving() as other:
        model.faults, model.elsewhere = ["redirect"], f"{other.endpoint}/chat/completions"
        with pytest.raises(CompletionFailed, match="redirects"):
            ask(model, key=KEY)
        assert other.requests == []


def test_a_proxy_in_the_environment_is_not_used(model: LoopbackModel, monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackModel().serving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        ask(model)
        assert proxy.requests == []
    assert len(model.requests) == 1


def test_an_unreachable_endpoint_costs_nothing() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(CompletionFailed, match="cannot be reached") as failure:
        OpenAICompleter(f"http://127.0.0.1:{port}/v1", "m").complete(CompletionRequest("p", "s", SCHEMA, 9, 20))
    assert not failure.value.may_have_cost


@pytest.mark.parametrize(
    "endpoint", ["https://api.example.com/v1", "http://localhost:11434/v1", "http://[::1]:8080/v1"]
)
def test_https_or_this_machine_may_be_spoken_to(endpoint: str) -> None:
    assert endpoint_fault(endpoint) is None


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://api.example.com/v1", "http://192.168.1.5:11434/v1", "https://user:secret@api.example.com/v1",
        "https://api.example.com/v1?key=secret", "ftp://example.com", "http://[::1",
    ],
)  # fmt: skip
def test_any_other_address_is_refused(endpoint: str) -> None:
    assert endpoint_fault(endpoint) is not None
    with pytest.raises(ValueError):
        OpenAICompleter(endpoint, "m")
