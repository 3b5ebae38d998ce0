"""The parser of one command: its words and its options in whatever order they are typed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from copy import copy
from typing import Any


class CommandParser(argparse.ArgumentParser):
    """argparse takes `use --yes NAME` for `use` without a name, and then knows nothing of NAME: it asks again."""

    _is_second_look = False

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """As argparse's; words that an option stands before are taken as well."""
        args = None if args is None else list(args)
        if self._is_second_look:
            return super().parse_known_args(args, namespace)
        before = argparse.Namespace() if namespace is None else copy(namespace)
        parsed, left = super().parse_known_args(args, namespace)
        if not any(word == "--" or not word.startswith("-") for word in left):
            return parsed, left
        self._is_second_look = True
        try:
            return self.parse_known_intermixed_args(args, before)
        finally:
            self._is_second_look = False
