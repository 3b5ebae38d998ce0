"""Ask a language model for one JSON object: an OpenAI-compatible endpoint, or the user's own agent, headless."""

from .completer import Completer, Completion, CompletionFailed, CompletionRequest, unanswered

__all__ = ["Completer", "Completion", "CompletionFailed", "CompletionRequest", "unanswered"]
