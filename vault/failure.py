"""Reduce a failure report to what is the same in each occurrence, and fingerprint it. Pure.

What stays: the kinds of errors, their messages, and the functions and files of the stack. What goes: times, addresses,
process and line numbers, ids, folders, temporary names, the source lines that a traceback quotes.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from ..runtime.normal_form import fingerprint

RESOLUTION_HEADING = "What helped"
"""Heading above what helped, in the note of an incident."""
MOST_FRAMES = 8
"""Number of innermost frames that count: the place of the failure differs less than the way there."""
MOST_MESSAGE_LINES = 6
MOST_LINE_CHARACTERS = 400
"""Most characters of a line that are read, which bounds the cost of the patterns below."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][\w]")
_PYTHON_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line \d+(?:, in (?P<function>.+))?')
_OTHER_FRAME = re.compile(
    r"\s*(?:at (?:async )?(?P<js>[\w.$<>\[\] ]+?)?\s*\(?(?P<js_file>[\w./@\\:-]+?):\d+(?::\d+)?\)?"  # JavaScript, JVM
    r"|at (?P<jvm>[\w.$<>]+)\((?P<jvm_file>[\w.]+)(?::\d+)?\)"
    r"|(?P<go>[\w./*()-]+)\(.*\)"
    r"|\s*(?P<go_file>/\S+\.go):\d+(?: \+0x[\da-f]+)?"
    r"|--> (?P<arrow>[^\s:]+):\d+(?::\d+)?"  # Rust's compiler
    r"|\s*\d+:\s+(?:0x[\da-f]+ - )?(?P<rust>[\w:<>]+::[\w:<>]+))\s*"
)
_ERROR = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt|Failure|Panic|panic|Exit)\b\s*(?::|$)"
    r"|^(?:E\s+|error|fatal|panic)\b",
    re.I,
)
_RAISED = re.compile(r"^(?:E\s+)?(?:[\w$]+\.)*\w*[a-z](?:Error|Exception)\b\s*(?::|$)")
_SAYS_ERROR = re.compile(r"\b(?:error|fatal|panic|exception|cannot|could not|denied|not found)\b|^E\s|ERR!", re.I)
_SIGNALS = frozenset(filter(None, map(signal.strsignal, signal.valid_signals())))
_NAMES = re.compile(r"[`'\"‘“(/_]|\w[.:]\w|\d|[a-z][A-Z]")
"""Something of this failure: a quotation, a path, a number, an identifier."""
_CLOSING = re.compile(
    r"exit(?:ed)?(?: with)?(?: non-?zero)?(?: exit)? (?:code|status)|non-?zero exit|did not complete successfully"
    r"|\bError \d+$|\b\d+ previous errors?\b|\blifecycle\b|complete log of this run|\bcommand failed\b(?!: )"
    r"|^\W*(?:[\w ]{1,20}: )?\d+ (?:failed|passed|errors?|problems?)\b|^compilation terminated"
    r"|^(?:error: )?(?:aborting|could not compile)\b"
    r"|^FAILED\b.{0,20}$|^found \d+ errors?\b|^BUILD FAILED",
    re.I,
)
"""Lines that only say that something failed, at the end of the output of many programs."""
_SUBSTITUTES = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (
        re.compile(r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* {1,2}\d{1,2}\b(?: <time>)?"),
        "<time>",
    ),
    (re.compile(r"\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b", re.I), "<id>"),
    (re.compile(r"\b0x[\da-f]+\b", re.I), "<address>"),
    (re.compile(r"\b(?=[\da-f]*\d)(?=[\da-f]*[a-f])[\da-f]{7,64}\b", re.I), "<id>"),
    (re.compile(r"\[REDACTED-[A-Z-]+\]"), "<private>"),
    # A home folder itself, and a name that a program made up.
    (re.compile(r"(?:[A-Za-z]:)?[\\/]{1,2}(?:home|Users)[\\/]{1,2}[\w.@+-]+"), "~"),
    (
        re.compile(
            r"(?:[\\/][\w.@+~<>-]+)*[\\/](?:tmp|T)[\\/](?=[\w-]*(?:\d|[a-z][A-Z]))[\w-]+(?=\.\w+\b|[\s'\":),]|$)"
        ),
        "<temporary>",
    ),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+~<>-]+)*[\\/]tmp[\w.-]*(?:[\\/][\w.@+~<>-]+)*[\\/](?=[\w.@+-])"), ""),
    (
        re.compile(
            r"(?:(?<=\s)|(?<=[\"'`(=])|^)(?:[A-Za-z]:|~|\.{1,2})?(?:[\\/]{1,2}[\w.@+~<>-]+)*[\\/]{1,2}(?=[\w.@+-])"
        ),
        "",
    ),
    # A number that names an error stays: TS2304, errno 13, status 404.
    (re.compile(r"(?<![A-Za-z\d])(?<!errno )(?<!status )(?<!code )(?<!HTTP )(?<!error: )\d+(?:\.\d+)*", re.I), "<n>"),
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
    messages = [message for message in messages if not _CLOSING.search(message)] or messages
    message = _message_of(messages)
    chosen = messages[:MOST_MESSAGE_LINES]
    if any(_ERROR.match(line) and _NAMES.search(line) for line in messages):
        telling = (_ERROR.match, _SAYS_ERROR.search, PLACE.search)
        chosen = [line for line in messages if any(tells(line) for tells in telling)][-MOST_MESSAGE_LINES:]
    return Failure(
        message, "\n".join([*(plain(line) for line in chosen), *(plain(frame) for frame in frames[-MOST_FRAMES:])])
    )


def _message_of(lines: list[str]) -> str:
    """Return the line that says what failed: the last exception, else the first error, or place in a file; of other
    lines the last that names something."""
    raised = [line for line in lines if _RAISED.match(line)]
    if raised:
        return raised[-1]
    errors = [line for line in lines if _SAYS_ERROR.search(line)]
    for found in ([*filter(_NAMES.search, errors)], [*filter(PLACE.search, lines)], errors):
        if found:
            return found[0]
    return ([*filter(_NAMES.search, lines)] or lines or [""])[-1]


def is_raised(line: str) -> bool:
    """Whether a line of output names an exception, before or without its message."""
    return _RAISED.match(line) is not None


def names_failure(line: str) -> bool:
    """Whether a line, however short, is an exception with its message, or what a shell says of a signal's end."""
    return (is_raised(line) and _without_kind(line) != line) or line in _SIGNALS


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
"""Fewest words of a line that identifies a failure by itself."""
_EXIT = re.compile(r"\A(?:Error: )?Exit code \d+\n")
_CLASS = re.compile(
    r"(?:(?:^|[\s:])|(?<=error\[))"
    r"((?:\w+\.)*\w+(?:Error|Exception)|E(?!RROR\b)[A-Z]{4,}|(?<=error.)[A-Z]{1,4}\d{3,5})\b"
)
"""An exception, an errno, or a compiler's number of an error: `error TS2307`, `error[E0432]`."""
_QUOTED = re.compile(r"[`'\"‘“]([^`'\"’”]+)[`'\"’”]")
_PASSAGE = re.compile(r"`[^`]+`|\"[^\"]+\"|“[^”]+”")
_ANY_CLASS = frozenset(
    """
    AssertionError AttributeError CalledProcessError IOError IndexError KeyError NameError OSError ReferenceError
    RuntimeError SyntaxError TypeError ValueError
    """.split()  # noqa: SIM905  a list of literals would take a page
)
"""Kinds of errors that may be about anything."""
_PREFIX = re.compile(
    r"^(?:\[[^\]]*\] ?)?(?:(?:\w+\.)*\w*(?:Error|Exception|error|fatal|panic)\b(?: error)?|npm ERR!|E {1,3}):?\s+"
)


def failure_keys(report: str, command: str = "", *, parts: bool = True) -> list[str]:
    """Return the keys by which this failure is looked up, the surest first: the whole, each line that says enough, and
    this kind of error about the same thing from the same command.

    `parts`: of a line also its message alone, as a person may have noted it.
    """
    failure = read_failure(_EXIT.sub("", report))
    lines = [line for line in _EXIT.sub("", report).splitlines()[-MOST_KEY_LINES:] if line.strip()]
    keys = [EXACT + failure.fingerprint[:16]]
    for line in reversed(lines):
        forms = (line, _without_kind(line), line.rpartition(": ")[2]) if parts else (line,)
        keys += [key for form in forms if (key := message_key(form))]
    of_kind = next((line for line in reversed(lines) if _CLASS.search(line[:MOST_LINE_CHARACTERS])), "")
    if command.strip() and names_failure(failure.message) and not message_key(failure.message):
        keys.append(f"{KIND}{plain(command[:MOST_LINE_CHARACTERS])} {plain(failure.message)}")
    match = _CLASS.search(of_kind[:MOST_LINE_CHARACTERS])
    kind = match[1].rsplit(".", 1)[-1] if match else ""
    if kind and kind not in _ANY_CLASS and command.strip():
        about = _QUOTED.search(plain(of_kind[:MOST_LINE_CHARACTERS]))
        keys.append(f"{KIND}{plain(command[:MOST_LINE_CHARACTERS])} {kind} {about[1] if about else ''}".rstrip())
    return list(dict.fromkeys(keys))


def _without_kind(line: str) -> str:
    return _PREFIX.sub("", _ANSI.sub("", line[:MOST_LINE_CHARACTERS]).strip())


def quoted_messages(text: str) -> list[str]:
    """Return what a note quotes that may be an error's message."""
    return [quoted for match in _PASSAGE.finditer(text) if len((quoted := match[0][1:-1]).split()) >= LEAST_WORDS]


def message_key(line: str) -> str:
    """Return the key of one line of a failure; '' for one that says too little."""
    clean = plain(_ANSI.sub("", line[:MOST_LINE_CHARACTERS]))
    if _CLOSING.search(clean) or _CLOSING.search(line[:MOST_LINE_CHARACTERS]):
        return ""
    return MESSAGE + fingerprint(clean)[:16] if len(clean.split()) >= LEAST_WORDS else ""


_CURED = re.compile(
    r"\A`(?P<command>[^`\n]+)` failed with “(?P<symptom>[^”\n]+)”; it passed after (?P<cure>.+)\Z", re.S
)


def read_cure(statement: str) -> tuple[str, str, str] | None:
    """Return (command, symptom, remedy) of a mined fix of a command that failed and then passed; None for other
    text."""
    match = _CURED.match(statement.strip())
    return None if match is None else (match["command"], match["symptom"], match["cure"].rstrip("."))
