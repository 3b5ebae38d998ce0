"""The reader for sessions: the models in the recall service, or n-grams without it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..index import mpnet_files
from ..index.client import RecallClient, RequestFailed, ServiceUnavailable, ensure_service
from ..index.embedder import DEFAULT_MODEL
from ..index.models import why_not_loaded
from ..pipelines.candidate import CATEGORIES
from ..pipelines.reading.calibration import READ_AGAIN, calibration, sigmoid
from ..pipelines.reading.forms import explicit_form
from ..pipelines.reading.linear import NO_SENTENCE, NgramReader, length
from ..pipelines.reading.reading import CHANNELS, Message, MessageReading, SentenceReading
from ..runtime.background import may_start
from ..runtime.closing import Closing
from ..runtime.errors import ModelUnavailable
from ..runtime.settings import Settings

log = logging.getLogger(__name__)

NAME, SECOND = "model", "mpnet"
"""Names of the readers in `calibration.json`: by the small model, and by the second one where that reads, too."""
START_SECONDS = 20.0
"""How long a reading waits for a service that it has started."""
ANSWER_SECONDS = 20.0
AGAIN_SECONDS = 60.0
"""For the second model, which may have to be unpacked first."""
HIGH, PROJECT = 0, 0
"""Indexes in the lists of the heads `tier` and `scope`."""


Ask = Callable[[str, str, Sequence[tuple[int, int]]], Mapping[str, Any]]
"""Takes a text, the agent's words before it, and its sentences; returns what MessageReader returns."""


class ModelReader:
    """Combines the models' answers with the n-grams'. `read` raises what the small model raises."""

    def __init__(self, small: Ask, second: Ask | None, words: NgramReader) -> None:
        """`second`: asked about messages that the small model thinks likely, until it raises ModelUnavailable."""
        self._small, self._second, self._words = small, second, words
        self.name = NAME

    def read(self, message: Message) -> MessageReading:
        """See Reader."""
        self.name = NAME
        spans = [(part.start, part.end) for part in message.sentences]
        answer = self._small(message.text, message.before, spans)
        reading = blended(message, answer, self._words)
        if self._second is None or reading.worth < READ_AGAIN:
            return reading
        try:
            again = self._second(message.text, message.before, spans)
        except (RequestFailed, ModelUnavailable) as error:
            log.warning("messages are read by the small model alone: %s", error)
            self._second = None
            return reading
        self.name = SECOND
        return blended(message, joined(answer, again), self._words, SECOND)


def joined(small: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the second model's answer, with that of the small one on ideas and fixes, for which the second was not
    trained; on whose words they are, both."""
    sentences = [
        {**part, "apart": [*other["apart"], *part["apart"]]}
        for part, other in zip(second["sentences"], small["sentences"], strict=False)
    ]
    return {"window": [second["window"][0], *small["window"][1:]], "sentences": sentences}


def blended(message: Message, answer: Mapping[str, Any], words: NgramReader, name: str = NAME) -> MessageReading:
    """Combine a model's answer and the logits of the n-grams into a reading, by the calibration of this name."""
    window, parts = answer["window"], answer["sentences"]
    own = calibration(name)
    whole, by_words = words.logits(message)
    found = []
    for number, sentence in enumerate(message.sentences):
        linear = by_words[number]["sentence"]
        if number >= len(parts):  # The model reads only the beginning of a long text.
            found.append(SentenceReading(0.0, "fact", 0.0, "prompt"))
            continue
        part = parts[number]
        form = float(explicit_form(sentence.of(message.text)) is not None)
        worth = own.sentence({"sentence": part["sentence"][0], "words": linear, "form": form})
        category = CATEGORIES[max(range(len(CATEGORIES)), key=lambda k: part["category"][k])]
        channel = CHANNELS[max(range(len(CHANNELS)), key=lambda k: part["channel"][k])]
        personal = 1 - sigmoid(part["scope"][PROJECT])
        found.append(SentenceReading(worth, category, personal, channel, tuple(part["apart"])))
    values = {
        "window": window[0],
        "sentence": max((part["sentence"][0] for part in parts), default=NO_SENTENCE),
        "high": max((part["tier"][HIGH] - max(part["tier"][1:]) for part in parts), default=NO_SENTENCE),
        "words": whole["worth"],
        "words_sentence": max((part["sentence"] for part in by_words), default=NO_SENTENCE),
        "length": length(message.text),
        "before": float(bool(message.before)),
        "form": float(any(explicit_form(s.of(message.text)) for s in message.sentences)),
    }
    return MessageReading(own.message(values), sigmoid(window[1]), sigmoid(window[2]), found)


def who_reads(settings: Settings) -> str:
    """Say what reads sessions on this machine."""
    if why_not_loaded(DEFAULT_MODEL, Path(settings.state.models)) is not None:
        return "words alone"
    return "both models" if mpnet_files.is_used(settings) else "the small model alone"


class SessionReader(Closing):
    """Reads with the model until it fails, and with n-grams from then on. Use it as a context manager."""

    def __init__(self, settings: Settings | None, *, start: bool = True, insist: bool = False) -> None:
        """`insist`: `read` raises ModelUnavailable instead of going on without the model, if the service fails at a
        message, or does not answer though the model is installed and it may be started."""
        self._words = NgramReader()
        self._insists = insist
        self._awaits_service = (
            insist
            and settings is not None
            and may_start(settings)
            and why_not_loaded(DEFAULT_MODEL, Path(settings.state.models)) is None
        )
        self._client: RecallClient | None = None
        self._model: ModelReader | None = None
        self._answered = NAME
        if settings is not None:
            self._client = client = RecallClient(settings.state.recall_socket)
            second = partial(client.read, again=True, timeout_seconds=AGAIN_SECONDS)
            small = partial(client.read, timeout_seconds=ANSWER_SECONDS)
            self._model = ModelReader(small, second if mpnet_files.is_used(settings) else None, self._words)
            if start and may_start(settings):
                try:
                    ensure_service(settings, START_SECONDS, wait_for_model=True)
                except ServiceUnavailable as error:
                    log.info("sessions are read without the model: %s", error)

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = self._model = None

    @property
    def name(self) -> str:
        """See Reader: the name of the reader that gave the last answer."""
        return self._answered if self._model is not None else NgramReader.name

    def read(self, message: Message) -> MessageReading:
        """See Reader. Raises ModelUnavailable if it insists."""
        if self._model is not None:
            try:
                reading = self._model.read(message)
                self._answered = self._model.name
                return reading
            except RequestFailed as error:
                if self._insists:
                    raise ModelUnavailable(str(error)) from error
                log.warning("a message is read without the model: %s", error)
                self._answered = NgramReader.name
            except (ModelUnavailable, KeyError, IndexError, TypeError) as error:
                if self._awaits_service and isinstance(error, ModelUnavailable):
                    raise
                log.info("the rest of this session is read without the model: %s", error)
                self.close()
        return self._words.read(message)
