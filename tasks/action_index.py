"""The compiled file of what the agent is told when it acts: triggers of the rules in use, for `hooks/action.py`.

Made with the index and as derived as it is. Its first line is looked up in by the hook, each further line is a rule.
What a note said when it was compiled is kept beside it by its time and size, so that a change of one note costs one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..index.catalog_reader import CatalogReader
from ..pipelines.likeness import statement_of
from ..pipelines.triggers import WORDS_FILE, Triggers, compile_triggers
from ..vault.atomic_file import replace_file
from ..vault.automemory import ON_DEMAND_KINDS
from ..vault.days import parse_local_day
from ..vault.entry import ACTIVE, INCIDENT, Entry
from ..vault.layout import ACTIONS, FILE_MODE
from ..vault.settings import Settings
from ..vault.store import VaultStore
from ..vault.wording import cut

FORMAT = 1
RULE_CHARACTERS = 300
NO_RULES = frozenset({"fix", "skill", "idea", INCIDENT, *ON_DEMAND_KINDS})
"""Kinds that tell the agent nothing of what it is about to do."""
CACHE = "actions-cache.json"


@dataclass(frozen=True)
class ActionRule:
    """One rule as the hook tells it. `said`: the day on which the user said it, in words; '' where none is known."""

    path: str
    text: str
    said: str
    guard: str
    project: str


def compile_rule(entry: Entry) -> tuple[ActionRule, Triggers]:
    """The rule and what it speaks of; the note's property `triggers` takes the place of its own words."""
    text = statement_of(entry.body)
    named = entry.extra.get("triggers")
    names = [str(one) for one in named] if isinstance(named, list | tuple) else str(named or "").split(",")
    channel = "action" if entry.guard else entry.channel
    triggers = compile_triggers(text, channel=channel, named=[name for name in names if name.strip()])
    day = parse_local_day(entry.surfaced_at)
    rule = ActionRule(
        entry.path,
        cut(" ".join(text.split()), RULE_CHARACTERS),
        "" if day is None else f"{day.day} {day:%b %Y}",
        entry.guard,
        entry.project or "",
    )
    return rule, triggers


def compile_index(rules: Iterable[tuple[Mapping[str, Any], Triggers]]) -> bytes:
    """The file's content: the lookup in the first line, then the rules in their order."""
    commands: dict[str, list[Any]] = {}
    names: dict[str, list[Any]] = {}
    extensions: dict[str, list[int]] = {}
    patterns: list[Any] = []
    words: dict[str, list[int]] = {}
    reads: list[int] = []
    lines = []
    for number, (rule, triggers) in enumerate(rules):
        lines.append(json.dumps(rule, ensure_ascii=True))
        if triggers.reads:
            reads.append(number)
        for command in triggers.commands:
            program, *rest = command.split()
            commands.setdefault(program, []).append([number, rest])
        for path in triggers.paths:
            _add_path(path, number, names, extensions, patterns)
        for word in triggers.words:
            words.setdefault(word.lower(), []).append(number)
    lookup = {"c": commands, "n": names, "e": extensions, "g": patterns, "w": words, "r": reads}
    return ("\n".join([json.dumps(lookup, ensure_ascii=True, separators=(",", ":")), *lines]) + "\n").encode("ascii")


def _add_path(
    path: str, number: int, names: dict[str, list[Any]], extensions: dict[str, list[int]], patterns: list[Any]
) -> None:
    is_folder = path.endswith(("/", "/**", "/*"))
    segments = [part for part in path.split("/") if part not in ("", "*", "**", ".", "~")]
    if not segments:
        return
    name, before = segments[-1], "/".join(segments[:-1])
    if "*" not in name:
        names.setdefault(name, []).append([number, "" if "*" in before else before, is_folder])
    elif name.startswith("*.") and "*" not in name[2:] and "." not in name[2:]:
        extensions.setdefault(name[2:], []).append(number)
    else:
        patterns.append([name, number])


def write_action_index(settings: Settings, store: VaultStore) -> bool:
    """Compile the rules in use that speak of something an agent does. Was there a change?

    Raises IndexUnavailable, VaultUnavailable; OSError where the state folder cannot be written.
    """
    with closing(CatalogReader(Path(settings.state.index_db))) as reader:
        stamps = reader.stamps_in_use()
    folder = Path(settings.state.root)
    cache_file, version = folder / CACHE, _version()
    known = _read_cache(cache_file, version)
    kept: dict[str, Any] = {}
    for path, stamp in stamps.items():
        if path in known and known[path]["stamp"] == [*stamp]:
            kept[path] = known[path]
    for entry in store.readable([path for path in stamps if path not in kept]):
        row: dict[str, Any] = {"stamp": [*stamps[entry.path]]}
        if entry.effective_status == ACTIVE and entry.kind not in NO_RULES:
            rule, triggers = compile_rule(entry)
            if triggers:
                row |= {"rule": asdict(rule), "triggers": asdict(triggers)}
        kept[entry.path] = row
    rows = [(kept[path]["rule"], Triggers(**kept[path]["triggers"])) for path in sorted(kept) if "rule" in kept[path]]
    content = compile_index(rows)
    if kept != known:
        replace_file(cache_file, json.dumps({"version": version, "notes": kept}).encode(), mode=FILE_MODE)
    file = folder / ACTIONS
    if file.exists() and file.read_bytes() == content:
        return False
    replace_file(file, content, mode=FILE_MODE)
    return True


def count_rules(settings: Settings) -> Counter[str]:
    """Compiled rules by their guard, '' for none."""
    try:
        lines = Path(settings.state.root, ACTIONS).read_bytes().splitlines()[1:]
    except OSError:
        return Counter()
    return Counter(str(json.loads(line)["guard"]) for line in lines)


def _version() -> str:
    return f"{FORMAT}-{blake2b(WORDS_FILE.read_bytes(), digest_size=8).hexdigest()}"


def _read_cache(file: Path, version: str) -> dict[str, Any]:
    try:
        cache = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    notes = cache.get("notes") if isinstance(cache, dict) and cache.get("version") == version else None
    return notes if isinstance(notes, dict) else {}
