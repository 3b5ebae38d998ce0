"""Compile the files with what the agent is told when it acts, for `hooks/action.py`: the rules' triggers, and the cures
of failures.

They are derived, and made together with the index. The first line is a lookup table for the hook; each further line is
a rule or a cure. The compiled form of each note is cached by its time and size, so that one changed note is one parse.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..index.catalog_reader import CatalogReader
from ..pipelines.likeness import is_reworded, statement_of
from ..pipelines.triggers import WORDS_FILE, Triggers, compile_triggers
from ..runtime.atomic_file import replace_file
from ..runtime.days import parse_local_day
from ..runtime.json_text import parse_json
from ..runtime.layout import ACTIONS, FAILURES, FILE_MODE, INBOX
from ..runtime.settings import Settings
from ..vault.automemory import ON_DEMAND_KINDS
from ..vault.core import is_ban
from ..vault.entry import ACTIVE, GUARDS, IN_INBOX, INCIDENT, Entry
from ..vault.evidence import strip_evidence
from ..vault.failure import (
    EXACT,
    RESOLUTION_HEADING,
    failure_keys,
    message_key,
    quoted_messages,
    read_cure,
    read_failure,
)
from ..vault.store import VaultStore
from ..vault.wording import cut

FORMAT = 6
RULE_CHARACTERS = 300
NO_RULES = frozenset({"fix", "skill", "idea", INCIDENT, *ON_DEMAND_KINDS})
"""Kinds that say nothing about an action of the agent."""
FIX = "fix"
CURES = (FIX, INCIDENT)
RESOLVED = "resolved"
CACHE = "actions-cache.json"
_RAN = re.compile(r"`[^\n]+?`(?=\. |$)")
_FENCED = re.compile(r"^(```|~~~~)text\n(.*?)\n\1$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class ActionRule:
    """One rule in the form shown by the hook. `said`: the day on which the user said these words, in words; '' if
    unknown."""

    path: str
    text: str
    said: str
    guard: str
    project: str


def compile_rule(entry: Entry) -> tuple[ActionRule, Triggers]:
    """Return the rule and its triggers; the note's property `triggers` replaces its own words."""
    text = statement_of(entry.body)
    named = entry.extra.get("triggers")
    names = [str(one) for one in named] if isinstance(named, list | tuple) else str(named or "").split(",")
    channel = "action" if entry.guard else entry.channel
    own = [name for name in names if name.strip()]
    triggers = compile_triggers(text, channel=channel, named=own, guards=bool(entry.guard))
    day = parse_local_day(entry.surfaced_at)
    rule = ActionRule(
        entry.path,
        cut(" ".join(text.split()), RULE_CHARACTERS),
        "" if day is None or is_reworded(entry.body) else f"{day.day} {day:%b %Y}",
        entry.guard,
        entry.project or "",
    )
    return rule, triggers


def may_guard(entry: Entry) -> bool:
    """Whether a mark that stops the agent is worth offering: the rule is a ban or for actions, and speaks of calls that
    do not follow it."""
    return (entry.channel == "action" or is_ban(entry.body)) and bool(
        compile_rule(replace(entry, extra={**entry.extra, "guard": GUARDS[0]}))[1]
    )


def compile_index(rules: Iterable[tuple[Mapping[str, Any], Triggers]]) -> bytes:
    """Return the file's content: the lookup table in the first line, then the rules in order."""
    commands: dict[str, list[Any]] = {}
    names: dict[str, list[Any]] = {}
    extensions: dict[str, list[int]] = {}
    patterns: list[Any] = []
    words: dict[str, list[int]] = {}
    texts: dict[str, list[int]] = {}
    reads: list[int] = []
    places: dict[int, tuple[str, ...]] = {}
    lines = []
    for number, (rule, triggers) in enumerate(rules):
        lines.append(json.dumps(rule, ensure_ascii=True))
        if triggers.reads:
            reads.append(number)
        if triggers.places:
            places[number] = triggers.places
        for command in triggers.commands:
            program, *rest = command.split()
            commands.setdefault(program, []).append([number, rest])
        for path in triggers.paths:
            _add_path(path, number, names, extensions, patterns)
        for found, where in ((triggers.words, words), (triggers.texts, texts)):
            for one in found:
                where.setdefault(one.lower(), []).append(number)
    lookup = {
        "c": commands,
        "n": names,
        "e": extensions,
        "g": patterns,
        "w": words,
        "t": texts,
        "r": reads,
        "o": places,
    }
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
    elif not before and name.startswith("*.") and "*" not in name[2:] and "." not in name[2:]:
        extensions.setdefault(name[2:], []).append(number)
    else:
        patterns.append([name, number, "" if "*" in before else before])


def compile_cure(entry: Entry) -> tuple[dict[str, str], list[str]] | None:
    """Return what helped against a failure, and the keys that identify it; None if the note names no cure.

    A session's cure is mined in one form (`read_cure`) and shown even from the inbox: it happened and is not a
    conclusion.
    """
    project = entry.project or ""
    if (said := read_cure(statement_of(entry.body))) is not None:
        command, symptom, helped = said
        if entry.special == INBOX and (ran := _RAN.match(helped)):
            helped = ran[0]  # What the agent said of it is a conclusion.
        title, keys = symptom, [message_key(symptom), *failure_keys(symptom, command, parts=False)]
    elif entry.kind == INCIDENT and entry.special != INBOX:
        report, _, resolution = strip_evidence(entry.body).partition(f"## {RESOLUTION_HEADING}")
        fenced = _FENCED.search(report)
        if fenced is None:
            return None
        failure = read_failure(fenced[2])
        title, helped = failure.message, resolution.strip()
        exact = (entry.fingerprint or failure.fingerprint, failure.fingerprint)  # The first is of what was scrubbed.
        keys = [*(f"{EXACT}{one[:16]}" for one in exact), message_key(failure.message)]
    elif entry.kind == FIX and entry.special != INBOX:  # In the user's own words.
        title, helped = "", statement_of(entry.body)
        keys = [message_key(quoted) for quoted in quoted_messages(helped)]
    else:
        return None
    if not helped or not any(keys):
        return None
    cure = {"path": entry.path, "title": cut(title, RULE_CHARACTERS), "helped": cut(helped, RULE_CHARACTERS)}
    day = (entry.surfaced_at or entry.updated or entry.created or "")[:10]
    return {**cure, "project": project, "day": day}, [key for key in dict.fromkeys(keys) if key]


def compile_failures(cures: Iterable[tuple[Mapping[str, Any], Iterable[str]]]) -> bytes:
    """Return the file's content: the lookup table by key in the first line, then the cures in order."""
    lookup: dict[str, list[int]] = {}
    lines = []
    for number, (cure, keys) in enumerate(cures):
        lines.append(json.dumps(cure, ensure_ascii=True))
        for key in keys:
            lookup.setdefault(key, []).append(number)
    return ("\n".join([json.dumps({"k": lookup}, separators=(",", ":")), *lines]) + "\n").encode("ascii")


def write_action_index(settings: Settings, store: VaultStore) -> None:
    """Compile the rules in use that concern an agent's actions, and the cures of failures.

    Raises IndexUnavailable, VaultUnavailable; OSError if the state folder cannot be written.
    """
    with closing(CatalogReader(Path(settings.state.index_db))) as reader:
        stamps = reader.stamps_of_actions(CURES)
    folder = Path(settings.state.root)
    known = _read_cache(folder / CACHE)
    kept = {path: known[path] for path, stamp in stamps.items() if path in known and known[path]["stamp"] == [*stamp]}
    for entry in store.readable([path for path in stamps if path not in kept]):
        kept[entry.path] = {"stamp": [*stamps[entry.path]], **_compiled(entry)}
    rows = [kept[path] for path in sorted(kept)]
    rules = compile_index(
        ({**row["rule"], "stamp": row["stamp"]}, Triggers(**row["triggers"])) for row in rows if "rule" in row
    )
    newest_first = sorted((row for row in rows if "cure" in row), key=lambda row: str(row["cure"]["day"]), reverse=True)
    cures = compile_failures(({**row["cure"], "stamp": row["stamp"]}, row["keys"]) for row in newest_first)
    if kept != known:
        replace_file(folder / CACHE, json.dumps({"version": _version(), "notes": kept}).encode(), mode=FILE_MODE)
    for name, content in ((ACTIONS, rules), (FAILURES, cures)):
        if not (folder / name).exists() or (folder / name).read_bytes() != content:
            replace_file(folder / name, content, mode=FILE_MODE)


def _compiled(entry: Entry) -> dict[str, Any]:
    """Return the cached form of a note."""
    if entry.kind in CURES:
        cure = compile_cure(entry) if entry.effective_status in (ACTIVE, RESOLVED, IN_INBOX) else None
        return {} if cure is None else {"cure": cure[0], "keys": cure[1]}
    if entry.effective_status != ACTIVE or entry.kind in NO_RULES:
        return {}
    rule, triggers = compile_rule(entry)
    return {"rule": asdict(rule), "triggers": asdict(triggers)} if triggers else {}


def count_rules(settings: Settings) -> Counter[str]:
    """Return the number of compiled rules by guard, '' for none."""
    try:
        lines = Path(settings.state.root, ACTIONS).read_bytes().splitlines()[1:]
    except OSError:
        return Counter()
    return Counter(str(parse_json(line)["guard"]) for line in lines)


def _version() -> str:
    return f"{FORMAT}-{blake2b(WORDS_FILE.read_bytes(), digest_size=8).hexdigest()}"


def _read_cache(file: Path) -> dict[str, Any]:
    try:
        cache = parse_json(file.read_bytes())
    except (OSError, ValueError):
        return {}
    notes = cache.get("notes") if isinstance(cache, dict) and cache.get("version") == _version() else None
    return notes if isinstance(notes, dict) else {}
