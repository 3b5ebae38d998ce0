"""`memory show`: print one entry."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ..services.entry_facts import facts_of
from ..services.entry_names import find_entry
from ..vault.entry import Entry
from .context import Context
from .list_entries import as_json
from .output import add_json, in_line, print_result

EPILOG = """example:
  memory show tabs
  memory show 'Tabs or spaces' --json
"""
NAME = "the entry: its path, its file name, or its title"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory show`."""
    parser.add_argument("name", metavar="NAME", help=NAME)
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the frontmatter's fields and the text."""
    entry = find_entry(context.store, args.name)
    plain = {name: getattr(entry, name) for name in ("always_load", "supersedes", "superseded_by")}
    value = {**as_json(entry), **plain, "source": [asdict(source) for source in entry.sources], "text": entry.body}
    facts = _facts(entry)
    width = max(map(len, facts))
    told = (f"{name:{width}}  {in_line(fact)}" for name, fact in facts.items())
    return print_result(args, value, *told, "", entry.body)


def _facts(entry: Entry) -> dict[str, str]:
    others = {"In the place of": entry.supersedes, "Superseded by": entry.superseded_by}
    sessions = dict.fromkeys(source.session for source in entry.sources if source.session)
    return {
        "path": entry.path,
        **{name.lower(): value for name, value in facts_of(entry).items()},
        **{name.lower(): value for name, value in others.items() if value},
        **({"sessions": ", ".join(sessions)} if sessions else {}),
    }
