"""Measure recall and false positives of the scrubber: `python -m memoryvault.bench.scrub [DATA]`.

DATA (or MEMORYVAULT_DATA) is the folder of development data: `secrets/dev.jsonl.gz` (lines with `text`, `label`,
`rule`, `src`) and optionally `sessions.tar.gz`. A string counts as found if scrubbing changes it. The code and manuals
of the installed libraries are the text without secrets.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import os
import re
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from ..pipelines import scrub
from ..pipelines.scrub import Policy, findings
from ..sources.transcripts.claude import ClaudeReader, transcript_files

NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True)
class Sample:
    """A string and whether it holds a secret."""

    text: str
    secret: bool
    rule: str
    source: str

    @property
    def family(self) -> str:
        """Issuer of the rule's secrets, by which samples are split."""
        return re.split(r"[.-]", self.rule.removeprefix("np."), maxsplit=1)[0]

    @property
    def half(self) -> str:
        """A or B, by the issuer."""
        return "AB"[hashlib.sha256(self.family.encode()).digest()[-1] % 2]


@dataclass(frozen=True)
class Score:
    """Counts over some samples."""

    found: int
    secrets: int
    changed: int
    others: int

    @property
    def recall(self) -> float:
        return self.found / self.secrets if self.secrets else float("nan")

    @property
    def false_positive_rate(self) -> float:
        return self.changed / self.others if self.others else float("nan")


def load(path: Path) -> tuple[Sample, ...]:
    """Read the samples of a gzipped JSONL file. Raises OSError."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return tuple(Sample(row["text"], bool(row["label"]), row["rule"], row["src"]) for row in rows)


def score(samples: Iterable[Sample], policy: Policy = Policy.SECRETS) -> Score:
    """Count the secrets that are found, and the other strings that are changed."""
    found = secrets = changed = others = 0
    for sample in samples:
        hit = bool(findings(sample.text, policy))
        if sample.secret:
            secrets, found = secrets + 1, found + hit
        else:
            others, changed = others + 1, changed + hit
    return Score(found, secrets, changed, others)


def in_dispute(samples: Sequence[Sample]) -> set[str]:
    """Return texts labelled as free of secrets in which the findings are secrets by the label of another text."""
    secrets = [sample.text for sample in samples if sample.secret]
    disputed = set()
    for sample in samples:
        values = [sample.text[one.start : one.end] for one in findings(sample.text, Policy.SECRETS)]
        if not sample.secret and values and all(any(value in text for text in secrets) for value in values):
            disputed.add(sample.text)
    return disputed


def by_chance(score_of: Sequence[Sample]) -> tuple[str, str]:
    """Return the rows without the model: with all issuers known, and with none."""
    with patch.object(scrub, "is_random_token", lambda *_: False):
        known = row("all, without the model", score(score_of))
        with patch.object(scrub, "MARKED_TOKEN", NOTHING):
            return known, row("all, without the model, as if no maker's mark were known", score(score_of))


def interval(hits: int, of: int) -> str:
    """Return Wilson's interval, 95 %."""
    if not of:
        return "-"
    z, share = 1.96, hits / of
    middle, half = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return f"{(middle - half) / (1 + z * z / of):.2f}-{(middle + half) / (1 + z * z / of):.2f}"


def row(name: str, result: Score) -> str:
    """Return one row of the table."""
    found, changed = interval(result.found, result.secrets), interval(result.changed, result.others)
    return (
        f"| {name} | {result.recall:.3f} ({result.found}/{result.secrets}, {found})"
        f" | {result.false_positive_rate:.3f} ({result.changed}/{result.others}, {changed}) |"
    )


def user_messages(archive: Path) -> Iterator[str]:
    """Yield what users typed in the sessions of an archive."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        for path in transcript_files(Path(folder)):
            for turn in ClaudeReader(path):
                if turn.is_users_words:
                    yield turn.text


SECRETS_TOLD = Path(__file__).with_name("secrets_told.txt")
"""Lines with an invented secret between ⟦ and ⟧, under headings for its kind."""
ORDINARY_LINES = Path(__file__).with_name("ordinary_lines.txt")
"""Lines of chat, logs, commands and code without secrets."""


@dataclass(frozen=True)
class Line:
    """A line of the project's own set."""

    text: str
    secrets: tuple[str, ...] = ()
    kind: str = "ordinary"

    @property
    def half(self) -> str:
        """A or B. Rules are written with half A in view; half B is only counted."""
        return "AB"[hashlib.sha256(self.text.encode()).digest()[-1] % 2]

    @property
    def is_clean(self) -> bool:
        """Whether scrubbing for what a user saves removes all its secrets."""
        scrubbed = scrub.scrub(self.text, Policy.SECRETS)
        return not any(secret in scrubbed for secret in self.secrets)

    @property
    def is_changed(self) -> bool:
        return scrub.scrub(self.text) != self.text


def own_lines() -> tuple[Line, ...]:
    """Return the lines of both files."""
    lines, kind = [], ""
    for row in SECRETS_TOLD.read_text(encoding="utf-8").splitlines():
        if secrets := re.findall("⟦(.+?)⟧", row):
            lines.append(Line(re.sub("[⟦⟧]", "", row), tuple(secrets), kind))
        else:
            kind = row.removeprefix("# ")
    lines += [Line(row) for row in ORDINARY_LINES.read_text(encoding="utf-8").splitlines()]
    return tuple(lines)


def own_score(lines: Iterable[Line]) -> Score:
    """Count the lines of which no secret is left, and the ordinary lines that are changed."""
    found = secrets = changed = others = 0
    for line in lines:
        if line.secrets:
            secrets, found = secrets + 1, found + line.is_clean
        else:
            others, changed = others + 1, changed + line.is_changed
    return Score(found, secrets, changed, others)


def own_table() -> str:
    """Return the table of the project's own lines, by half and by kind."""
    lines = own_lines()
    rows = [row(f"half {half}", own_score(line for line in lines if line.half == half)) for half in "AB"]
    for kind in dict.fromkeys(line.kind for line in lines if line.secrets):
        result = own_score(line for line in lines if line.kind == kind)
        rows.append(f"| {kind} | {result.recall:.3f} ({result.found}/{result.secrets}) | |")
    return "\n".join(("\n| lines of the project's own | recall | ordinary lines changed |\n|---|---|---|", *rows))


LIBRARY_FILES = (".py", ".md", ".rst", ".txt", ".json", ".toml", ".yaml", ".yml", ".js")
MAX_LIBRARY_FILE_BYTES = 300_000


def library_texts() -> Iterator[str]:
    """Yield every fourth text file of the installed libraries, in order of name."""
    folder = Path(sysconfig.get_paths()["purelib"])
    files = sorted(path for path in folder.rglob("*") if path.suffix in LIBRARY_FILES)
    for path in files[::4]:
        if path.stat().st_size <= MAX_LIBRARY_FILE_BYTES:
            yield path.read_text(encoding="utf-8", errors="replace")


def libraries() -> str:
    """Return a line on the changed strings in the installed libraries."""
    changed = characters = files = 0
    for text in library_texts():
        found = len(findings(text, Policy.SECRETS))
        changed, characters, files = changed + found, characters + len(text), files + (found > 0)
    return f"In {characters / 1e6:.0f} MB of installed libraries {changed} strings in {files} files are changed."


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m memoryvault.bench.scrub", description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=os.environ.get("MEMORYVAULT_DATA"))
    data = parser.parse_args(arguments).data
    if data is None or not (Path(data) / "secrets" / "dev.jsonl.gz").is_file():
        print("bench.scrub: name the folder of development data, or set MEMORYVAULT_DATA", file=sys.stderr)
        return 2
    samples = load(Path(data) / "secrets" / "dev.jsonl.gz")
    contested = {sample.text for sample in samples if sample.secret}
    print("| strings | recall | false positives |\n|---|---|---|")
    groups: list[tuple[str, list[Sample]]] = [("all", list(samples))]
    groups += [(f"half {half} of the makers", [s for s in samples if s.half == half]) for half in "AB"]
    groups += [
        (f"from {source}", [s for s in samples if s.source == source]) for source in sorted({s.source for s in samples})
    ]
    groups.append(("without strings labelled both ways", [s for s in samples if s.secret or s.text not in contested]))
    disputed = in_dispute(samples)
    groups.append(("without values labelled both ways", [s for s in samples if s.secret or s.text not in disputed]))
    for name, group in groups:
        print(row(name, score(group)))
    # A secret of an unknown issuer is found only by its name and its randomness.
    with patch.object(scrub, "MARKED_TOKEN", NOTHING):
        print(row("all, as if no maker's mark were known", score(samples)))
    print(*by_chance(samples), sep="\n")
    print(own_table())
    archive = Path(data) / "sessions.tar.gz"
    if archive.is_file():
        messages = list(user_messages(archive))
        print("\n| ordinary messages of users | unchanged | speed |\n|---|---|---|")
        for policy in Policy:
            start = time.process_time()
            changed = sum(bool(findings(message, policy)) for message in messages)
            seconds = time.process_time() - start
            megabytes = sum(map(len, messages)) / 1e6
            unchanged = f"{1 - changed / len(messages):.2%} of {len(messages)}"
            print(f"| policy `{policy}` | {unchanged} | {megabytes / seconds:.1f} MB/s |")
    print(f"\n{libraries()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
