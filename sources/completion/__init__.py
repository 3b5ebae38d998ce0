"""Asking a language model for one JSON value: an OpenAI-compatible endpoint, or the user's own agent, headless."""

from .completer import Completer, Completion, CompletionFailed, CompletionRequest

__all__ = ["Completer", "Completion", "CompletionFailed", "CompletionRequest"]
