"""Parsers: bad usage gives one line with the nearest right word; words and options may come in any order."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, NoReturn

from ..runtime.errors import UsageError

LEAST_ALIKE = 0.7
"""From what likeness on a word is taken for a misspelt one, 0 to 1: below, `bogus` would be `logs`."""

_IN_PLAIN_WORDS = (
    (re.compile(r"invalid int value: ('.*')\Z", re.DOTALL), r"\1 is not a whole number"),
    (re.compile(r"expected one argument\Z"), "it needs a value"),
)
"""argparse's words -> ours."""

_AGE = re.compile(r"(\d{1,5})\s*([mhdw])")
_AGE_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class OneLineParser(argparse.ArgumentParser):
    """argparse without abbreviated options, and with errors of one line that names the nearest right word.

    An abbreviation (`--dry` for `--dry-run`) would change its meaning when the command gets another option.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)
        self.elsewhere: Mapping[str, str] = {}
        """Other word for a command -> its name."""
        # Python 3.14 colours the help in a terminal, but our streams write control characters out.
        self.color = False

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr and exit with 2."""
        for argparses, ours in _IN_PLAIN_WORDS:
            message = argparses.sub(ours, message)
        self.exit(2, f"{self.prog}: {' '.join(message.split())} (`{self.prog} --help` says more)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        meant = nearest(str(value), [*choices, *self.elsewhere])
        if isinstance(action, argparse._SubParsersAction):
            meant = meant if meant in choices else self.elsewhere.get(meant, meant)
            hint = f"; did you mean `{self.prog} {meant}`?" if meant else ""
            raise argparse.ArgumentError(None, f"there is no command {str(value)!r}{hint}")
        hint = f"; did you mean {meant!r}?" if meant else ""
        wrong = f"is none of {', '.join(choices)}" if len(choices) > 1 else f"is not {choices[0]!r}"
        raise argparse.ArgumentError(action, f"{str(value)!r} {wrong}{hint}")

    def _refuse(self, left: list[str]) -> NoReturn:
        self.error(f"unrecognized arguments: {' '.join(left)}{self._meant_option(left) or self._advice(left)}")

    def _meant_option(self, left: list[str]) -> str:
        known = self._option_string_actions
        wrong = next((word.partition("=")[0] for word in left if word.startswith("--") and word != "--"), None)
        if wrong is not None:
            meant = nearest(wrong, known)
        else:  # `review list` for `review --list`
            meant = next((f"--{word}" for word in left if f"--{word}" in known), "")
        return f"; did you mean {meant}?" if meant else ""

    def _advice(self, left: list[str]) -> str:
        """How to give a text, where the words that are left look like the rest of one."""
        if any(word.startswith("-") for word in left):
            return ""
        if "--body" in self._option_string_actions:
            return "; give a text with --body, in quotes: --body 'TEXT'"
        takes_text = any(not (action.option_strings or action.type or action.choices) for action in self._actions)
        return "; put words that belong together in quotes" if takes_text else ""


class CommandParser(OneLineParser):
    """Accepts `use --yes NAME`, which argparse alone reads as `use` without a name and a NAME too many."""

    _is_second_look = False

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """As argparse's, but words after an option count too, and what no argument takes is an error."""
        args = None if args is None else list(args)
        if self._is_second_look:
            return super().parse_known_args(args, namespace)
        before = argparse.Namespace() if namespace is None else copy(namespace)
        parsed, left = super().parse_known_args(args, namespace)
        if any(word == "--" or not word.startswith("-") for word in left):
            self._is_second_look = True
            try:
                parsed, left = self.parse_known_intermixed_args(args, before)
            finally:
                self._is_second_look = False
        if left:
            self._refuse(left)
        return parsed, left


def refuse_options_of_others(args: argparse.Namespace, belongs: Mapping[str, Collection[str]]) -> None:
    """Refuse an option that `args.action` would ignore; `belongs` names the actions that use it. Raises UsageError.

    `vault topics rm NAME --dry-run` must not remove the topic.
    """
    for option, actions in belongs.items():
        if is_given(args, option) and args.action not in actions:
            raise UsageError(f"{option} belongs to {', '.join(f'`memory {args.command} {each}`' for each in actions)}")


def is_given(args: argparse.Namespace, option: str) -> bool:
    """Whether the option is in the command line; its default must be None, False or empty."""
    value = getattr(args, option.lstrip("-").replace("-", "_"))
    return value is not None and value is not False and value not in ("", [])


def at_least_one(text: str) -> int:
    """Parse a whole number of 1 or more; for `add_argument(type=…)`."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def past_time(text: str) -> datetime:
    """Parse an age (`2h`) or an ISO time, local if it names no zone; for the option --since. Raises UsageError."""
    if ago := _AGE.fullmatch(text.strip()):
        return datetime.now(UTC) - timedelta(**{_AGE_UNITS[ago[2]]: int(ago[1])})
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except ValueError as error:
        raise UsageError(f"--since: {text!r} is not a time: write 90m, 3d, 2026-07-01 or 2026-07-01T10:00") from error


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that begins with `word`, else the most similar one; '' if there is none."""
    known = list(known)
    begun = [each for each in known if word and each.startswith(word)]
    return next(iter([*begun, *get_close_matches(word, known, n=1, cutoff=LEAST_ALIKE)]), "")
