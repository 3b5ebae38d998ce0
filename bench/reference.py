"""Render the reference of all commands from their parsers.

`python -m memoryvault.bench.reference > docs/reference/commands.md`
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from ..cli.agent_rights import Command
from ..cli.main import COMMANDS, GROUPS
from ..cli.output import JSON_HELP


def render_commands_reference(commands: Mapping[str, Command], groups: Mapping[str, str]) -> str:
    """Return the reference as markdown, with a group's commands below its heading."""
    parts = []
    told = set()
    lack_json = []
    for name, command in commands.items():
        group = name.rpartition(" ")[0]
        if group and group not in told:
            told.add(group)
            parts.append(f"## memory {group}\n\n{_sentence(groups[group])}")
        parser = argparse.ArgumentParser(prog=f"memory {name}", add_help=False)
        command.configure(parser)
        if not any("--json" in action.option_strings for action in parser._actions):
            lack_json.append(f"`{name}`")
        parts += list(_sections(parser, f"memory {name}", command.line, "###" if group else "##"))
    first = f"Every command takes `--json` ({JSON_HELP}), except:\n{', '.join(lack_json)}."
    return "\n\n".join([first, *parts]) + "\n"


def _sections(parser: argparse.ArgumentParser, name: str, line: str, heading: str) -> Iterator[str]:
    yield f"{heading} {name}\n\n{_sentence(line)}"
    rows = [
        f"- `{_spelling(each)}`: {_told(each)}".removesuffix(": ")
        for each in parser._actions
        if each.help not in (argparse.SUPPRESS, JSON_HELP)
    ]
    if rows:
        yield "\n".join(rows)
    if parser.epilog:
        examples, _, prose = parser.epilog.removeprefix("example:\n").partition("\n\n")
        examples = textwrap.dedent(examples).rstrip()
        if examples != name:
            yield f"```text\n{examples}\n```"
        yield from [prose.strip()] if prose else []


def _spelling(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return value
    spelt = ", ".join(action.option_strings)
    return f"{spelt} {value}" if value else spelt


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    metavar: Any = action.metavar
    if isinstance(metavar, tuple):
        return " ".join(metavar)
    shown = metavar or (_choices(action.choices) if action.choices else action.dest)
    shown = shown.upper() if action.option_strings and not metavar and not action.choices else shown
    return {"?": f"[{shown}]", "*": f"[{shown} …]", "+": f"{shown} …", "...": f"{shown} …"}.get(
        str(action.nargs), str(shown)
    )


def _choices(choices: Any) -> str:
    return "{" + ",".join(map(str, choices)) + "}"


def _told(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return " ".join(text.split())


def _sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}." if line and not line.endswith(".") else line


if __name__ == "__main__":
    print(render_commands_reference(COMMANDS, GROUPS), end="")
