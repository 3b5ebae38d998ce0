"""Measure recall in small vaults: `python -m memoryvault.bench small`.

Prompts are asked in vaults of 0, 3, 8 and 20 notes beside 52 skills, through the recall engine as hooks do. Counted is
what a prompt gets, by the kind of prompt, and how much of it is noise. No data set is needed; `note` in
tests/recall_regression/small.json describes the vaults.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..index.embedder import DEFAULT_MODEL, Embedder, load_embedder
from ..index.evaluation import Question
from ..pipelines.skills import Skill, body_of, entry_name, title_of
from .recall import INJECTED, REGRESSION, Remembering, open_vault

SIZES = (0, 3, 8, 20)
"""Notes of each vault."""
FILE = REGRESSION / "small.json"


@dataclass(frozen=True)
class Prompt:
    """A prompt, and the names of the notes and skills that should come, or may."""

    kind: str
    """`note`, `skill` or `nothing`."""
    text: str
    expect: frozenset[str]
    fine: frozenset[str]


@dataclass
class Tally:
    """Results of the prompts of one kind."""

    prompts: int = 0
    right: int = 0
    """Prompts that got one of the entries that should come."""
    noisy: int = 0
    """Prompts that got an entry that is neither right nor fine."""
    wrong_notes: int = 0
    wrong_skills: int = 0


def content() -> dict[str, Any]:
    """Return the content of small.json."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def prompts_of(vault: Mapping[str, Any], size: int) -> list[Prompt]:
    """Return the prompts; one about a note that is not among the first `size` counts as about nothing."""
    here = {note["slug"] for note in vault["notes"][:size]}
    prompts = []
    for row in vault["prompts"]:
        expect = frozenset(row.get("expect", ()))
        kind = "nothing" if row["kind"] == "note" and not expect & here else row["kind"]
        prompts.append(Prompt(kind, row["text"], expect, frozenset(row.get("fine", ()))))
    return prompts


def write_vault(folder: Path, notes: Sequence[Mapping[str, str]], skills: Sequence[Mapping[str, str]]) -> None:
    """Write the entries as `memory save` and `memory skills index` do."""
    for note in notes:
        _write(folder / f"personal-private/{note['kind']}/{note['slug']}.md", note["kind"], note["title"], note["text"])
    for row in skills:
        path = f"~/.claude/skills/{row['name']}/SKILL.md"
        skill = Skill(path, "toolbox", row["name"], row["description"], row["summary"], "", "")
        file = folder / f"personal-skills/{entry_name(skill)}.md"
        _write(file, "skill", title_of(skill.name, skill.repo), body_of(skill))


def _write(file: Path, kind: str, title: str, body: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"---\nkind: {kind}\nstatus: active\ntags: [{kind}]\n---\n\n# {title}\n\n{body}\n", encoding="utf-8"
    )


def name_of(path: str) -> tuple[str, bool]:
    """Return the name that prompts use for the entry at `path`, and whether it is a skill."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".md")
    return stem.split("--", 1)[-1], path.startswith("personal-skills/")


def measure(
    vault: Mapping[str, Any], size: int, skills: Sequence[Mapping[str, str]], embedder: Embedder | None
) -> dict[str, Tally]:
    """Return the results by kind of prompt for `size` notes and the skills. `embedder`: None for words alone."""
    return given(vault["notes"][:size], skills, prompts_of(vault, size), embedder)


def given(
    notes: Sequence[Mapping[str, str]],
    skills: Sequence[Mapping[str, str]],
    prompts: Sequence[Prompt],
    embedder: Embedder | None,
) -> dict[str, Tally]:
    """Return the results by kind of prompt for a vault of these notes and skills."""
    tallies = {kind: Tally() for kind in ("note", "skill", "nothing")}
    with tempfile.TemporaryDirectory(prefix="memoryvault-bench-") as name:
        folder = Path(name)
        write_vault(folder / "MemoryVault", notes, skills)
        (folder / "index").mkdir()
        with open_vault(folder / "MemoryVault", folder / "index", embedder) as evaluation:
            questions = [Question(str(number), prompt.text) for number, prompt in enumerate(prompts)]
            for prompt, found in zip(prompts, evaluation.rank(questions, INJECTED, apply_threshold=True), strict=True):
                _count(tallies[prompt.kind], prompt, [name_of(path) for path in found.ids])
    return tallies


def _count(tally: Tally, prompt: Prompt, entries: Sequence[tuple[str, bool]]) -> None:
    """Count the entries that a prompt got, given as (name, whether it is a skill)."""
    wrong = [is_skill for name, is_skill in entries if name not in prompt.expect | prompt.fine]
    tally.prompts += 1
    tally.right += any(name in prompt.expect for name, _ in entries)
    tally.noisy += bool(wrong)
    tally.wrong_skills += sum(wrong)
    tally.wrong_notes += len(wrong) - sum(wrong)


def table(name: str, by_size: Mapping[str, Mapping[str, Tally]]) -> Iterator[str]:
    """Yield the lines of a markdown table."""
    yield f"### {name}\n"
    yield "| notes | note: right | noise: notes, skills | skill: right | noise | nothing: noisy | noise |"
    yield "|---|---|---|---|---|---|---|"
    for size, tallies in by_size.items():
        note, skill, nothing = tallies["note"], tallies["skill"], tallies["nothing"]
        yield (
            f"| {size} | {note.right} of {note.prompts} | {note.wrong_notes}, {note.wrong_skills} "
            f"| {skill.right} of {skill.prompts} | {skill.wrong_notes}, {skill.wrong_skills} "
            f"| {nothing.noisy} of {nothing.prompts} | {nothing.wrong_notes}, {nothing.wrong_skills} |"
        )
    yield ""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--models", type=Path, default=Path("models"), help="where downloaded models lie")
    parser.add_argument("--vault", action="append", help="only the vault of this name")
    args = parser.parse_args(argv)
    embedder = Remembering(load_embedder(args.model, models_folder=args.models))
    found = content()
    for vault in found["vaults"]:
        if args.vault and vault["name"] not in args.vault:
            continue
        by_size = {str(size): measure(vault, size, found["skills"], embedder) for size in SIZES}
        by_size[f"{SIZES[-1]}, by words alone"] = measure(vault, SIZES[-1], found["skills"], None)
        for line in table(f"{vault['name']}: {len(vault['prompts'])} prompts, {len(found['skills'])} skills", by_size):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
