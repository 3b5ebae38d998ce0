"""The reader for sessions: the model in the recall service, or n-grams without it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..index.client import RecallClient, RequestFailed, ServiceUnavailable, ensure_service
from ..index.embedder import DEFAULT_MODEL, locate_model, missing_library
from ..pipelines.candidate import CATEGORIES
from ..pipelines.reading.calibration import calibration, sigmoid
from ..pipelines.reading.forms import explicit_form
from ..pipelines.reading.linear import NO_SENTENCE, NgramReader, length
from ..pipelines.reading.reading import CHANNELS, Message, MessageReading, SentenceReading
from ..runtime.background import may_start
from ..runtime.errors import ModelUnavailable
from ..runtime.settings import Settings

log = logging.getLogger(__name__)

NAME = "model"
START_SECONDS = 20.0
"""How long a reading waits for a service that it has started."""
ANSWER_SECONDS = 20.0
HIGH, PROJECT = 0, 0
"""Indexes in the lists of the heads `tier` and `scope`."""


class ModelReader:
    """Asks the recall service, and combines its answer with the n-grams'. Raises ModelUnavailable."""

    name = NAME

    def __init__(self, client: RecallClient, words: NgramReader) -> None:
        self._client = client
        self._words = words

    def read(self, message: Message) -> MessageReading:
        """See Reader."""
        spans = [(part.start, part.end) for part in message.sentences]
        answer = self._client.read(message.text, message.before, spans, timeout_seconds=ANSWER_SECONDS)
        return blended(message, answer["window"], answer["sentences"], self._words)


def blended(
    message: Message, window: Sequence[float], parts: Sequence[Mapping[str, Any]], words: NgramReader
) -> MessageReading:
    """Combine the logits of the model and of the n-grams into a reading of a message."""
    own = calibration(NAME)
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
        found.append(SentenceReading(worth, category, personal, channel, part["apart"][0]))
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


def is_installed(models_folder: Path) -> bool:
    """Whether the model that reads sessions is on this machine, with its libraries."""
    try:
        return missing_library(locate_model(DEFAULT_MODEL, models_folder)) is None
    except ModelUnavailable:
        return False


class SessionReader:
    """Reads with the model until it fails, and with n-grams from then on. Use it as a context manager."""

    def __init__(self, settings: Settings | None, *, start: bool = True, insist: bool = False) -> None:
        """`insist`: `read` raises ModelUnavailable instead of going on without the model, if the service fails twice at
        a message, or does not answer though the model is installed and it may be started."""
        self._words = NgramReader()
        self._insists = insist
        self._awaits_service = (
            insist and settings is not None and may_start(settings) and is_installed(Path(settings.state.models))
        )
        self._client: RecallClient | None = None
        self._answered = NAME
        if settings is not None:
            self._client = RecallClient(settings.state.recall_socket)
            if start and may_start(settings):
                try:
                    ensure_service(settings, START_SECONDS, wait_for_model=True)
                except ServiceUnavailable as error:
                    log.info("sessions are read without the model: %s", error)

    def __enter__(self) -> SessionReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def name(self) -> str:
        """See Reader: the name of the reader that gave the last answer."""
        return self._answered if self._client is not None else NgramReader.name

    def read(self, message: Message) -> MessageReading:
        """See Reader. Raises ModelUnavailable if it insists."""
        self._answered = NAME
        if self._client is not None:
            try:
                model = ModelReader(self._client, self._words)
                if self._insists:
                    with suppress(RequestFailed):  # A passing fault is over when it is asked again.
                        return model.read(message)
                return model.read(message)
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
