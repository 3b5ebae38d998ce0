"""Measure how well a rule is attributed to its author: `python -m memoryvault.bench.ways [FILE]`.

FILE has one JSON object on each line: `text`, a message; `rule`, a passage of it; `label`, "apart" if somebody else
says it, "typed" if the person does. The default is the project's own examples, which nobody trained on. Each message
goes through the miner, with the model and with n-grams alone. `--show` prints each apart rule that is saved unasked,
and each typed one that is not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..pipelines.likeness import content_words
from ..pipelines.reading.reading import Message, Reader
from ..pipelines.reading.sentences import sentences
from ..pipelines.reading.surroundings import is_own
from ..sources.transcripts.whose_words import apart_ranges, own_text, pasted_ranges
from ..vault.turn import Origin, Role, Turn, blanked
from .reflection import local_readers, mine

JUDGE = Path(__file__).parent.parent / "training" / "reader" / "examples" / "apart_judge.jsonl"
SAME_WORDS = 0.5
"""Share of a rule's content words in a memory that is made of it."""


@dataclass(frozen=True)
class Way:
    """A labelled message, and the result for its rule."""

    text: str
    rule: str
    is_apart: bool
    own: bool
    """Whether it is taken for the person's own words."""
    sure: bool
    """Whether the reader is sure enough to save it, if it is the person's own."""
    saved: bool


def read_ways(path: Path, reader: Reader) -> Iterator[Way]:
    """Read each message as one session. Raises OSError; ValueError or KeyError for a file of another format."""
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            row = json.loads(line)
            yield _way(row["text"], row["rule"].strip(), row["label"] == "apart", reader)


def _way(message: str, rule: str, is_apart: bool, reader: Reader) -> Way:
    text = own_text(message)
    pasted, apart = pasted_ranges(text), apart_ranges(text)
    turn = Turn(
        Role.USER,
        Origin.PROMPT,
        text,
        "said",
        "session",
        cwd="/home/dev/till",
        pasted=pasted,
        apart=apart,
        confirmed=True,
    )
    candidates = mine((turn,), reader=reader, project_of=lambda cwd: "project")
    sure = [each for each in candidates if each.standing_rule and _is_of(each.statement, rule)]
    return Way(message, rule, is_apart, _is_own(turn, rule, reader), bool(sure), any(each.confirmed for each in sure))


def _is_own(turn: Turn, rule: str, reader: Reader) -> bool:
    text = blanked(turn.text, turn.pasted)
    start = turn.text.index(rule)
    end = start + len(rule)
    parts = sentences(text)
    if not parts or not turn.confirms(start, end):
        return False
    read = reader.read(Message(text, "", parts)).sentences
    marks = [said.apart for part, said in zip(parts, read, strict=True) if part.start < end and start < part.end]
    return all(is_own(turn.text, start, end, reader.name, each) for each in marks)


def _is_of(statement: str, rule: str) -> bool:
    wanted = set(content_words(rule)) or set(rule.lower().split())
    found = set(content_words(statement)) or set(statement.lower().split())
    return len(wanted & found) >= SAME_WORDS * len(wanted) or rule in statement or statement in rule


def table(found: Sequence[tuple[str, Sequence[Way]]]) -> str:
    """Return a markdown table of the results for each label."""
    lines = [
        "| read by | the rule is | of | taken for the person's own | the reader is sure of | saved unasked |",
        "|---|---|---|---|---|---|",
    ]
    for name, ways in found:
        for label, is_apart in (("another's", True), ("typed", False)):
            its = [way for way in ways if way.is_apart == is_apart]
            counts = (sum(getattr(way, what) for way in its) for what in ("own", "sure", "saved"))
            lines.append(f"| {name} | {label} | {len(its)} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m memoryvault.bench.ways", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=JUDGE)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args(argv)
    try:
        found = [(name, list(read_ways(options.file, reader))) for name, reader in local_readers()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{options.file} holds no labelled messages: {error}", file=sys.stderr)
        return 1
    print(table(found))
    for name, ways in found if options.show else ():
        for way in ways:
            if way.saved if way.is_apart else way.sure and not way.saved:
                print(f"\n-- {name}, {'another' if way.is_apart else 'typed'}: {way.rule}\n{way.text}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
