"""Find what a person typed in a message, for hooks and for the readers of transcripts.

A host writes under the user's name, too: reminders, notices of finished tasks, summaries, output of its commands. They
are recognised by their form. An element with a compound name (`<task-notification id="1">…</task-notification>`) on
lines of its own, or a line in brackets at the beginning, is a program's. An element within a sentence is the
person's, who may well write about HTML; so is one in code. Hooks import this: no regular expressions here.
"""

from __future__ import annotations

HOST_SENTENCES = (
    "This session is being continued from a previous conversation",
    "Caveat: The messages below were generated",
    "Operation stopped by hook:",
    "Implement the following plan:",
    "Base directory for this skill:",
    "API Error:",
    "The user wants to clarify these questions.",
    "# AGENTS.md instructions for ",
    "Another language model started to solve this problem",
)
"""Beginnings of messages that Claude Code or Codex word in plain English; their form does not tell them apart."""
OWN_COMMANDS = ("/remember", "/memory")
"""Commands whose arguments are the person's words: one of these names, alone or followed by `:`."""
MAX_TAG_CHARS = 400
"""Most characters of a host's tag."""
MAX_SENTENCE_CHARS = 200
"""Most characters of a host's first line in brackets."""
LEAST_BRACKETED_WORDS = 3
LEAST_SHOUTED_WORDS = 5
"""Number of words in capitals, in brackets at the beginning of a message, that mark all of it as a program's."""
MAX_BLANKS = 100
"""Most blanks between an element and the beginning or end of its line."""
_NAME_MARKS = "-_"


def typed_text(text: str) -> str:
    """Return the person's words of a message; '' for none. Time is linear in its length."""
    text = text.strip()
    if text.startswith(HOST_SENTENCES):
        return ""
    if text.startswith("["):
        text = _without_bracketed_lines(text)
    if "<" in text:
        text = _without_elements(text)
    return "" if text.startswith(HOST_SENTENCES) else text


def words_to_agent(text: str) -> str:
    """Return what a person's line says to the agent: '' if the shell or the host runs it (`!make`, `/compact …`).

    Of our own commands the arguments count. A path (`/usr/bin/x fails`) is no command.
    """
    if text.startswith("!") and not text.startswith("!!"):
        return ""
    command = slash_command(text)
    if command is None:
        return text
    name, arguments = command
    return arguments if name.partition(":")[0] in OWN_COMMANDS else ""


def slash_command(text: str) -> tuple[str, str] | None:
    """Return name and arguments of a line that is a command of the host's; None for any other."""
    if not text.startswith("/"):
        return None
    words = text.split(None, 1)
    name = words[0]
    if not name[1:2].isalpha() or "/" in name[1:]:
        return None
    return name, words[1].strip() if len(words) > 1 else ""


def _without_bracketed_lines(text: str) -> str:
    """Return the text without the lines in brackets at its beginning; '' where capitals mark all of it as a program's.

    A label ("[WIP] …"), the mark of an attachment ("[Image #1]") and a check box are no such lines.
    """
    while text.startswith("["):
        end = text.find("]", 0, MAX_SENTENCE_CHARS)
        inside = text[1:end] if end > 0 else ""
        words = len(inside.split())
        if words < LEAST_BRACKETED_WORDS or "\n" in inside or not inside[0].isalpha() or "#" in inside:
            break
        if inside.isupper() and words >= LEAST_SHOUTED_WORDS:
            return ""
        line_end = text.find("\n", end)
        if text[end + 1 : line_end if line_end >= 0 else len(text)].strip():
            break
        text = text[line_end:].lstrip() if line_end >= 0 else ""
    return text


def _without_elements(text: str) -> str:
    """Return the text without a host's elements. An element may hold its own closing tag, written by a program: all up
    to the last closing tag belongs to it, and so does what stands between two that begin and end the message."""
    kept: list[str] = []
    removed: dict[str, int] = {}
    """Numbers of the pieces kept before the first element of a name."""
    done = position = line_start = 0
    closings: dict[str, int] = {}
    """Index of the next closing tag of a name; -1: none from here on."""
    while (at := text.find("<", position)) >= 0:
        line_start = max(line_start, text.rfind("\n", position, at) + 1)
        position = at + 1
        if text.startswith("/", position):
            name = text[at + 2 : text.find(">", at, at + MAX_TAG_CHARS)]
            if name in removed:
                del kept[removed[name] :]
                done = position = line_start = at + len(name) + 3
            continue
        name, end = _opening_tag(text, at)
        if not name or text[at - 1 : at] == "`" or text.startswith("`", end):
            continue
        closing = f"</{name}>"
        close = closings.get(name, 0)
        if 0 <= close < end:
            close = closings[name] = text.find(closing, end)
        before = max(line_start, done)
        opens_line = at - before <= MAX_BLANKS and not text[before:at].strip()
        if close < 0:
            # What a person writes about an element goes on with a blank.
            if opens_line and text[end : end + 1] not in (" ", "\t"):
                kept.append(text[done:at])
                done = len(text)
                break
            continue
        behind = close + len(closing)
        if opens_line or _ends_line(text, behind):
            kept.append(text[done:at])
            removed.setdefault(name, len(kept))
            done = position = line_start = behind
    kept.append(text[done:])
    return "" if removed and not (kept[0].strip() or kept[-1].strip()) else "".join(kept).strip()


def _ends_line(text: str, position: int) -> bool:
    rest = text[position : position + MAX_BLANKS]
    line, newline, _ = rest.partition("\n")
    return not line.strip() and bool(newline or len(rest) < MAX_BLANKS)


def _opening_tag(text: str, at: int) -> tuple[str, int]:
    """Return name and end of the tag that opens at `at`, if its name is compound; ('', 0) for any other."""
    end = at + 1
    limit = min(len(text), at + MAX_TAG_CHARS)
    while end < limit and (text[end].isalnum() or text[end] in _NAME_MARKS):
        end += 1
    name = text[at + 1 : end]
    if not name[:1].isalpha() or not any(mark in name.strip(_NAME_MARKS) for mark in _NAME_MARKS):
        return "", 0
    close = text.find(">", end, limit)
    attributes = text[end:close] if close > 0 else "<"
    if "<" in attributes or (attributes and not attributes[0].isspace()):
        return "", 0
    return name, close + 1
