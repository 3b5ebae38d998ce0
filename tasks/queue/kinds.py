"""The job kinds, their arguments and their limits."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...runtime.errors import MemoryVaultError

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
ArgType = Literal["text", "session", "number", "flag", "paths"]

_SESSION_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_MAX_TEXT = 4096
_MAX_PATHS = 1000


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
    attempts: int
    """After this many failed or crashed attempts the job is dead."""
    backoff_base_seconds: float
    backoff_cap_seconds: float
    concurrency: int
    """How many jobs of this kind may run at once."""
    priority: int
    in_child: bool
    """The handler runs the risky part in a child process group."""
    required: Mapping[str, ArgType]
    optional: Mapping[str, ArgType]

    def backoff_seconds(self, attempt: int, chance: random.Random) -> float:
        """Return the pause after the failed attempt number `attempt` (1, 2, ...): min(cap, base * 2**(n-1)), reduced
        by up to half at random so that jobs which failed together do not return together."""
        pause = min(self.backoff_cap_seconds, self.backoff_base_seconds * 2.0 ** min(attempt - 1, 32))
        return pause * (0.5 + chance.random() / 2)


def _policy(
    kind: str,
    *,
    deadline: float,
    attempts: int = 5,
    backoff: tuple[float, float] = (10, 1800),
    concurrency: int = 1,
    priority: int = 0,
    in_child: bool = False,
    required: Mapping[str, ArgType] | None = None,
    optional: Mapping[str, ArgType] | None = None,
) -> KindPolicy:
    return KindPolicy(
        kind=kind,
        deadline_seconds=deadline,
        attempts=attempts,
        backoff_base_seconds=backoff[0],
        backoff_cap_seconds=backoff[1],
        concurrency=concurrency,
        priority=priority,
        in_child=in_child,
        required=required or {},
        optional={"slot": "text", **(optional or {})},
    )


POLICIES: Mapping[str, KindPolicy] = {
    policy.kind: policy
    for policy in (
        # A live session waits for these.
        # May ask a model: reading takes at most 150 s, asking 280 s.
        _policy("reflect.session", deadline=480, concurrency=2, priority=10, in_child=True,
                required={"session": "session"}),
        _policy("review.apply", deadline=60, priority=10, optional={"path": "text", "decision": "text"}),
        _policy("embed.drain", deadline=600, priority=8, optional={"limit": "number"}),
        _policy("index.reconcile", deadline=300, priority=5, optional={"paths": "paths", "full": "flag"}),
        # Sweeps.
        _policy("spool.ingest", deadline=60, priority=9),
        _policy("recover.orphans", deadline=120, priority=5, optional={"scope": "text"}),
        _policy("inbox.triage", deadline=120),
        _policy("session.cost", deadline=300, priority=-2),
        _policy("memory.import", deadline=120, priority=-2),
        _policy("dashboard.write", deadline=300, priority=-6),
        _policy("incubator.gc", deadline=120, priority=-2),
        _policy("markers.gc", deadline=120, priority=-2),
        _policy("logs.rotate", deadline=60, priority=-2),
        # Long jobs, most of which use the network, which may be down for an evening.
        _policy("research.idea", deadline=600, attempts=8, backoff=(60, 7200), in_child=True,
                required={"slug": "text"}, optional={"pass": "text"}),
        _policy("skills.index", deadline=300, priority=-2, in_child=True),
        _policy("discover.scan", deadline=900, attempts=8, backoff=(60, 7200), priority=-5, in_child=True,
                optional={"source": "text"}),
        _policy("adapt.evaluate", deadline=600, attempts=4, backoff=(60, 7200), priority=-5, in_child=True,
                required={"pattern": "text"}),
        _policy("reflect.corpus", deadline=480, concurrency=1, priority=-10, in_child=True,
                required={"session": "session"}, optional={"identity": "text", "path": "text", "run": "text"}),
        _policy("model.upgrade", deadline=3600, attempts=3, backoff=(60, 3600), priority=-10,
                required={"model": "text"}),
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
    allowed = {**policy.optional, **policy.required}
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
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "flag":
            return isinstance(value, bool)
        case "paths":
            return (
                isinstance(value, list)
                and len(value) <= _MAX_PATHS
                and all(isinstance(path, str) and 0 < len(path) <= _MAX_TEXT for path in value)
            )
