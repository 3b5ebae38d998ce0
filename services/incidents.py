"""Record failures and what helped: one entry per kind of failure, found again by fingerprint, then by recall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..pipelines.routing import PUT_AWAY_STATUSES, REJECTED_STATUSES
from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import UsageError
from ..runtime.layout import DEFAULT_GROUP, PROJECTS, REVIEW
from ..runtime.private import strip_private
from ..runtime.slug import mining_slug
from ..vault.entry import INCIDENT, Entry
from ..vault.evidence import strip_evidence
from ..vault.failure import RESOLUTION_HEADING, Failure, plain, read_failure
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import beginning_of, end_of
from .agent_proposals import AgentProposals, ProposalFields, ProposalOutcome
from .entry_names import find_by_fingerprint
from .remembering import free_path

MAX_REPORT_CHARACTERS = 20_000
MAX_SCRUBBED_CHARACTERS = 400_000
"""Only both ends of a longer report are read: they take a fifth of a second."""
TITLE_CHARACTERS = 120


@dataclass(frozen=True)
class IncidentOutcome:
    """The result of `add`: a new entry, or one more occurrence of a known failure."""

    path: str
    fingerprint: str
    occurrences: int
    is_new: bool


@dataclass(frozen=True)
class IncidentMatch:
    """A match: `exact` by fingerprint, else by recall."""

    path: str
    title: str
    exact: bool
    occurrences: int
    resolution: str
    """What helped, if it was noted."""


def add(store: VaultStore, report: str, *, resolution: str = "", project: str = "") -> IncidentOutcome:
    """Record a failure, scrubbed of secrets and people; a known one is counted. Raises UsageError, VaultUnavailable."""
    text, failure = _read(report)
    helped = scrub(resolution.strip(), Policy.FULL)
    with store.lock():
        known = _exact(store, failure)
        if known:
            entry = known[0]
            body = _with_resolution(entry.body, helped) if helped and helped not in entry.body else None
            fields = {"occurrences": entry.occurrences + 1}
            changed = store.update(entry.path, entry.content_hash, fields=fields, body=body)
            return IncidentOutcome(changed.path, failure.fingerprint, changed.occurrences, False)
        group = f"{PROJECTS}/{project}" if project else DEFAULT_GROUP
        title, body = _note_of(text, failure, helped)
        path = free_path(f"{group}/{INCIDENT}/{mining_slug(title)}.md", store)
        created = store.create(
            path,
            {
                "kind": INCIDENT,
                "status": "resolved" if helped else "active",
                "group": group,
                "project": project or None,
                "fingerprint": failure.fingerprint,
                "occurrences": 1,
            },
            title,
            body,
        )
        return IncidentOutcome(created.path, failure.fingerprint, 1, True)


def propose(
    store: VaultStore, proposals: AgentProposals, report: str, *, resolution: str = "", project: str = ""
) -> ProposalOutcome:
    """Record an agent's report: a known failure is counted, a new one is proposed to the user. Raises as `add` does."""
    text, failure = _read(report)
    helped = scrub(beginning_of(resolution.strip(), MAX_REPORT_CHARACTERS), Policy.FULL)
    with store.lock():
        for entry in _exact(store, failure):
            # Another occurrence is a fact. What helped is the agent's claim, so it is added only to agents' own notes.
            body = None
            if helped and entry.written_by_agent and entry.special == REVIEW and helped not in entry.body:
                body = _with_resolution(entry.body, helped)
            fields = {"occurrences": entry.occurrences + 1}
            store.update(entry.path, entry.content_hash, fields=fields, body=body)
            return ProposalOutcome("known already", entry.path)
        title, body = _note_of(text, failure, helped)
        belongs = ProposalFields(project=project or None)
        return proposals.propose_scrubbed(INCIDENT, title, body, belongs, key=failure.fingerprint)


def find(store: VaultStore, report: str, ask: Callable[[str], Sequence[str]], most: int = 5) -> list[IncidentMatch]:
    """Find the same failure by its fingerprint, or else similar ones among the incidents by recall.

    `ask` returns paths for a question. Nothing is written.
    """
    _, failure = _read(report)
    exact = [_match(entry, exact=True) for entry in _exact(store, failure)]
    if exact:
        return exact[:most]
    entries = map(store.read, ask(failure.normalised.replace("\n", " ")[:1000]))
    return [_match(entry, exact=False) for entry in entries if entry.kind == INCIDENT][:most]


def _read(report: str) -> tuple[Scrubbed, Failure]:
    if not report.strip():
        raise UsageError(
            "the report is empty: give the message and the stack, by --body, --body-file or standard input"
        )
    if len(report) > MAX_SCRUBBED_CHARACTERS:
        report = _ends_of(report, MAX_SCRUBBED_CHARACTERS)
    # Scrub before cutting, because a cut may fall into a key or a private passage.
    text = scrub(report, Policy.FULL)
    if len(text) > MAX_REPORT_CHARACTERS:
        text = Scrubbed.trusted(_ends_of(text, MAX_REPORT_CHARACTERS), reason="scrubbed above, and cut")
    # Folders are removed before scrubbing, which would replace a path with a person's name as a whole: the fingerprint
    # must equal that of the hook for failed calls, whatever name was in the path.
    own = strip_private(report)
    failure = read_failure(own if len(own) <= MAX_REPORT_CHARACTERS else _ends_of(own, MAX_REPORT_CHARACTERS))
    lines = scrub(failure.normalised, Policy.FULL).split("\n")
    return text, Failure(read_failure(str(text)).message, "\n".join(map(plain, lines)))


def _ends_of(text: str, most: int) -> str:
    """Return the beginning and the end of a report: the error comes last."""
    # The beginning of a private passage may be missing in the second half.
    return beginning_of(text, most // 2) + "\n…\n" + strip_private(end_of(text, most // 2))


def _exact(store: VaultStore, failure: Failure) -> list[Entry]:
    entries = find_by_fingerprint(store, failure.fingerprint)
    away = (PUT_AWAY_STATUSES - {"resolved"}) | REJECTED_STATUSES
    return [entry for entry in entries if entry.kind == INCIDENT and entry.effective_status not in away]


def _note_of(text: Scrubbed, failure: Failure, helped: Scrubbed) -> tuple[Scrubbed, Scrubbed]:
    """Return title and body of a new incident: the report in a fence, and what helped."""
    title = scrub(failure.message[:TITLE_CHARACTERS] or "A failure", Policy.FULL)
    fence = "```" if "```" not in text else "~~~~"
    report = f"{fence}text\n{text.strip()}\n{fence}\n"
    body = Scrubbed.trusted(report, reason="scrubbed by the caller, in a fence")
    return title, _with_resolution(report, helped) if helped else body


def _with_resolution(body: str, helped: Scrubbed) -> Scrubbed:
    """Return `body` with what helped, before its evidence if there is any."""
    text = strip_evidence(body)
    heading = "" if f"## {RESOLUTION_HEADING}" in text else f"## {RESOLUTION_HEADING}\n\n"
    joined = f"{text.rstrip()}\n\n{heading}{helped}\n{body[len(text) :]}"
    return Scrubbed.trusted(joined, reason="the note's own text, and what was scrubbed")


def _match(entry: Entry, *, exact: bool) -> IncidentMatch:
    _, _, helped = strip_evidence(entry.body).partition(f"## {RESOLUTION_HEADING}")
    return IncidentMatch(entry.path, entry.title, exact, entry.occurrences, helped.strip())
