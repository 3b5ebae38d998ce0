"""The job kinds, their arguments and their limits."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...runtime.errors import MemoryVaultError

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
ArgType = Literal["text", "session", "flag"]

_SESSION_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_MAX_TEXT = 4096


class ArgsInvalid(MemoryVaultError):
    """The arguments of a job do not fit its kind."""


@dataclass(frozen=True)
class KindPolicy:
    """Limits of one job kind."""

    kind: str
    deadline_seconds: float
    """Time limit of one attempt, after which it has failed and its later effects are dropped. A kind with `in_child`
    ends then, because its child's process group is killed; another runs on until it checks whether it still owns the
    job."""
    attempts: int = 5
    """After this many failed or crashed attempts the job is dead."""
    backoff_base_seconds: float = 10
    backoff_cap_seconds: float = 1800
    concurrency: int = 1
    """How many jobs of this kind may run at once."""
    priority: int = 0
    in_child: bool = False
    """The handler runs the risky part in a child process group."""
    required: Mapping[str, ArgType] = field(default_factory=dict)
    optional: Mapping[str, ArgType] = field(default_factory=dict)
    """Besides `slot`, which every kind may have."""

    def backoff_seconds(self, attempt: int, chance: random.Random) -> float:
        """Return the pause after the failed attempt number `attempt` (1, 2, ...): min(cap, base * 2**(n-1)), reduced
        by up to half at random so that jobs which failed together do not return together."""
        pause = min(self.backoff_cap_seconds, self.backoff_base_seconds * 2.0 ** min(attempt - 1, 32))
        return pause * (0.5 + chance.random() / 2)


POLICIES: Mapping[str, KindPolicy] = {
    policy.kind: policy
    for policy in (
        # A live session waits for these.
        # May ask a model: reading takes at most 150 s, asking 280 s.
        KindPolicy("reflect.session", 480, concurrency=2, priority=10, in_child=True,
                   required={"session": "session"}),
        KindPolicy("review.apply", 60, priority=10),
        KindPolicy("embed.drain", 600, priority=8),
        KindPolicy("index.reconcile", 300, priority=5, optional={"full": "flag"}),
        # Sweeps.
        KindPolicy("spool.ingest", 60, priority=9),
        KindPolicy("recover.orphans", 120, priority=5),
        KindPolicy("inbox.triage", 120),
        KindPolicy("memory.import", 120, priority=-2),
        KindPolicy("dashboard.write", 300, priority=-6),
        KindPolicy("incubator.gc", 120, priority=-2),
        KindPolicy("markers.gc", 120, priority=-2),
        KindPolicy("logs.rotate", 60, priority=-2),
        # Long jobs, most of which use the network, which may be down for an evening.
        KindPolicy("research.idea", 600, attempts=8, backoff_base_seconds=60, backoff_cap_seconds=7200, in_child=True,
                   required={"slug": "text"}),
        KindPolicy("skills.index", 300, priority=-2),
        KindPolicy("discover.scan", 900, attempts=8, backoff_base_seconds=60, backoff_cap_seconds=7200,
                   priority=-5, in_child=True),
        KindPolicy("adapt.evaluate", 600, attempts=4, backoff_base_seconds=60, backoff_cap_seconds=7200,
                   priority=-5, in_child=True, required={"pattern": "text"}),
        # A month behind all others, so that a fresh session never waits for the rest of a backfill.
        KindPolicy("reflect.corpus", 480, priority=-43_200, in_child=True,
                   required={"session": "session", "identity": "text", "path": "text", "run": "text"}),
        KindPolicy("model.upgrade", 3600, attempts=3, backoff_base_seconds=60, backoff_cap_seconds=3600,
                   priority=-10, required={"model": "text"}),
    )
}  # fmt: skip


def validate_args(kind: str, args: object, policies: Mapping[str, KindPolicy] = POLICIES) -> Mapping[str, Json]:
    """Return the arguments if they fit the kind. Raises ArgsInvalid with what does not fit."""
    policy = policies.get(kind)
    if policy is None:
        raise ArgsInvalid(f"no such job kind: {kind!r}")
    if not isinstance(args, dict):
        raise ArgsInvalid(f"{kind}: arguments are not an object")
    if missing := sorted(policy.required.keys() - args.keys()):
        raise ArgsInvalid(f"{kind}: missing {', '.join(missing)}")
    allowed: dict[str, ArgType] = {"slot": "text", **policy.optional, **policy.required}
    for name, value in args.items():
        if name not in allowed:
            raise ArgsInvalid(f"{kind}: unknown argument {name!r}")
        if not _fits(allowed[name], value):
            raise ArgsInvalid(f"{kind}: {name} is not a {allowed[name]}: {str(value)[:80]!r}")
    return args


def _fits(expected: ArgType, value: object) -> bool:
    match expected:
        case "text":
            return isinstance(value, str) and 0 < len(value) <= _MAX_TEXT
        case "session":
            return isinstance(value, str) and _SESSION_ID.fullmatch(value) is not None
        case "flag":
            return isinstance(value, bool)
