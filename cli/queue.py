"""`memory jobs queue`: the queue that several machines share, looked at and set up."""

from __future__ import annotations

import argparse
import getpass
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..console.times import lasting
from ..runtime.errors import MemoryVaultError, QueueUnavailable, UsageError
from ..tasks.shared_queue import NO_CLIENT, is_shared, machine_name
from .context import Context
from .output import add_json, note, print_json, print_table
from .pages import how_to
from .terminal import Interrupted

if TYPE_CHECKING:
    from ..tasks.postgres.status import QueueStatus, SetUp

EPILOG = """example:
  memory jobs queue                       can it be reached, who works, what waits
  memory jobs queue migrate               make its tables, or bring them up to date
  memory jobs queue migrate --as owner    logged in as the role that owns them; its password is asked for
"""

POOLED = "yes: it keeps no session, so jobs are looked for every 5 s"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory jobs queue`."""
    parser.epilog = EPILOG
    parser.add_argument("action", nargs="?", default="status", choices=("status", "migrate"))
    parser.add_argument("--as", dest="role", metavar="ROLE", help="of migrate: log in as this role")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Ask the database; exit code 1 when it cannot be reached or is not ready for this version."""
    if args.role and args.action != "migrate":
        raise UsageError("--as is for migrate")
    settings = context.settings
    if not is_shared(settings):
        raise MemoryVaultError(f"no queue is shared: queue.url is not set (see {how_to('several-machines')})")
    try:
        from ..tasks.postgres import status
    except ImportError:
        raise QueueUnavailable(NO_CLIENT) from None
    if args.action == "status":
        found = status.status_of(settings.queue.url, machine_name(settings))
        if args.json:
            print_json(asdict(found))
        else:
            _print(found, context)
        return 0 if found.schema == found.schema_needed and found.rights and found.rights.works else 1
    try:
        done = status.set_up(settings.queue.url, user=args.role)
    except status.PasswordWanted:
        done = status.set_up(settings.queue.url, user=args.role, password=_asked(args.role))
    if args.json:
        print_json(asdict(done))
    else:
        _print_set_up(done)
    return 0


def _asked(role: str | None) -> str:
    if not sys.stdin.isatty():
        raise QueueUnavailable("the server wants a password: put it into ~/.pgpass")
    try:
        return getpass.getpass(f"password of {role or 'the role'} in the shared queue: ")
    except KeyboardInterrupt:
        note("")
        raise Interrupted from None


def _print(found: QueueStatus, context: Context) -> None:
    settings = context.settings
    machine = machine_name(settings)
    print(f"queue        {found.where}, PostgreSQL {found.server}, {found.milliseconds:.1f} ms away")
    print(f"encrypted    {'yes (TLS)' if found.encrypted else 'no'}")
    if found.pooled:
        print(f"pooler       {POOLED}")
    print(f"role         {found.role}{_told(found)}")
    print(f"schema       {found.schema}{_behind(found)}")
    shares = settings.queue.share or "nothing"
    print(f"this machine {machine}; shares {shares}; {'works' if settings.queue.work else 'does not work'} for others")
    if found.rights is None or not found.rights.works:
        return
    print(f"waits        {found.addressed} results for it, {found.away} of its contents ({found.away_bytes:,} bytes)")
    print()
    if found.jobs:
        print_table(("kind", "state", "jobs"), found.jobs)
    else:
        print("no job waits, runs or is dead")
    print()
    if found.workers:
        print_table(
            ("machine", "version", "last beat"),
            [(each.machine, each.version, f"{lasting(each.silent_seconds)} ago") for each in found.workers],
        )
    else:
        print("no worker has joined")


def _told(found: QueueStatus) -> str:
    if found.rights is None:
        return ""
    if found.rights.superuser:
        return ", a superuser: machines should have roles of their own (memoryvault_worker)"
    if found.rights.owns:
        return ", owns the tables: machines should have roles of their own (memoryvault_worker)"
    return "" if found.rights.works else ", which may not work here: GRANT memoryvault_worker TO it"


def _behind(found: QueueStatus) -> str:
    if found.schema > found.schema_needed:
        return f", newer than this MemoryVault knows ({found.schema_needed}): update it"
    if found.schema < found.schema_needed:
        return f", {found.schema_needed} is needed: `memory jobs queue migrate`"
    return ""


def _print_set_up(done: SetUp) -> None:
    print(f"{done.where}: schema {done.version}{'' if done.reached else ', nothing to do'}")
    if done.has_worker_role:
        print(
            "the role memoryvault_worker has its rights; give each machine one of its own, as in\n"
            "  CREATE ROLE laptop LOGIN PASSWORD '…' IN ROLE memoryvault_worker;"
        )
    else:
        print(
            f"{done.role} may not make roles: let an administrator run CREATE ROLE memoryvault_worker NOLOGIN, "
            "then this once more"
        )
