"""Reduce a failure report to what is the same in each occurrence, and fingerprint it. Pure.

What stays: the kinds of errors, their messages, and the functions and files of the stack. What goes: times, addresses,
process and line numbers, ids, folders, temporary names, the source lines that a traceback quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..runtime.normal_form import fingerprint

RESOLUTION_HEADING = "What helped"
"""Heading above what helped, in the note of an incident."""
MOST_FRAMES = 8
"""Number of innermost frames that count: the place of the failure differs less than the way there."""
MOST_MESSAGE_LINES = 6
MOST_LINE_CHARACTERS = 400
"""Most characters of a line that are read, which bounds the cost of the patterns below."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PYTHON_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line \d+(?:, in (?P<function>.+))?')
_OTHER_FRAME = re.compile(
    r"\s*(?:at (?:async )?(?P<js>[\w.$<>\[\] ]+?)?\s*\(?(?P<js_file>[\w./@\\:-]+?):\d+(?::\d+)?\)?"  # JavaScript, JVM
    r"|at (?P<jvm>[\w.$<>]+)\((?P<jvm_file>[\w.]+)(?::\d+)?\)"
    r"|(?P<go>[\w./*()-]+)\(.*\)"
    r"|\s*(?P<go_file>/\S+\.go):\d+(?: \+0x[\da-f]+)?"
    r"|\s*\d+:\s+(?:0x[\da-f]+ - )?(?P<rust>[\w:<>]+::[\w:<>]+))\s*"
)
_ERROR = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt|Failure|Panic|panic|Exit)\b\s*(?::|$)"
    r"|^(?:E\s+|error|fatal|panic)\b",
    re.I,
)
_SUBSTITUTES = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b", re.I), "<id>"),
    (re.compile(r"\b0x[\da-f]+\b", re.I), "<address>"),
    (re.compile(r"\b(?=[\da-f]*\d)(?=[\da-f]*[a-f])[\da-f]{7,64}\b", re.I), "<id>"),
    (re.compile(r"\[REDACTED-[A-Z-]+\]"), "<private>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+~<>-]+)*[\\/]tmp[\w.-]*(?:[\\/][\w.@+~<>-]+)*[\\/](?=[\w.@+-])"), ""),
    (re.compile(r"(?:(?<=\s)|(?<=[\"'(=])|^)(?:[A-Za-z]:|~|\.{1,2})?(?:[\\/][\w.@+~<>-]+)*[\\/](?=[\w.@+-])"), ""),
    (re.compile(r"(?<![A-Za-z])\d+(?:\.\d+)*"), "<n>"),
)


@dataclass(frozen=True)
class Failure:
    """A failure report. `message` is one line, for a title; the fingerprint is of `normalised`."""

    message: str
    normalised: str

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256, in hexadecimal digits: the same for each occurrence of a failure."""
        return fingerprint(self.normalised)


def read_failure(text: str) -> Failure:
    """Parse a failure report into a form that is equal for another occurrence."""
    frames: list[str] = []
    messages: list[str] = []
    after_frame = False
    for line in _ANSI.sub("", text.replace("\r\n", "\n")).split("\n"):
        line = line[:MOST_LINE_CHARACTERS]
        python, other = _PYTHON_FRAME.fullmatch(line), None
        if python is None and line[:1] in (" ", "\t"):
            other = _OTHER_FRAME.fullmatch(line)
        if python is not None:
            frames.append(f"{_base(python['file'])}:{python['function'] or ''}")
            after_frame = True
        elif other is not None:
            found = {name: value for name, value in other.groupdict().items() if value}
            frames.append(":".join(_base(value.strip()) for value in found.values()))
        elif after_frame and line[:1] in (" ", "\t"):
            continue  # the source line and its carets
        elif line.strip() and not line.strip().startswith("Traceback (most recent call last)"):
            after_frame = False
            messages.append(" ".join(line.split()))
    errors = [message for message in messages if _ERROR.match(message)]
    message = (errors or messages or [""])[-1]
    chosen = errors[-MOST_MESSAGE_LINES:] or messages[:MOST_MESSAGE_LINES]
    return Failure(
        message, "\n".join([*(plain(line) for line in chosen), *(plain(frame) for frame in frames[-MOST_FRAMES:])])
    )


def plain(line: str) -> str:
    """Remove from a line what differs from one occurrence to the next."""
    for pattern, substitute in _SUBSTITUTES:
        line = pattern.sub(substitute, line)
    return " ".join(line.split())


def _base(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


PLACE = re.compile(r"(?:^|[\s(])[\w./\\-]+\.\w+:\d+(?::\d+)?:?(?=\s)")
"""File and line, as compilers, linters and tests name them before what they say."""
EXACT, MESSAGE, KIND = "x", "n", "c"
"""The kinds of keys by which a failure is recognised, the surest first; keys begin with them."""
MOST_KEY_LINES = 60
"""Number of last lines of a failure's output that are looked up."""
LEAST_WORDS = 3
"""Fewest characters of a line that identifies a failure by itself."""
_EXIT = re.compile(r"\A(?:Error: )?Exit code \d+\n")
_CLASS = re.compile(r"(?:^|[\s:])((?:\w+\.)*\w*(?:Error|Exception)|E[A-Z]{4,})\b")


def failure_keys(report: str, command: str = "") -> list[str]:
    """Return the keys by which this failure is looked up, the surest first: the whole, each line long enough, and the
    kind of error of this program."""
    failure = read_failure(_EXIT.sub("", report))
    lines = [line for line in _EXIT.sub("", report).splitlines()[-MOST_KEY_LINES:] if line.strip()]
    keys = [EXACT + failure.fingerprint[:16]]
    keys += [key for line in reversed(lines) if (key := message_key(line))]
    kind = next((match[1] for line in reversed(lines) if (match := _CLASS.search(line[:MOST_LINE_CHARACTERS]))), "")
    if kind and command.split():
        keys.append(f"{KIND}{_base(command.split()[0])} {kind.rsplit('.', 1)[-1]}")
    return list(dict.fromkeys(keys))


def message_key(line: str) -> str:
    """Return the key of one line of a failure; '' for one that says too little."""
    clean = plain(_ANSI.sub("", line[:MOST_LINE_CHARACTERS]))
    return MESSAGE + fingerprint(clean)[:16] if len(clean.split()) >= LEAST_WORDS else ""


_CURED = re.compile(
    r"\A`(?P<command>[^`\n]+)` failed with “(?P<symptom>[^”\n]+)”; it passed after (?P<cure>.+)\Z", re.S
)


def read_cure(statement: str) -> tuple[str, str, str] | None:
    """Return (command, symptom, remedy) of a mined fix of a command that failed and then passed; None for other
    text."""
    match = _CURED.match(statement.strip())
    return None if match is None else (match["command"], match["symptom"], match["cure"].rstrip("."))
