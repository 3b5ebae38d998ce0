"""Make candidates of a session's turns: a reader judges what is worth remembering. Pure.

Code, not the reader, decides who speaks (`Turn`), what was pasted, the exact words, and the explicit forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...runtime.private import PRIVATE_MARK
from ...runtime.slug import tells_nothing
from ...vault.turn import Origin, Turn, blanked
from ..candidate import Candidate, Category, moment
from ..scrub import findings_in_passage, scrub_passage
from .calibration import Eagerness, Thresholds, calibration
from .context import ConversationContext, occasion
from .fixes import FixFinder, ProvedFix, plain
from .forms import FAINT, IDEA, ORDERS, STEPS, explicit_form, runs_downloads
from .reading import LASTING, Message, MessageReading, Reader, SentenceReading
from .sentences import Sentence, sentences
from .statement import end_of_idea, headline, needs_neighbour, rarely_lasts, statement, thought, whole_fix
from .surroundings import is_own

MOST_SENTENCES = 200
"""Most sentences of one message that are read; a longer text is hardly typed."""
MOST_CANDIDATES = 12
"""Most candidates of one message; the surest are kept."""
LEAST_WORDS = 2
PROVED_FIX_SCORE = 0.6
FORM_SCORE = 0.5
FAINT_SHARE = 1 / 2
"""Part of the limit of a hint from which on a faint form makes a proposal: the readers know little but English."""
EXCERPT_CHARS = 700

ProjectOf = Callable[[str], str]
"""Returns the slug of a working directory's project, "" for none."""

Tier = Literal["save", "propose", "hint"]


@dataclass(frozen=True)
class _Finding:
    chosen: int
    first: int
    last: int
    category: Category
    worth: float
    tier: Tier
    why: str
    personal: float
    channel: str
    limit: float
    """Least probability with which it is proposed; 0 if its form decided."""


class Miner:
    """Reads turn by turn, in constant memory. Candidates never depend on later turns.

    Turns with an offset below `start` are context: nothing is proposed for them.
    """

    def __init__(
        self,
        *,
        start: int = 0,
        project_of: ProjectOf,
        reader: Reader,
        eagerness: Eagerness = "balanced",
    ) -> None:
        self._start = start
        self._project_of = project_of
        self._reader = reader
        self._eagerness: Eagerness = eagerness
        self._context = ConversationContext()
        self._fixes = FixFinder()
        self._proofs: list[tuple[ProvedFix, Candidate]] = []
        self.refuted: set[tuple[str, ...]] = set()
        """Records of the fixes that were returned and after which the same failure came again: they are none."""
        self._projects: dict[str, str | None] = {}

    @property
    def context_offset(self) -> int:
        """Byte offset at which the next reading of this session has to begin: the agent's last message before the
        user's current one."""
        return self._context.context_offset

    def feed(self, turn: Turn) -> list[Candidate]:
        """Return the candidates that this turn completes."""
        found: list[Candidate] = []
        mined = turn.offset >= self._start
        if mined and turn.is_users_words:
            found = self._from_user(turn)
        proved = self._follow(turn)
        if proved is not None and mined:
            found.append(self._proved(turn, proved))
            self._proofs.append((proved, found[-1]))
        return found

    def _follow(self, turn: Turn) -> ProvedFix | None:
        """Take a turn into account, and return the fix that it proves, if any."""
        step = self._context.advance(turn)
        if turn.is_users_words:
            # A reading may begin after an older failure, so older failures must not matter.
            self._fixes, self._proofs = FixFinder(), []
        elif turn.origin is Origin.ASSISTANT:
            return self._fixes.says(turn)
        elif step is not None and step.failed is not None:
            if step.failed:
                self.refuted |= {found.records for fix, found in self._proofs if fix.is_refuted_by(step)}
            return self._fixes.runs(step)
        return None

    def _from_user(self, turn: Turn) -> list[Candidate]:
        text = blanked(turn.text, turn.pasted)
        parts = sentences(text)[:MOST_SENTENCES]
        # In languages without blanks between words one "word" may be a whole sentence.
        if len(text.split()) < (LEAST_WORDS if text.isascii() else 1) or not parts:
            return []
        before = turn.about or self._context.said
        reading = self._reader.read(Message(text, before, parts))
        limits = calibration(self._reader.name).thresholds[self._eagerness]
        findings = _findings(text, parts, reading, limits)
        if not findings:
            return []
        own = [self._is_own(turn, part, said) for part, said in zip(parts, reading.sentences, strict=True)]
        saves = any(finding.tier == "save" for finding in findings)
        if saves and not all(own) and self._worth_alone(text, before, parts, own) < limits.save:
            own = [False] * len(parts)  # Sure only because of another's words beside them.
        found = (self._of_user(turn, parts, own, finding) for finding in findings)
        # "That was it": what was, its own words do not tell.
        return [each for each in found if each.category not in ("fact", "fix") or not tells_nothing(each.statement)]

    def _is_own(self, turn: Turn, part: Sentence, said: SentenceReading) -> bool:
        # A label that opens the message has nothing before it that could introduce another's words. Other sentences are
        # judged with their surroundings, without which they would be judged differently.
        is_labelled = not turn.text[: part.start].strip() and explicit_form(part.of(turn.text)) == IDEA
        is_its = is_labelled or is_own(turn.text, part.start, part.end, self._reader.name, said.apart)
        return is_its and turn.confirms(part.start, part.end)

    def _worth_alone(self, text: str, before: str, parts: Sequence[Sentence], own: Sequence[bool]) -> float:
        """Return what the message is worth without another's words in it."""
        others = [(part.start, part.end) for part, is_its in zip(parts, own, strict=True) if not is_its]
        left = [part for part, is_its in zip(parts, own, strict=True) if is_its]
        return self._reader.read(Message(blanked(text, tuple(others)), before, left)).worth if left else 0.0

    def _of_user(self, turn: Turn, parts: Sequence[Sentence], own: Sequence[bool], finding: _Finding) -> Candidate:
        start, end = parts[finding.first].start, parts[finding.last - 1].end
        said = scrub_passage(turn.text, start, end).strip()
        whole = not findings_in_passage(turn.text, start, end) and PRIVATE_MARK not in said
        text = statement(said)
        saves = finding.tier == "save" and whole and not rarely_lasts(said) and not runs_downloads(said)
        project = self._project(turn)
        best = parts[finding.chosen]
        said_best = scrub_passage(turn.text, best.start, best.end)
        is_dark = finding.last - finding.first == 1 and needs_neighbour(said)
        # What is said of an idea behind it is its speaker's.
        judged = own[finding.first : finding.first + 1 if finding.category == "idea" else finding.last]
        return Candidate(
            category=finding.category,
            statement=text,
            headline=headline(said_best) if finding.chosen > finding.first and not best.is_item else "",
            reason=finding.why,
            role="user",
            records=(turn.record,),
            excerpt=_excerpt(turn.text, *_excerpt_range(turn.text, start, end)),
            session=turn.session,
            project=project,
            scope="project" if project and finding.personal < 0.5 else "personal",
            standing_rule=saves,
            claimed_rule=not saves and finding.tier != "hint",
            typed=True,
            score=round(finding.worth, 3),
            limit=finding.limit,
            said_at=moment(turn.timestamp),
            confirmed=all(judged) and turn.confirms(start, end),
            occasion=occasion(turn, self._context.said) if is_dark or turn.origin is Origin.REJECTION else "",
            channel=finding.channel,
        )

    def _proved(self, turn: Turn, fix: ProvedFix) -> Candidate:
        symptom = f" with “{fix.symptom}”" if fix.symptom else ""
        text = shown = f"`{fix.failed.line}` failed{symptom}; it passed after {fix.change}"
        if fix.claim is not None:
            is_shown = symptom and fix.change and fix.passed.line == fix.failed.line
            text = (f"{text}. " if is_shown else "") + plain(scrub_passage(fix.claim.text, *fix.said))
            if fix.passed.line != fix.failed.line:
                text += f" `{fix.passed.line}` passed."
            shown = _excerpt(fix.claim.text, *_excerpt_range(fix.claim.text, *fix.said))
        records = (fix.failed.result_record, fix.claim.record if fix.claim else "", fix.passed.result_record)
        return Candidate(
            category="fix",
            statement=text,
            reason=f"`{fix.failed.line}` failed, and passed after it",
            role="assistant" if fix.claim is not None else "tool",
            records=tuple(dict.fromkeys(record for record in (*records, turn.record) if record)),
            excerpt=shown,
            session=turn.session,
            project=self._project(turn),
            scope="project" if turn.cwd else "personal",
            typed=False,
            score=PROVED_FIX_SCORE,
            said_at=moment(turn.timestamp),
        )

    def _project(self, turn: Turn) -> str | None:
        if not turn.cwd:
            return None
        if turn.cwd not in self._projects:
            # Looked up once, since it may read the disk.
            self._projects[turn.cwd] = self._project_of(turn.cwd) or None
        return self._projects[turn.cwd]


def _findings(text: str, parts: Sequence[Sentence], reading: MessageReading, limits: Thresholds) -> list[_Finding]:
    """Return the findings of a message, in order: sentences that the reader picks, and explicit forms."""
    picked: dict[int, _Finding] = {}
    order = sorted(range(len(parts)), key=lambda index: -reading.sentences[index].worth)
    for index in order:
        part = reading.sentences[index]
        form = explicit_form(parts[index].of(text))
        judged = _judged(reading, part, index == order[0], form, limits)
        if judged is None or len(picked) >= MOST_CANDIDATES:
            continue
        category, worth, tier = judged
        if form is not None:
            why = f"said outright ({form})"
        else:
            why = "stated as holding from now on" if tier == "save" else "may hold from now on"
        first, last = thought(text, parts, index, category == "workflow")
        if category == "idea":
            last = end_of_idea(text, parts, last)
        elif category == "fix":
            first, last = whole_fix(text, parts, first, last)
        least = {"idea": limits.idea, "fix": limits.fix}.get(category, limits.propose)
        limit = least if form is None else 0.0
        picked[index] = _Finding(index, first, last, category, worth, tier, why, part.personal, part.channel, limit)
    return _joined(picked, parts)


def _judged(
    reading: MessageReading, part: SentenceReading, is_best: bool, form: str | None, limits: Thresholds
) -> tuple[Category, float, Tier] | None:
    """Return category, probability and tier of a sentence; None if it is no finding."""
    if form == IDEA:
        return "idea", max(reading.idea, FORM_SCORE), "propose"
    worth = reading.worth if is_best else min(reading.worth, part.worth)
    tier = _tier(worth, limits) if is_best or part.worth >= limits.sentence else None
    if not is_best and tier == "save":
        tier = "propose"  # The probability of the message is that of its best sentence.
    if is_best and tier != "save" and form is None:
        # Ideas and fixes are judged by the whole message, unless a form says outright what it is.
        others: tuple[tuple[Category, float, float], ...] = (
            ("idea", reading.idea, limits.idea),
            ("fix", reading.fix, limits.fix),
        )
        category, probability, least = max(others, key=lambda other: other[1] - other[2])
        if probability >= max(least, worth):
            return category, probability, "propose"
    category = part.category if part.category in LASTING else "fact"
    if category == "fact" and form in ORDERS:
        category = "preference"
    if form == STEPS:
        category = "workflow"
    if form == FAINT and worth < limits.hint * FAINT_SHARE:
        return category, worth, "hint"
    if form is not None and tier in (None, "hint"):
        return category, max(worth, FORM_SCORE), "propose"
    return None if tier is None else (category, worth, tier)


def _tier(worth: float, limits: Thresholds) -> Tier | None:
    if worth >= limits.save:
        return "save"
    if worth >= limits.propose:
        return "propose"
    return "hint" if worth >= limits.hint else None


def _joined(picked: dict[int, _Finding], parts: Sequence[Sentence]) -> list[_Finding]:
    """Return the findings in the order of the message, with overlapping ones joined. What is found right behind a
    labelled idea ("Idea: …") and is not said outright belongs to the idea."""
    found: list[_Finding] = []
    for index in sorted(picked):
        one = picked[index]
        idea = found[-1] if found else one
        is_behind = idea.category == "idea" and not idea.limit and one.limit and one.first <= idea.last
        if is_behind and parts[idea.first].paragraph == parts[one.first].paragraph:
            found[-1] = replace(idea, last=max(idea.last, one.last))
            continue
        if found and one.first < found[-1].last:
            other = found.pop()
            surer = max(one, other, key=lambda each: each.worth)
            first, last = min(one.first, other.first), max(one.last, other.last)
            # Each says a part of it, so the title begins with the first.
            one = replace(surer, first=first, last=last, chosen=min(one.chosen, other.chosen))
        found.append(one)
    return found


def _excerpt_range(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range of the excerpt around [start, end), cut between words."""
    if len(text) <= EXCERPT_CHARS:
        return 0, len(text)
    room = max(0, EXCERPT_CHARS - (end - start)) // 2
    low, high = max(0, start - room), min(len(text), end + room)
    while 0 < low < start and not text[low - 1].isspace():
        low += 1
    while end < high < len(text) and not text[high].isspace():
        high -= 1
    return low, high


def _excerpt(text: str, low: int, high: int) -> str:
    """Return the passage [low, high), with marks where it is cut, scrubbed with regard to the whole message."""
    if len(text) <= EXCERPT_CHARS:
        return text
    cut = scrub_passage(text, low, high).strip()
    return f"{'…' if low else ''}{cut}{'…' if high < len(text) else ''}"
