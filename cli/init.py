"""`memory init`: choose the vault, wire the hooks, start the worker, and show a first recall."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from ..console.times import size
from ..hooks.install import HostFileUnwritable, WiringOutcome, file_of, plugin_installed, settings_file_of
from ..hooks.skill import SKILL, has_skill, install_skill, is_wanted, remove_skill, skill_folder
from ..hooks.wiring import CLAUDE, HOSTS, WIRINGS, install_for, needs_renewal, uninstall_for, wired_events
from ..index.client import ServiceUnavailable, ensure_service
from ..index.embedder import DEFAULT_MODEL, model_name
from ..index.model_download import endpoint_of
from ..index.models import is_installed, lacks_only_weights, why_not_loaded
from ..pipelines.discovery import DEFAULT_SOURCES
from ..runtime.background import CannotStart, allow_starts
from ..runtime.errors import (
    IndexUnavailable,
    ModelUnavailable,
    QueueUnavailable,
    SettingsError,
    UsageError,
    VaultUnavailable,
)
from ..runtime.paths import ensure_state
from ..runtime.settings import Settings, compile_snapshot, load_settings
from ..services.active_counts import count_active, count_indexed_entries
from ..services.corpus.backfill import KIND, Plan, Progress, enqueue_corpus
from ..services.corpus.history import (
    HISTORY_DAYS,
    FirstRecall,
    first_recall,
    plan_history,
)
from ..services.discovery.adapting import SOURCES_NOTE, is_confirmed
from ..services.discovery.scan import seed_sources
from ..services.indexing import reconcile_now
from ..services.pausing import how_to_go_on, pause_notice, why_nothing_starts
from ..services.pending_counts import PendingCounts, count_pending
from ..services.stores import vault_store
from ..tasks.queue.enqueue import enqueue, open_ledger, request_indexing
from .context import Context
from .corpus import follow_mining
from .model import KNOWN_MEGABYTES, fetch
from .output import add_json, counted, cut, home_path, note, print_json
from .path_arguments import named_path
from .processes import ensure_worker, stop_replaced
from .settings_file import write_setting
from .terminal import is_agreed, read_choice
from .vault_choice import choose_vault, empty_vault_notice, require_known, require_place, vault_in

EPILOG = """example:
  memory init --yes --vault ~/Obsidian/MemoryVault
  memory init --host claude --host codex
"""

CONSENT = "research.network"
CONSENT_QUESTION = (
    "memory: look up your ideas on Wikipedia, GitHub and Hacker News, and read the links in them? A few words "
    "of each idea, old ones too, then leave this machine; its note lists each request. [y/N] "
)
MODEL_QUESTION = (
    f"memory: download the model that finds notes in other words than yours, {DEFAULT_MODEL}, "
    f"{KNOWN_MEGABYTES[DEFAULT_MODEL]} MB from {{}}? Without it, recall compares words alone. [y/N] "
)
SOURCES_QUESTION = (
    f"memory: read {len(DEFAULT_SOURCES)} public lists on GitHub once a week for new skills "
    f"({', '.join('/'.join(url.split('/')[3:5]) for url in DEFAULT_SOURCES)})? [y/N] "
)
HISTORY_SECONDS = 35.0
"""How long `init` waits for old sessions to be mined; the worker then goes on alone."""
WATCHED_SECONDS = 180.0
"""The same at a terminal, where the user sees a bar and can end the wait by Ctrl-C."""
AGENTS_THAT_READ = ("claude", "codex")
"""Agents that `reflection.miner` accepts, found by their command."""
EXAMPLE_RULE = "From now on, always ship on Tuesday mornings."
EXCERPT_CHARACTERS = 200
Chosen: TypeAlias = "dict[str, str | bool]"
"""Value of each setting that the user has answered for, by its name."""


def folder_named(text: str) -> Path:
    """Return the folder's path. Refuse an empty name, as from an unset variable: `Path("")` is the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty: name the folder MemoryVault/")
    return Path(text)


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory init`."""
    parser.add_argument(
        "--vault",
        type=folder_named,
        help="the folder MemoryVault/ itself (made if it is not there), or one to make it in",
    )
    parser.add_argument(
        "--host",
        action="append",
        choices=HOSTS,
        help="the agent whose hooks are wired; may be repeated (default claude)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask; no consent is given")
    parser.add_argument(
        "--history-days",
        type=int,
        default=HISTORY_DAYS,
        metavar="DAYS",
        help=f"mine the sessions of the last DAYS days, 0 for none (default {HISTORY_DAYS})",
    )
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Set up what is missing; a second run changes nothing."""
    if args.history_days < 0:
        raise UsageError("--history-days is a number of days, 0 for none")
    hosts = args.host or [CLAUDE]
    vault, preview = _tell_plan(args, context, hosts)
    if not args.yes and not agreed():
        note("memory: nothing was changed")
        return 1
    days = args.history_days
    chosen, sources, hub = ({}, None, None) if args.yes else _ask_consents(vault, preview, context, days)
    started = time.monotonic()  # The time that the user takes to answer does not count.
    settings, stopped = _write_settings(vault, chosen, context)
    if sources is not None:
        # An existing note, confirmed or not, answers the next `init`.
        seed_sources(vault_store(settings), confirmed=sources)
    if hub:
        try:
            fetch(DEFAULT_MODEL, Path(settings.state.models), hub)
        except ModelUnavailable as error:
            note(f"memory: {error}; `memory init` goes on without the model")
    hooks = _wire_hosts(hosts, settings)
    plan, has_worker, progress = _first_run(settings, days, quiet=args.json)
    with suppress(IndexUnavailable):
        reconcile_now(settings)
    recalled = first_recall(settings)
    if settings.memory.autostart and why_nothing_starts(settings) is None:
        with suppress(ServiceUnavailable):  # The first prompt tries again; until then keywords answer.
            ensure_service(settings)
    result = {
        "vault": str(settings.vault_path),
        "settings": str(settings.config_file),
        **_hooks_json(hooks, settings),
        "stopped": stopped,
        "worker": has_worker,
        "consents": {"research.network": settings.research.network, "discovery": is_confirmed(settings)},
        "history": _history(plan, progress),
        "recall": _recall_json(recalled),
        "seconds": round(time.monotonic() - started, 1),
    }
    if args.json:
        print_json(result)
    else:
        _report(result, settings, plan, progress, recalled)
    return 0


# Before anything is changed


def _chosen_vault(args: argparse.Namespace, context: Context) -> tuple[Path, str | None]:
    """Return the vault, and how it was chosen, where the user should know."""
    known = context.settings.vault_path
    if args.vault:
        vault = named_path(args.vault)
        return (vault, None) if vault == known else vault_in(vault)
    return (known, None) if known else choose_vault(context, ask=not args.yes and sys.stdin.isatty())


def _tell_plan(args: argparse.Namespace, context: Context, hosts: Sequence[str]) -> tuple[Path, Settings]:
    """Print what will be done; return the vault and the settings as they will be.

    Raises VaultUnavailable if the vault or the state folder cannot be made, or the vault may be unmounted.
    """
    settings = context.settings
    vault, choice = _chosen_vault(args, context)
    require_place("the vault", vault, "name another place with --vault")
    preview = load_settings({**context.env, "MEMORY_VAULT_PATH": str(vault)})
    index_db = Path(preview.state.index_db)
    require_known(vault, index_db)
    emptied = empty_vault_notice(vault, index_db)
    if emptied and not args.yes and not sys.stdin.isatty():
        raise VaultUnavailable(f"{emptied}, or add --yes to start a new vault in it")
    require_place("the state folder", Path(preview.state.root), "name another place with MEMORY_STATE_DIR")
    if choice:
        note(f"memory: {choice}")
    if settings.vault_path not in (None, vault):
        note(f"memory: {_left_notice(settings)}")
    _announce(preview, vault, hosts, args.history_days)
    if emptied:  # Last, so that the user reads it before answering.
        note(f"memory: {emptied}; going ahead starts a new vault in it")
    return vault, preview


def _ask_consents(
    vault: Path, preview: Settings, context: Context, days: int
) -> tuple[Chosen, bool | None, str | None]:
    """Ask all questions before the first change, so that Ctrl-C leaves everything as it was.

    Return the settings to write, whether the sources of skills may be read (None: not asked), and the hub from which to
    download the model.
    """
    settings = context.settings
    chosen: Chosen = {}
    if (reader := _ask_reader(preview, context, days)) is not None:
        chosen["reflection.miner"] = reader
    if CONSENT not in settings.origins:
        chosen[CONSENT] = agreed(CONSENT_QUESTION)
    # The variable wins over the settings file.
    in_force = settings.vault_path if context.env.get("MEMORY_VAULT_PATH", "").strip() else None
    sources = None if ((in_force or vault) / SOURCES_NOTE).exists() else agreed(SOURCES_QUESTION)
    return chosen, sources, _ask_download(preview, context.env)


def _ask_download(settings: Settings, env: Mapping[str, str]) -> str | None:
    """Return the hub from which the user wants the model; None if nothing lacks, or may be downloaded."""
    is_default = model_name(settings.embedding.model) == DEFAULT_MODEL
    if not is_default or not lacks_only_weights(Path(settings.state.models)):
        return None
    try:
        hub = endpoint_of(env)
    except UsageError:
        return None
    return hub if agreed(MODEL_QUESTION.format(hub)) else None


def _ask_reader(settings: Settings, context: Context, days: int) -> str | None:
    """Ask who reads sessions; None if that is set already or no other agent is installed."""
    found = [name for name in AGENTS_THAT_READ if shutil.which(name, path=context.env.get("PATH"))]
    if "reflection.miner" in settings.origins or not found:
        return None
    from ..services.corpus.estimate import model_cost  # imported here: it loads the miner

    plan = plan_history(settings, days)
    tokens = model_cost(plan, settings)[1] // max(len(plan.to_mine), 1)
    cap = settings.reflection.daily_token_cap
    cost = "uses tokens of your plan"
    if tokens:
        cost = f"about {round(tokens, -2):,} tokens a session, by your last {days} days"
    most = f", at most {cap:,} a day" if cap else ""
    lines = "".join(
        f"  {number}  {name} as well, with its own login: finds up to 8 of 10; {cost}{most}\n"
        for number, name in enumerate(found, 2)
    )
    question = (
        "memory: who is to read your sessions for what is worth keeping?\n"
        f"  1  this machine alone: free, nothing leaves it; finds about 6 of 10\n{lines}Which? [1] "
    )
    return ("local", *found)[read_choice(question, len(found) + 1) - 1]


def _left_notice(settings: Settings) -> str:
    """What happens to the vault that was in use until now."""
    vault = home_path(settings.required_vault_path)
    entries = count_indexed_entries(Path(settings.state.index_db))
    held = f" with its {counted(entries, 'note', 'notes')}" if entries else ""
    return (
        f"the previous vault, {vault}, is kept{held}, and so is its state, {home_path(settings.state.root)}; "
        f"none of it is recalled any more; to go back: memory init --vault {shlex.quote(str(settings.vault_path))}"
    )


def _announce(settings: Settings, vault: Path, hosts: Sequence[str], days: int) -> None:
    note(f"memory: the vault is {home_path(vault)}" + ("" if vault.is_dir() else " (it will be made)"))
    for host in sorted(hosts, key=lambda host: host != CLAUDE):
        if host == CLAUDE and plugin_installed(settings):
            note("memory: the hooks come with the Claude Code plugin; those in settings.json, if any, are taken out")
            continue
        wiring = WIRINGS[host]
        file, home = file_of(wiring, settings), wiring.home(settings)
        if wired_events(host, settings) or needs_renewal(host, settings):
            note(f"memory: hooks of ours are in {home_path(file)}; they are brought up to date")
        else:
            how = ", with a copy of it made first" if os.path.exists(file) else " (it will be made)"
            note(f"memory: hooks go into {home_path(file)}{how}")
            if not home.is_dir():
                others = ", ".join(other for other in HOSTS if other != host)
                note(
                    f"memory: {wiring.title} seems not to be installed: {home_path(home)} is not there; "
                    f"`memory init --host NAME` wires another: {others}"
                )
    for host in (*hosts, *_other_skills(hosts, settings)):
        if is_wanted(host, settings):
            note(f"memory: the skill `{SKILL}` goes into {home_path(skill_folder(host, settings))}")
        elif has_skill(host, settings):
            note(f"memory: the skill `{SKILL}` is taken out of {home_path(skill_folder(host, settings))}")
    note(
        f"memory: settings go into {home_path(settings.config_file)}; "
        f"index, queue and logs into {home_path(settings.state.root)}"
    )
    if days and (plan := plan_history(settings, days)).to_mine:
        note(
            f"memory: {counted(len(plan.to_mine), 'session', 'sessions')} of the last {days} days "
            f"({size(plan.bytes)}), to be read on this machine for what you said"
        )
    if paused := pause_notice(settings):
        note(f"memory: {paused}")
    elif settings.memory.autostart:
        note(
            "memory: a background process, the worker, is started; each new session starts it again if it does not run"
        )


# Steps


def _write_settings(vault: Path, chosen: Chosen, context: Context) -> tuple[Settings, list[str]]:
    """Make the vault, the settings file and the state folder.

    Return the settings in force, and the names of processes of the old settings that were stopped.
    """
    settings = context.settings
    try:
        vault.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise VaultUnavailable(
            f"can't make the vault {vault}: {error.strerror}; choose another with --vault"
        ) from error
    before = settings.state if settings.vault_path else None
    for name, value in {"vault.path": str(vault), **chosen}.items():
        section, _, key = name.partition(".")
        write_setting(settings.config_file, section, key, value)
    settings = load_settings(context.env)
    if settings.vault_path != vault:
        note(f"memory: MEMORY_VAULT_PATH is set and overrides the settings file: {settings.vault_path}")
    ensure_state(settings.state)
    allow_starts(settings.state)
    stopped = stop_replaced(before, settings, context.env) if before else []
    if stopped:
        note(f"memory: stopped what ran with the settings before ({' and '.join(stopped)})")
    with open_ledger(settings):
        pass  # This creates queue.db, which hooks never do.
    compile_snapshot(context.env)
    return settings, stopped


def _wire_hosts(hosts: Collection[str], settings: Settings) -> Mapping[str, WiringOutcome]:
    """Install the hooks and the skill for each host; with the plugin, which brings Claude Code's, remove those from its
    settings instead. Raises SettingsError."""
    try:
        done = {
            host: (uninstall_for if host == CLAUDE and plugin_installed(settings) else install_for)(host, settings)
            for host in HOSTS
            if host in hosts
        }
    except HostFileUnwritable as error:
        print(error.by_hand)
        raise
    warnings = [warning for each in done.values() for warning in each.warnings]
    for host in (*hosts, *_other_skills(hosts, settings)):
        if is_wanted(host, settings):
            warnings.append(install_skill(host, settings))
        else:
            remove_skill(host, settings)
    for warning in filter(None, warnings):
        note(f"memory: {warning}")
    return done


def _other_skills(hosts: Collection[str], settings: Settings) -> Iterator[str]:
    """Yield the other hosts whose skill goes, or whose hooks are ours and whose skill comes back: a switch that says
    whether it is wanted was changed."""
    for host in HOSTS:
        with suppress(SettingsError):  # A damaged file of an agent that was not named.
            has = has_skill(host, settings)
            if host not in hosts and is_wanted(host, settings) != has and (has or wired_events(host, settings)):
                yield host


def _first_run(settings: Settings, days: int, *, quiet: bool) -> tuple[Plan, bool, Progress | None]:
    """Queue the index of the files and of skills and the mining of old sessions, start the worker, and wait until the
    sessions are mined. Return the plan, whether the worker runs, and how far it is; None without waiting."""
    request_indexing(settings)
    with suppress(QueueUnavailable):  # The weekly schedule does it anyway.
        enqueue(settings, "skills.index", unique_key="skills.index")
    plan = plan_history(settings, days)
    run_queued = enqueue_corpus(settings, plan) if days else None
    may_work = settings.memory.autostart and why_nothing_starts(settings) is None
    runs = may_work and _worker_runs(settings)
    if run_queued is None or not runs:
        return plan, runs, None
    seconds = HISTORY_SECONDS if quiet or not sys.stderr.isatty() else WATCHED_SECONDS
    return plan, runs, follow_mining(settings, run_queued, seconds, quiet=quiet)


def _worker_runs(settings: Settings) -> bool:
    """Start the worker unless one runs; whether it runs. A failure is only reported."""
    try:
        return ensure_worker(settings)
    except CannotStart as error:
        note(f"memory: {error}; the first hook of a session tries again (`memory doctor`)")
        return False


# The report


def _hooks_json(hooks: Mapping[str, WiringOutcome], settings: Settings) -> dict[str, Any]:
    claude = hooks.get(CLAUDE) or WiringOutcome(settings_file_of(settings), False)
    return {
        "hooks": "plugin" if CLAUDE in hooks and plugin_installed(settings) else str(claude.settings_file),
        "changed": claude.changed,
        "backup": str(claude.backup) if claude.backup else None,
        "hosts": {
            host: {"file": str(each.settings_file), "changed": each.changed}
            for host, each in hooks.items()
            if host != CLAUDE
        },
    }


def _history(plan: Plan, progress: Progress | None) -> dict[str, Any]:
    return {
        "sessions": len(plan.to_mine),
        "bytes": plan.bytes,
        "mined_before": plan.known,
        "mined": progress.mined if progress else 0,
        "failed": progress.failed if progress else 0,
        "cancelled": progress.cancelled if progress else 0,
        "done": not plan.to_mine or (progress is not None and progress.is_done),
    }


def _recall_json(recalled: FirstRecall | None) -> dict[str, Any] | None:
    if recalled is None:
        return None
    hits = [{"path": hit.path, "title": hit.title, "excerpt": hit.excerpt} for hit in recalled.hits]
    return {"question": recalled.question, "asked_for": recalled.note, "hits": hits}


def _report(
    result: Mapping[str, Any], settings: Settings, plan: Plan, progress: Progress | None, recalled: FirstRecall | None
) -> None:
    if result["hooks"] == "plugin":
        print("the hooks come with the plugin")
    else:
        changed = result["changed"] or any(each["changed"] for each in result["hosts"].values())
        print("done: the next session is recorded" if changed else "the hooks are in place already")
    if plan.to_mine:
        paused = why_nothing_starts(settings) is not None
        has_model = is_installed(settings.embedding.model, Path(settings.state.models))
        _tell_history(plan, progress, model=has_model, paused=paused)
    store = vault_store(settings)
    pending = count_pending(store)
    active = count_active(store).in_use
    unread = bool(plan.to_mine) and not (progress is not None and progress.is_done)
    waiting = ", ".join(pending.with_commands()) or ("nothing yet" if unread else "nothing")
    if plan.to_mine or pending.notes or active:  # With an empty vault, the next step says all.
        print(f"{counted(active, 'entry is', 'entries are')} in use; for you to look at: {waiting}")
    if recalled is not None:
        show_first_recall(recalled)
    if off := pause_notice(settings):
        print(f"\nhooks are switched off now: {off}")
    if (missing := why_not_loaded(model_name(settings.embedding.model), Path(settings.state.models))) is not None:
        print(f"\n{missing}")
    print(f"\n{_what_to_do(settings, plan, progress, pending)}")


def _what_to_do(settings: Settings, plan: Plan, progress: Progress | None, pending: PendingCounts) -> str:
    """The next step for the user."""
    if why_nothing_starts(settings) is not None:
        return f"Next: {how_to_go_on(settings)}."
    if plan.to_mine and progress is None:
        return "Next: memory service up, which reads the sessions from before."
    if plan.to_mine and progress is not None and not progress.is_done:
        return "Next: memory review, once the other sessions are mined."
    if pending.with_commands():
        return "Next: memory review, which asks about one after the other."
    if not plan.to_mine and not plan.known:
        return (
            f"Next: in a new session of your agent, type a rule of yours, such as: {EXAMPLE_RULE}\n"
            "Two minutes after your last word there, `memory list` shows it, or `memory review` asks about it."
        )
    return "Next: open a new session of your agent; what you said before comes back where it fits."


def _tell_history(plan: Plan, progress: Progress | None, *, model: bool, paused: bool) -> None:
    if progress is None:
        until = "until memory is switched on" if paused else "for a worker: memory service up"
        print(f"{counted(len(plan.to_mine), 'session waits', 'sessions wait')} {until}")
    elif progress.is_done:
        failed = f", {progress.failed} could not be read" if progress.failed else ""
        cancelled = f", {progress.cancelled} cancelled" if progress.cancelled else ""
        over = progress.sessions - progress.cancelled
        embeds = "; the worker now prepares the notes for recall by meaning" if model else ""
        mined = counted(over, "session from before is mined", "sessions from before are mined")
        print(f"{mined}{failed}{cancelled}{embeds}")
    else:
        print(
            f"{progress.mined} of {progress.sessions} sessions from before are mined; "
            f"the worker goes on (memory jobs list --kind {KIND})"
        )


def show_first_recall(recalled: FirstRecall) -> None:
    """Print the question and the recalled note that it was made from, or that the note was not recalled."""
    print(f"\na question from your own history: {recalled.question}")
    if (hit := recalled.answer) is not None:
        excerpt = cut(hit.excerpt, EXCERPT_CHARACTERS)
        print(f"  | {excerpt}\n  | {hit.path}" + (f", session {hit.session}" if hit.session else ""))
    else:
        print(f"  {recalled.note} should have been recalled, but was not: memory doctor")


def agreed(question: str = "Go ahead? [y/N] ") -> bool:
    """Ask at the terminal; return whether the answer is yes. Raises Interrupted, and UsageError if there is no
    terminal."""
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask at; add --yes (and --vault FOLDER) to go ahead")
    return is_agreed(question)
