"""Ask an OpenAI-compatible endpoint: `POST <endpoint>/chat/completions` (Ollama, llama.cpp, vLLM, hosted ones).

The user consented by naming the endpoint in the settings. Nothing else is contacted: redirects are not followed, and
neither proxies nor credentials are taken from the environment.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...runtime.json_text import parse_json
from .completer import MAX_ANSWER_BYTES, Completion, CompletionFailed, CompletionRequest, object_in, total_tokens

if TYPE_CHECKING:
    import httpx

SCHEMA_NAME = "answer"
EVENT_STREAM = "text/event-stream"
MAX_ERROR_BYTES = 4096
MAX_RETRY_AFTER_SECONDS = 86_400.0


def endpoint_fault(endpoint: str) -> str | None:
    """Return why an address may not be used; None if it may: https, or http on this machine."""
    try:
        parts = urlsplit(endpoint)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return "it is no address"
    if parts.scheme not in ("http", "https") or not host:
        return "it must begin with https://, or with http:// for this machine"
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return "it may hold neither a name, a password, a query nor a fragment; a key goes to reflection.api_key_file"
    if parts.scheme == "http" and not _is_loopback(host):
        return "only an endpoint on this machine may be spoken to without https"
    return None


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class OpenAICompleter:
    """Asks one model at one endpoint. Raises ValueError for an address that `endpoint_fault` refuses."""

    def __init__(self, endpoint: str, model: str, api_key: str | None = None) -> None:
        fault = endpoint_fault(endpoint)
        if fault is not None:
            raise ValueError(fault)
        self._address = endpoint.rstrip("/") + "/chat/completions"
        self._model = model
        self._api_key = api_key

    def complete(self, request: CompletionRequest) -> Completion:
        """See Completer. The answer is read as it comes, so that a slow server is cut off at the deadline."""
        body = {
            "model": self._model,
            "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": SCHEMA_NAME, "schema": request.schema, "strict": True},
            },
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        import asyncio  # Imported late, like httpx: most runs ask no model.

        return asyncio.run(self._within(body, request.max_output_tokens, request.deadline_seconds))

    async def _within(self, body: Mapping[str, Any], max_output_tokens: int, deadline_seconds: float) -> Completion:
        import asyncio

        import httpx

        try:
            # asyncio limits the whole exchange; httpx's timeouts restart with each piece of the answer.
            async with (
                asyncio.timeout(deadline_seconds),
                httpx.AsyncClient(timeout=None, follow_redirects=False, trust_env=False) as client,
            ):
                try:
                    return await self._ask(client, {**body, "temperature": 0, "max_tokens": max_output_tokens})
                except _OtherDialect:
                    return await self._ask(client, {**body, "max_completion_tokens": max_output_tokens})
        except TimeoutError:
            raise CompletionFailed(f"no answer within {deadline_seconds:.0f} s") from None
        except httpx.ConnectError:
            raise CompletionFailed("the endpoint cannot be reached", may_have_cost=False) from None
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            raise CompletionFailed(f"the connection failed ({type(error).__name__})") from None

    async def _ask(self, client: httpx.AsyncClient, body: Mapping[str, Any]) -> Completion:
        headers = {"Accept": f"{EVENT_STREAM}, application/json", "User-Agent": "memoryvault"}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        async with client.stream("POST", self._address, json=body, headers=headers) as response:
            if response.status_code != 200:
                raise await _refusal(response, retry_dialect="max_tokens" in body)
            if response.headers.get("content-type", "").split(";")[0].strip() == EVENT_STREAM:
                return await _streamed(response)
            return _whole(b"".join([part async for part in _bounded(response)]))


class _OtherDialect(Exception):
    """The endpoint needs the newer names of the parameters."""


async def _refusal(response: httpx.Response, *, retry_dialect: bool) -> Exception:
    status = response.status_code
    if 300 <= status < 400:
        return CompletionFailed(f"the endpoint redirects ({status}): not followed", may_have_cost=False)
    if status == 400 and retry_dialect:
        said = b""
        async for part in response.aiter_bytes():
            said += part
            if len(said) > MAX_ERROR_BYTES:
                break
        if b"max_completion_tokens" in said or b"temperature" in said:
            return _OtherDialect()
    # A refused request was not computed; after a server error that is unknown.
    return CompletionFailed(
        f"the endpoint answered with status {status}",
        retry_after=_retry_after(response.headers.get("retry-after")),
        may_have_cost=status >= 500,
    )


def _retry_after(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header; None for its other form, a date."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return min(seconds, MAX_RETRY_AFTER_SECONDS) if seconds >= 0 else None


async def _bounded(response: httpx.Response) -> AsyncIterator[bytes]:
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise CompletionFailed(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
        yield part


async def _streamed(response: httpx.Response) -> Completion:
    """Read server-sent events: pieces of the text, the reason of its end, the usage."""
    text: list[str] = []
    finish: str | None = None
    usage: object = None
    pending = b""
    async for part in _bounded(response):
        *lines, pending = (pending + part).split(b"\n")
        for line in lines:
            field, _, data = line.strip().partition(b":")
            if field != b"data" or data.strip() == b"[DONE]":
                continue
            event = _json_object(data)
            choice = _first_choice(event)
            delta = choice.get("delta")
            if isinstance(delta, dict) and isinstance(delta.get("content"), str):
                text.append(delta["content"])
            finish = choice.get("finish_reason") or finish
            usage = event.get("usage") or usage
    if finish is None:
        raise CompletionFailed("the answer broke off")
    return _completion("".join(text), finish, usage)


def _whole(body: bytes) -> Completion:
    """Read one JSON document, from servers that do not stream."""
    answer = _json_object(body)
    choice = _first_choice(answer)
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, str):
        raise CompletionFailed("the endpoint's answer holds no text")
    return _completion(content, choice.get("finish_reason") or "stop", answer.get("usage"))


def _json_object(data: bytes) -> Mapping[str, Any]:
    try:
        value = parse_json(data)
    except ValueError:
        raise CompletionFailed("the endpoint's answer is no JSON") from None
    if not isinstance(value, dict):
        raise CompletionFailed("the endpoint's answer is no JSON object")
    if value.get("error"):
        raise CompletionFailed("the endpoint reported an error in its answer")
    return value


def _first_choice(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _completion(text: str, finish: object, usage: object) -> Completion:
    if finish != "stop":
        raise CompletionFailed(f"the model did not finish its answer ({str(finish)[:40]})")
    counts = usage if isinstance(usage, dict) else {}
    return Completion(object_in(text), total_tokens(counts.get("prompt_tokens"), counts.get("completion_tokens")))
