"""The local miner: from the turns of a session to candidates. Deterministic, offline, no I/O of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Literal

from ...vault.private import PRIVATE_MARK
from ...vault.slug import slugify
from ...vault.turn import Origin, Role, Turn
from ..candidate import Candidate, Category, Scope, moment
from ..foreign_language import may_state_foreign_rule
from ..scrub import Policy, findings, scrub_passage
from . import fixes, procedures
from .agent_message import AgentMessage
from .classifier import Classifier, Head, packaged
from .common_patterns import without_expletive_wish
from .excerpts import as_written, excerpt, excerpt_range
from .explicit_forms import asks_for_it, names_what_to_do, replaced, sets_aside
from .features import Message, message
from .foreign_rules import foreign_rule, is_of_this_project
from .impersonal_text import in_nobodys_voice, orders_something, paragraph_at, paragraph_before, reproves
from .joined_statements import divided, states_fact
from .named_project import named_project
from .program_rules import is_part_of_description
from .remembered_list import LISTED, RULE_LISTED, asked_in_list, heads_rules, is_fact_of_project
from .rewording import without_opening
from .rule_certainty import Certainty, speaks_against
from .sentence_scan import ASIDE_BIT, CURE_BIT, EXPLICIT_BITS, PROCEDURE_BITS, RULE_BITS, cues
from .sentences import Sentence, looks_pasted
from .standing_rules import Rule, describes, downloads_and_runs
from .statement_context import ConversationContext, names_code, needs_context, occasion, only_rejects, statement

MAX_RULES_PER_MESSAGE = 20
MAX_SAID_CHARS = 300
"""A message up to here was typed rather than pasted: a rule in it is not lost because nobody speaks before it."""
MAX_STATED_PER_MESSAGE = 3
"""Of more in one message, which may be a guide that was pasted, the others are put to the user."""
LESSONS = ("preference", "correction")
LEAD_CHARS = 240
"""How much of the message before a sentence may be needed to understand it."""

RULE_SCORE = 0.95
STATED_CURE_SCORE = 0.6
EXPLICIT_SCORE = 0.8
FOREIGN_SCORE = 0.8
AGENT_IDEA_SCORE = 0.5

# To ask an enumeration for a member by name takes long.
_TOOL, _ASSISTANT = Role.TOOL, Origin.ASSISTANT

ProjectOf = Callable[[str], str]
"""Working directory -> slug of its project, "" for none."""


def folder_name(cwd: str) -> str:
    """The project by the name of its folder: what can be known without looking at the disk."""
    return PurePosixPath(cwd).name.lower()


def mine(
    turns: Iterable[Turn],
    *,
    start: int = 0,
    project_of: ProjectOf = folder_name,
    classifier: Classifier | None = None,
) -> list[Candidate]:
    """Candidates of one session, in its order.

    Turns with an offset below `start` are context: they are read, but nothing is proposed for them. A session that is
    mined in parts gives the same candidates (by record and statement) as in one go when each part begins at the
    `Miner.context_offset` of the one before, and has that one's end as `start`.
    """
    return list(Miner(start=start, project_of=project_of, classifier=classifier).run(turns))


def candidate_of_user(
    said: Message,
    index: int,
    category: Category,
    reason: str,
    score: float,
    *,
    rule: Rule | None,
    agent_said: str,
    project: str | None,
) -> Candidate:
    """The candidate that sentence number `index` of the user's message makes, in the user's own words."""
    turn = said.turn
    part = said.sentences[index]
    sentence = without_opening(part.text) if rule is not None and not rule.language else part.text
    shown = excerpt_range(turn.text, part.start, part.end)
    written = as_written(turn.text, part, sentence, shown)
    before, lead = "", part.start
    is_fact = rule is not None and not rule.language and states_fact(sentence)
    follows = index > 0 and not part.opens and said.sentences[index - 1].typed
    if needs_context(sentence) and follows and not is_fact and not _stands_alone(said, index):
        lead = max(said.sentences[index - 1].start, part.start - LEAD_CHARS)
        before = turn.text[lead : part.start].strip()
    end = part.end
    following = said.sentences[index + 1] if index + 1 < len(said.sentences) else None
    if following is not None and following.typed and (sentence.rstrip().endswith(":") or only_rejects(sentence)):
        sentence = f"{sentence} {following.text}"
        end = following.end
        written = f"{written} {as_written(turn.text, following, following.text, (following.start, following.end))}"
    language = rule.language if rule is not None else ""
    scope: Scope = (
        "personal"
        if category in ("preference", "correction", "workflow")
        and (
            not names_code(f"{before} {sentence}")
            and (rule is not None or category == "preference")
            and (
                not is_of_this_project(rule, sentence) if rule is not None and language else not needs_context(sentence)
            )
        )
        else "project"
    )
    if rule is not None and is_fact_of_project(rule, sentence):
        scope = "project"
    named = named_project(sentence) if rule is not None and not language else None
    if named is not None:
        scope = "project" if project and slugify(project) == named else "personal"
    # Who refuses a tool call types the reason.
    # By which words somebody speaks in another language is not known.
    paragraph = paragraph_at(turn.text, part.start, part.end)
    passed_on = (
        turn.origin is not Origin.REJECTION
        and not language
        and not (rule is not None and rule.form in (LISTED, RULE_LISTED))
        and in_nobodys_voice(paragraph)
    )
    certainty = rule.certainty if rule is not None else None
    if passed_on and paragraph == turn.text.strip():
        # "Fix the login test. Never mock the clock.": nothing else was said, so it may be the user who does.
        may_speak = certainty is Certainty.STATED and orders_something(paragraph)
        if may_speak or (certainty in (Certainty.STATED, Certainty.LIKELY) and reproves(paragraph)):
            passed_on, certainty = False, Certainty.LIKELY
    if certainty is Certainty.STATED and (part.introduced or passed_on or _is_kept_in_part(sentence)):
        certainty = Certainty.LIKELY  # Somebody else's words, it may be, or without what is left out another rule.
    if certainty is Certainty.STATED and is_part_of_description(sentence, paragraph_before(turn.text, part.start)):
        certainty = Certainty.LIKELY
    saved = certainty is Certainty.STATED
    if language or is_fact:
        stated = " ".join(written.split())
    else:
        # What is saved unasked holds the user's words alone: those of an agent may be a README's.
        preface = scrub_passage(turn.text, lead, part.start).strip()
        stated = statement(written, turn, agent_said, preface, quotes=not saved)
    # A rule stands for itself; of a correction nobody can judge who does not know what it corrects.
    explained = not saved or needs_context(sentence)
    answered = occasion(turn, agent_said) if category in LESSONS and explained else ""
    return Candidate(
        category=category,
        statement=stated,
        reason=reason,
        role="user",
        records=(turn.record,),
        excerpt=excerpt(turn.text, *shown),
        session=turn.session,
        project=project,
        scope=scope if project else "personal",
        standing_rule=saved,
        claimed_rule=certainty is Certainty.LIKELY,
        typed=part.typed and not looks_pasted(turn.text),
        passed_on=passed_on,
        score=round(score, 3),
        replaces=replaced(sentence) if category in ("preference", "correction") else None,
        names_project=named,
        said_at=moment(turn.timestamp),
        confirmed=turn.confirms(part.start, end),
        occasion="" if answered in stated else answered,
    )


def _stands_alone(said: Message, index: int) -> bool:
    """Is it a wish that does not speak of the sentence before it, which the user asks to remember?"""
    wish = without_expletive_wish(said.sentences[index].text)
    return not needs_context(wish) and states_fact(said.sentences[index - 1].text)


class Miner:
    """Mines turn by turn, in constant memory. Decisions only look back, so nothing waits for the end of the session."""

    def __init__(
        self, *, start: int = 0, project_of: ProjectOf = folder_name, classifier: Classifier | None = None
    ) -> None:
        self._start = start
        self._project_of = project_of
        self._classifier = classifier or packaged()
        self._context = ConversationContext()
        self._projects: dict[str, str | None] = {}

    @property
    def context_offset(self) -> int:
        """Byte offset at which the next reading of this session has to begin: the agent's last message before the
        user's current one. What is read again below `start` is only followed, not mined, which costs little."""
        return self._context.context_offset

    @property
    def last_agent_offset(self) -> int:
        """Byte offset of the agent's last message: a later place to begin at, if the next turn is a prompt."""
        return self._context.last_agent_offset

    def run(self, turns: Iterable[Turn]) -> Iterator[Candidate]:
        for turn in turns:
            yield from self.feed(turn)

    def feed(self, turn: Turn) -> list[Candidate]:
        """The candidates that this turn settles."""
        found: list[Candidate] = []
        mined = turn.offset >= self._start
        if turn.role is _TOOL:
            self._context.advance(turn)
            return self._from_tools(turn) if mined else found
        if mined and turn.is_users_words:
            found = self._from_user(turn)
        elif mined and turn.origin is _ASSISTANT:
            found = self._from_agent(turn)
        self._context.advance(turn)
        return found

    def follow(self, turn: Turn) -> None:
        """Take a turn into account without mining it: of a message it is known that it proposes nothing."""
        self._context.advance(turn)

    # ------------------------------------------------------------------------------------------ the user's words

    def _from_user(self, turn: Turn) -> list[Candidate]:
        said = message(turn)
        if (parts := divided(said.sentences)) is not said.sentences:
            said = Message(turn, parts)
        own = [part for part in said.sentences if part.typed]
        if not own or (len(own) == 1 and len(own[0].text.split()) < 2 and not may_state_foreign_rule(turn.text)):
            return []
        document = looks_pasted(turn.text)
        found: list[Candidate] = []
        taken: set[int] = set()
        stated = 0
        spoken = [] if document else [index for index, part in enumerate(said.sentences) if part.spoken]
        for index in spoken if said.may_show & RULE_BITS else ():
            part = said.sentences[index]
            rule = said.search(index).standing_rule
            if rule is None or len(found) >= MAX_RULES_PER_MESSAGE:
                continue
            if _is_heading(said, index):
                taken.add(index)
                continue
            if rule.certainty is Certainty.STATED and speaks_against(*_neighbours(said, index)):
                rule = replace(rule, certainty=Certainty.LIKELY)
            if rule.certainty is Certainty.STATED:
                stated += 1
                if stated > MAX_STATED_PER_MESSAGE:
                    rule = replace(rule, certainty=Certainty.LIKELY)
            category: Category = "preference"
            if procedures.described(part.text):
                category = "workflow"
            elif turn.origin is Origin.REJECTION or self._is_correction(said):
                category = "correction"
            found.append(self._of_user(said, index, category, _named(rule, part), RULE_SCORE, rule=rule))
            taken.add(index)
        for index in () if document or len(turn.text) > MAX_SAID_CHARS else _unvoiced(said):
            rule = said.search(index).standing_rule if len(found) < MAX_RULES_PER_MESSAGE else None
            if rule is not None and rule.certainty is Certainty.STATED:
                rule = replace(rule, certainty=Certainty.LIKELY)
                part = said.sentences[index]
                found.append(self._of_user(said, index, "preference", _named(rule, part), RULE_SCORE, rule=rule))
                taken.add(index)
        for index, rule in asked_in_list(said.sentences, turn.text) if spoken else ():
            if index not in taken and len(found) < MAX_RULES_PER_MESSAGE:
                found.append(
                    self._of_user(said, index, "preference", _named(rule, said.sentences[index]), RULE_SCORE, rule=rule)
                )
                taken.add(index)
        if spoken and may_state_foreign_rule(turn.text):
            self._add_foreign(said, found, taken)
        if not found and said.may_show & PROCEDURE_BITS:
            for index in spoken:
                if procedures.described(said.sentences[index].text):
                    found.append(self._of_user(said, index, "workflow", "a procedure the user described", 0.7))
                    taken.add(index)
                    break
        for index in spoken if said.may_show & EXPLICIT_BITS else ():
            may_say = index not in taken and not downloads_and_runs(said.sentences[index].text)
            for form in said.search(index).explicit if may_say else ():
                if not any(_alike(form.category, known.category) for known in found):
                    found.append(self._of_user(said, index, form.category, form.reason, EXPLICIT_SCORE))
                    taken.add(index)
        heads: tuple[tuple[str, Category], ...] = (("durable", "preference"), ("idea", "idea"))
        for name, category in heads:
            head, rest = self._classifier[name], said
            if any(_alike(category, known.category) for known in found):
                if category == "idea" or not any(known.standing_rule or known.claimed_rule for known in found):
                    continue
                # What stands beside a rule is asked about as if it had been sent alone: else it would be lost.
                rest = said.without(taken)
                if sum(len(part.text.split()) for part in rest.own) < 2:
                    continue
            if rest.is_beyond(head):
                continue
            probability = rest.probability(head)
            if probability < head.threshold:
                continue
            left = said
            if PRIVATE_MARK in turn.text:
                left = _without_mark(turn)
                if not left.own or left.is_beyond(head) or left.probability(head) < head.threshold:
                    continue
            orders = {
                index for index, part in enumerate(said.sentences) if category == "idea" and asks_for_it(part.text)
            }
            chosen = self._best(said, head, taken | orders)
            if chosen is None:
                continue
            part = said.sentences[chosen]
            if category == "preference" and self._is_correction(left):
                category = "correction"
            found.append(self._of_user(said, chosen, category, _why(category, turn, part), probability))
        return found

    def _add_foreign(self, said: Message, found: list[Candidate], taken: set[int]) -> None:
        """Add the rules in other languages. Which words are conversation is known of English only, so it is enough that
        the sentence was typed, and that no line introduces it."""
        for index, part in enumerate(said.sentences):
            if len(found) >= MAX_RULES_PER_MESSAGE:
                return
            if not part.typed or part.introduced or index in taken or downloads_and_runs(part.text):
                continue
            rule = foreign_rule(part.text)
            if rule is not None:
                category: Category = "correction" if said.turn.origin is Origin.REJECTION else "preference"
                found.append(self._of_user(said, index, category, _named(rule, part), FOREIGN_SCORE, rule=rule))
                taken.add(index)

    def _is_correction(self, said: Message) -> bool:
        head = self._classifier["correction"]
        return said.probability(head) >= head.threshold

    def _best(self, said: Message, head: Head, taken: set[int]) -> int | None:
        """The sentence that speaks most for the head's answer; None when nothing of it was typed."""
        scored = [
            (said.speaks_for(head, index) + 0.02 * min(len(part.text.split()), 12), -index)
            for index, part in enumerate(said.sentences)
            if part.typed
            and index not in taken
            and len(part.text) > 3
            and not describes(part.text)
            and not downloads_and_runs(part.text)
        ]
        return -max(scored)[1] if scored else None

    def _of_user(
        self, said: Message, index: int, category: Category, reason: str, score: float, *, rule: Rule | None = None
    ) -> Candidate:
        return candidate_of_user(
            said,
            index,
            category,
            reason,
            score,
            rule=rule,
            agent_said=self._context.said,
            project=self._project(said.turn),
        )

    def _project(self, turn: Turn) -> str | None:
        if not turn.cwd:
            return None
        if turn.cwd not in self._projects:
            # Looked up once: it may mean a look at the disk.
            self._projects[turn.cwd] = self._project_of(turn.cwd) or None
        return self._projects[turn.cwd]

    # ------------------------------------------------------------------------------------------ the agent's words

    def _from_agent(self, turn: Turn) -> list[Candidate]:
        head = self._classifier["agent-fix"]
        said = AgentMessage(turn)
        found: list[Candidate] = []
        probability = 0.0 if said.is_beyond(head) else said.probability(head)
        if probability >= head.threshold:
            scored = [
                (said.speaks_for(head, index), -index)
                for index, part in enumerate(said.sentences)
                if 5 <= len(part.text.split()) <= 80 and not fixes.announces(part.text)
            ]
            if scored:
                found.append(self._of_agent(said, -max(scored)[1], "fix", probability))
        if not found and said.may_show & CURE_BIT:
            for index, part in enumerate(said.sentences):
                if said.search(index).may_show & CURE_BIT and fixes.states_cure(part.text):
                    found.append(self._of_agent(said, index, "fix", STATED_CURE_SCORE))
                    break
        for index, part in enumerate(said.sentences) if said.may_show & ASIDE_BIT else ():
            if said.search(index).may_show & ASIDE_BIT and sets_aside(part.text):
                found.append(self._of_agent(said, index, "idea", AGENT_IDEA_SCORE))
                break
        return found

    def _of_agent(self, said: AgentMessage, index: int, category: Category, score: float) -> Candidate:
        turn = said.turn
        parts = said.sentences
        low = high = index
        if index + 1 < len(parts) and (
            fixes.announces(parts[index].text) or (category == "fix" and fixes.speaks_of_fix(parts[index + 1].text))
        ):
            high = index + 1
        if index and (
            fixes.leans_back(parts[index].text)
            or (category == "fix" and high == index and fixes.speaks_of_fix(parts[index - 1].text))
        ):
            low = index - 1
        shown = excerpt_range(turn.text, parts[low].start, parts[high].end)
        text = " ".join(as_written(turn.text, part, part.text, shown).strip(" *") for part in parts[low : high + 1])
        broken = fixes.last_failure(self._context.recent_steps) if category == "fix" else None
        reason = "what the agent found to be wrong" if category == "fix" else "an idea the agent mentioned"
        if broken is not None:
            reason += f", after `{broken.line}` failed"
        return Candidate(
            category=category,
            statement=_plain(text),
            reason=reason,
            role="assistant",
            records=(*((broken.result_record,) if broken is not None else ()), turn.record),
            excerpt=excerpt(turn.text, *shown),
            session=turn.session,
            project=self._project(turn),
            scope="project" if turn.cwd else "personal",
            typed=False,
            score=round(score, 3),
            said_at=moment(turn.timestamp),
        )

    # ------------------------------------------------------------------------------------------ what the tools show

    def _from_tools(self, turn: Turn) -> list[Candidate]:
        steps = self._context.steps
        step = self._context.calls.get(turn.tool.use_id or "") if turn.tool is not None else None
        if step is None or step.failed is not False or not step.command:
            return []
        found = []
        if procedures.delivers(step):
            done = procedures.round_of_checks(steps[: steps.index(step) + 1])
            if done is not None:
                commands, records = done
                found.append(
                    self._of_tools(
                        turn,
                        "workflow",
                        _procedure(commands),
                        "a round of checks before handing over work",
                        records,
                        0.4,
                    )
                )
        failed_lines = self._context.failed_lines
        cured = fixes.cured(steps, step) if failed_lines and step.line in failed_lines else None
        if cured is not None:
            broken, symptom, change = cured
            text = f"`{broken.line}` failed with “{symptom}”; it passed after {change}"
            found.append(
                self._of_tools(
                    turn,
                    "fix",
                    text,
                    "a command failed, something was changed, then it passed",
                    (broken.result_record, step.result_record),
                    0.4,
                )
            )
        return found

    def _of_tools(
        self,
        turn: Turn,
        category: Literal["workflow", "fix"],
        text: str,
        reason: str,
        records: tuple[str, ...],
        score: float,
    ) -> Candidate:
        return Candidate(
            category=category,
            statement=text,
            reason=reason,
            role="tool",
            records=tuple(dict.fromkeys(record for record in (*records, turn.record) if record)),
            excerpt=text,
            session=turn.session,
            project=self._project(turn),
            scope="project" if turn.cwd else "personal",
            typed=False,
            score=score,
            said_at=moment(turn.timestamp),
        )


def _neighbours(said: Message, index: int) -> tuple[str, str]:
    """The sentences before and after one, '' where there is none."""
    parts = said.sentences
    return parts[index - 1].text if index else "", parts[index + 1].text if index + 1 < len(parts) else ""


def _is_heading(said: Message, index: int) -> bool:
    """Is it "From now on:", with a list below it? Each item is a rule of its own."""
    part = said.sentences[index]
    return heads_rules(part) and next(asked_in_list(said.sentences[index:], said.turn.text), None) is not None


def _unvoiced(said: Message) -> list[int]:
    """Typed sentences behind one that nobody's voice is in ("The CI is red again. Never push without the tests.")."""
    if not said.may_show & RULE_BITS:
        return []
    parts = enumerate(said.sentences)
    return [index for index, part in parts if part.typed and not part.spoken and not part.introduced]


def _alike(one: Category, other: Category) -> bool:
    """A message teaches a preference or a correction, not both; only a standing rule may have one beside it."""
    return one == other or (one in LESSONS and other in LESSONS)


def _named(rule: Rule, part: Sentence) -> str:
    if rule.language:
        return f"has the form of a rule {rule.form}"
    if rule.certainty is not Certainty.STATED:
        return f"has the form of a rule: {rule.form}"
    if part.introduced:
        return f"has the form of a rule: {rule.form}; the line above it may introduce somebody else's words"
    if PRIVATE_MARK in part.text:
        return f"has the form of a rule: {rule.form}; a part of it is private"
    if _is_kept_in_part(part.text):
        return f"has the form of a rule: {rule.form}; a part of it is a secret"
    return f"a standing rule: {rule.form}"


def _is_kept_in_part(sentence: str) -> bool:
    """Whether a note holds less of it than was said: "Always use [REDACTED-API-KEY] to deploy." is no rule to go by."""
    return PRIVATE_MARK in sentence or bool(findings(sentence, Policy.SECRETS))


_OPENING_MARK = re.compile(rf"\A\s*{re.escape(PRIVATE_MARK)}[\s,;:]*(?:(?:and|but|or|so|then)\b[\s,]*)?")


def _without_mark(turn: Turn) -> Message:
    """What is left of a message without its private passages, as if it had been sent alone: the mark itself, and
    an "and" that follows it, read like a correction."""
    left = _OPENING_MARK.sub("", turn.text).replace(PRIVATE_MARK, "")
    return message(turn._replace(text=left.strip(), pasted=()))


def _why(category: Category, turn: Turn, part: Sentence) -> str:
    if category == "idea":
        return "something to do later, or to think about"
    if turn.origin is Origin.REJECTION:
        return "said when refusing a tool call"
    if category == "correction":
        return "corrects the agent and says what to do" if names_what_to_do(part.text) else "corrects the agent"
    names = {name.split(":", 1)[1] for name in cues(part.text) if name.startswith("preference:")}
    if "negative_order" in names or "avoid" in names:
        return "says what to avoid"
    if "prefer" in names or "want" in names:
        return "says what the user wants"
    return "how the user likes things done"


def _plain(text: str) -> str:
    return " ".join(re.sub(r"\*\*|^#+\s*|^[-*]\s+", "", text).split())


def _procedure(commands: tuple[str, ...]) -> str:
    return "Before handing over work: " + ", then ".join(f"`{command}`" for command in commands)
