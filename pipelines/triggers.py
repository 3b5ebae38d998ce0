"""Compile a rule into triggers: the commands, files and names that it speaks of, from its own words. Pure.

`hooks/action_match.py` looks for triggers in tool calls. Names of programs, package managers and file kinds are data
(`trigger_words.json`). A word that may also mean something else ("weak" there) counts only in a ban, or where the
rule's channel is `action`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..vault.core import is_ban

WORDS_FILE = Path(__file__).with_name("trigger_words.json")
MOST_TRIGGERS = 40
"""Most triggers of each kind of one rule; the first ones come from its own words."""
MOST_CHARACTERS = 1_500
"""Characters of a rule that are read."""


@dataclass(frozen=True)
class Triggers:
    """The triggers of a rule.

    Commands are words of a command line, the program first. Paths are names, `folder/` or patterns with `*`, with or
    without folders before them. Words and texts are in a command or in new text of a file.
    """

    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """As they stand in code, in lower case (".wait", "select *")."""
    reads: bool = False
    """Whether commands that only read match, too."""
    places: tuple[str, ...] = ()
    """Branches ("branch main") and environments ("production") that the rule is about: a call that names others alone
    is not meant."""

    def __bool__(self) -> bool:
        return bool(self.all)

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.commands, *self.paths, *self.words, *self.texts)


@dataclass(frozen=True)
class _Concept:
    pattern: re.Pattern[str]
    near: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    weak: bool
    unnamed: bool
    """Only for sentences that name no file."""
    then: tuple[str, ...]


@dataclass(frozen=True)
class _Vocabulary:
    programs: frozenset[str]
    ambiguous: frozenset[str]
    """Programs whose names are English words."""
    subcommands: Mapping[str, frozenset[str]]
    rivals: tuple[frozenset[str], ...]
    goes_with: Mapping[str, tuple[str, ...]]
    installs: tuple[str, ...]
    concepts: tuple[_Concept, ...]
    file_names: frozenset[str]
    extensions: frozenset[str]
    folders: frozenset[str]
    libraries: frozenset[str]
    languages: frozenset[str]
    """Programs whose capitalised names are languages."""
    language_files: Mapping[str, str]
    """The extension of a language's files."""
    no_folder_names: frozenset[str]


@functools.cache
def _vocabulary() -> _Vocabulary:
    data: dict[str, Any] = json.loads(WORDS_FILE.read_text("utf-8"))

    def compiled(one: Mapping[str, Any], key: str) -> re.Pattern[str] | None:
        flags = 0 if one.get("case") else re.IGNORECASE
        return re.compile(rf"(?<![\w./-])(?:{one[key]})(?![\w/]|[.-]\w)", flags) if key in one else None

    concepts = []
    for one in data["concepts"]:
        pattern = compiled(one, "if")
        assert pattern is not None
        near, unless = compiled(one, "near"), compiled(one, "unless")
        concepts.append(_Concept(pattern, near, unless, bool(one.get("weak")), "unnamed" in one, tuple(one["then"])))
    return _Vocabulary(
        programs=frozenset(data["programs"].split()),
        ambiguous=frozenset(data["programs_that_are_words"].split()),
        subcommands={name: frozenset(words.split()) for name, words in data["subcommands"].items()},
        rivals=tuple(map(frozenset, data["one_of_each"])),
        goes_with={name: tuple(names) for name, names in data["goes_with"].items()},
        installs=tuple(data["install_commands"]),
        concepts=tuple(concepts),
        file_names=frozenset(data["file_names"].split()),
        extensions=frozenset(data["extensions"].split()),
        folders=frozenset(data["folders"].split()),
        libraries=frozenset(data["libraries"].split()),
        languages=frozenset(data["languages"].split()),
        language_files=data["language_files"],
        no_folder_names=frozenset(data["no_folder_names"].split()),
    )


_TOKEN = re.compile(r"[^\s,;()\[\]{}\"“”„]+")
_CODE = re.compile(r"`([^`\n]{1,120})`")
_URL = re.compile(r"\b[a-z]+://\S+", re.I)
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|\n+")
_NO_APOSTROPHE = re.compile(r"\b(do|does|must|should|ca|wo|is|are)nt\b", re.I)
_NEGATED = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bno|\bnobody|\binstead of|\brather than|\bwithout|\bavoid|\banything but|\bdrop|\bstop)"
    r"(?:\W+[\w'’/-]+){0,5}\W*$",
    re.I,
)
_GONE = re.compile(r"^\W*(?:is|are|was)\s+(?:not|no longer|gone|banned|out|deprecated|forbidden|removed)\b", re.I)
_WANTED = re.compile(
    r"\b(?:us(?:e|es|ing)|with|via|through|prefer|only|by|run|need|in the|to)(?:\W+[\w-]+){0,2}\W*$", re.I
)
_LEFT = re.compile(r"\bfrom\W*$", re.I)
_LEFT_FOR = re.compile(r"\W*(?:over\s+)?to\b", re.I)
"""Around what was left for something else: "moved from X to Y"."""
_NOT_AN_ORDER = re.compile(
    r"\b(?:never|no|nobody|none|without|avoid|stop|ask|before|after|until|unless|except|when(?:ever)?|if)\b|n['’]t\b"
    r"|(?<!, )\bnot\b|\bnot\b(?!\W+\S+$)|\bonly\b(?:\s+\S+){0,3}?\s+(?:for|in|on|from|at|against)\b",
    re.I,
)
"""Forbids, asks, or says when; any other sentence says what to do."""
_MANNER = re.compile(r"\W*(?:only\s+)?(?:with|via|through|against)\b|\W*-|:", re.I)
"""Right behind a name, it says how to use it: a call with the name may be one that does otherwise."""
_ALLOWED = re.compile(r"\b(?:may|can|could|allowed to)\b", re.I)
_EDIT = re.compile(r"\b(?:touch|edit|modify|change)\b", re.I)
_EXCEPT = re.compile(r"\b(?:outside(?: of)?|except(?: for| in)?|other than|not in|anywhere but)\W+(?:\w+\W+)?$", re.I)
_AS_PROGRAM = re.compile(
    r"(?:\b(?:us(?:e|es|ing)|run(?:s|ning)?|with|via|call|execut\w+|instead of|command)\s+(?:the\s+)?)$",
    re.I,
)
_PLACE = re.compile(
    r"\b(?:in|into|inside|below|under|to|from|touch|edit|modify|read|change|folder|directory|file|of|at|the)\W+$",
    re.I,
)
_IDENTIFIER = re.compile(
    r"[a-z]+\d?[A-Z]\w*|[A-Za-z]\w*_\w+|(?:[A-Z][a-z]+){3,}|[A-Za-z]\w*(?:\.[A-Za-z]\w+)+|[a-z]{2,}\d+"
)
_CALLED = re.compile(r"\((?!(?:e?s|n|r)\))")
"""Right behind a name, it makes it one in code ("collect()", "eval(")."""
_LITERAL = re.compile(r"[.$@!:\\][A-Za-z][\w-]+|__\w+__|[\w.-]+=[\w.-]+|--[a-z][\w-]+")
"""Names with a sign that belongs to code (".Result", ":latest", "$where", "verify=False", "--legacy-peer-deps")."""
_STARRED = re.compile(r"(?<![\w.])[A-Z]{3,}(?: [A-Z]{2,})* \*")
"""Words of a query language in capitals, with a star ("SELECT *", "KEYS *")."""
_CAPITALISED = re.compile(r"[A-Z][A-Za-z]*[a-z][A-Za-z]*\d*")
_ALL_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]{3,}")
_BEFORE_OTHERS = re.compile(r"\W*(?:and |but )?(?:instead of|rather than|not|never)\b", re.I)
"""Follows the name that is wanted, before those that are not: a call with it obeys the rule."""
_HOME = re.compile(
    r"\b(?:put|goes?|go|belongs?|move|place|keep|save|store|live|lives|write)\b(?:\W+[\w'’-]+){0,3}?"
    r"\W+(?:in|into|to|under|below|inside)\W+(?:the\s+)?$",
    re.I,
)
"""Before the place where something is to be put."""
_LABEL = re.compile(r"\s*(?:in |for )?([\w+#.-]+)(?: [\w+#.]+)?:\s+", re.I)
"""Heads a rule and says for what it holds ("terraform:", "In Go:")."""
_FOLDER = re.compile(r"(?<![\w/.~-])([A-Za-z][\w-]+) (?:folder|director(?:y|ies)|dir)\b")
_PORT = re.compile(r"\bports?\s+(?:is\s+|number\s+)?(\d{4,5})\b|\blocalhost:(\d{4,5})\b", re.I)
_STATEMENT = re.compile(r"\b(?:CREATE|DROP|ALTER|TRUNCATE|DELETE)\s+(?:TABLE|DATABASE|SCHEMA|FROM)\b")
_INSTEAD = re.compile(
    r"[,;](?![^.;:\n]*\bor\b)(?: and| but)?(?: always| please| just| instead)* (?:make|use|run|create|open|put|keep"
    r"|write|go|call|install|start|add|send|move|branch|work)\b[^.;:\n]*",
    re.I,
)
"""What a ban asks for in place of what it forbids; with an "or" it is rather one more of what is forbidden."""
_READS = re.compile(r"\b(?:read|look|open|access|see|print|show|cat|leak|know|secrets?|keys?)\b|\.env\b", re.I)
_FLAG = re.compile(r"-\d|--?[A-Za-z](?:[\w-]*\w)?")
_FORBIDDEN_FLAG = re.compile(
    rf"(?:\bnever|\bnot|n['’]t|\bno)\b(?P<between>[^,;]*?)\s`?(?P<flag>{_FLAG.pattern})(?![\w-])", re.I
)
_BUT = re.compile(r"\b(?:but|except|unless|without|only|instead)\b", re.I)
_TO_BRANCH = re.compile(
    r"(?:\bnever|\bnot|n['’]t|\bno|\bnobody)\b(?P<between>[^.;:]{0,40}?\bpush\w*[^.;:,]{0,20}?)\s(?:to|on|onto|into)\s+"
    r"(?:the\s+)?"
    r"(?P<branches>(?:[`'\"]?\b(?:main|master|trunk|develop|production)\b[`'\"]?(?:\s*(?:,|/|or|and)\s*(?:to\s+)?)?)+)",
    re.I,
)
_PUSH = re.compile(r"\bpush", re.I)
_ENVIRONMENT = re.compile(r"(?<![\w./-])(prod(?:uction)?|staging)(?![\w/]|[.-]\w)", re.I)
_NOT_ALONE = re.compile(r"\b(?:only|except|unless|but|outside|instead|other than|before|after|until)\b", re.I)
_AND_OR = frozenset({"and/or", "he/she", "yes/no", "n/a", "i/o", "ci/cd", "tcp/ip", "w/o", "a/b"})


def compile_triggers(
    rule: str, *, channel: str = "prompt", named: Iterable[str] = (), guards: bool = False
) -> Triggers:
    """Return the triggers of a rule. `channel`: the reader's opinion, one of `vault.entry.CHANNELS`; `named`: triggers
    that the note gives itself and that replace all others; `guards`: without what a call follows the rule with."""
    text = _NO_APOSTROPHE.sub(r"\1n't", _URL.sub(" ", rule[:MOST_CHARACTERS]))
    if is_ban(text):
        text = _INSTEAD.sub("", text)
    strict = channel != "action" and not is_ban(text) and not re.search(r"\bask\b", text, re.I)
    found: dict[str, str] = {}
    for one in named:
        found.setdefault(one.strip(), _kind_of(one.strip()))
    if not named:
        for part in (without_label, text) if (without_label := _without_label(text)) else (text,):
            mentions = [_Mentions(sentence) for sentence in _SENTENCE_END.split(part) if sentence.strip()]
            _add_mentions(found, mentions, guards)
            _add_concepts(found, mentions, strict, guards)
            if found:
                break
    commands, paths, words, texts = (
        tuple(trigger for trigger, kind in found.items() if kind == wanted)[:MOST_TRIGGERS]
        for wanted in ("command", "path", "word", "text")
    )
    return Triggers(commands, paths, words, texts, bool(_READS.search(text)), _places_of(text))


def _without_label(text: str) -> str:
    """Return what follows the name of a program or language that heads the rule ("terraform: …"); '' without one.

    A subcommand of the program gets its name: of "terraform: never apply" `terraform apply` is what counts.
    """
    known, match = _vocabulary(), _LABEL.match(text)
    name = match[1].lower() if match else ""
    if match is None or name not in known.programs | known.libraries | known.languages | known.language_files.keys():
        return ""
    rest = text[match.end() :]
    subcommands = "|".join(map(re.escape, known.subcommands.get(name, ())))
    return re.sub(rf"(?<![\w-])({subcommands})(?![\w-])", rf"{name} \1", rest) if subcommands else rest


def _places_of(text: str) -> tuple[str, ...]:
    """Return the branches and environments that a ban is about."""
    places = []
    matches = [*_TO_BRANCH.finditer(text)]
    for match in matches if len(matches) == len(_PUSH.findall(text)) else ():  # Else it forbids other pushes, too.
        if not _NOT_ALONE.search(match["between"]):
            places += [f"branch {name}" for name in re.findall(r"[a-z]+", match["branches"].lower()) if len(name) > 3]
    if is_ban(text) and not _NOT_ALONE.search(text):
        places += ["production" if name[0] in "pP" else "staging" for name in _ENVIRONMENT.findall(text)]
    return tuple(dict.fromkeys(places))


class _Mentions:
    """The programs and libraries (wanted, forbidden or other), paths and identifiers that a sentence names."""

    def __init__(self, sentence: str) -> None:
        self.text = sentence
        self.forbidden: list[str] = []
        self.wanted: list[str] = []
        self.other: list[str] = []
        self.paths: list[str] = []
        self.homes: list[str] = []
        """Places where something is to be put."""
        self.words: list[str] = []
        self.texts: list[str] = []
        self.is_order = _NOT_AN_ORDER.search(sentence) is None
        self.followed: set[str] = set()
        """What it wants: a call with it follows the sentence."""
        self._forbids_edits = _EDIT.search(sentence) is not None and is_ban(sentence)
        forbidden = _FORBIDDEN_FLAG.search(sentence)
        self.flag = forbidden["flag"] if forbidden and not _BUT.search(forbidden["between"]) else ""
        """An option that the sentence forbids; "" for none."""
        code = {match.start(1): match[1] for match in _CODE.finditer(sentence)}
        at_code = [(start, start + len(text)) for start, text in code.items()]
        for start, text in code.items():
            self._add_code(text, sentence[:start], sentence[start + len(text) :])
        for match in _TOKEN.finditer(sentence):
            if not any(start <= match.start() < end or start == match.start() + 1 for start, end in at_code):
                self._add_token(match, sentence)
        for folder in _FOLDER.finditer(sentence):
            if folder[1].lower() not in _vocabulary().no_folder_names and not _EXCEPT.search(
                sentence[: folder.start()]
            ):
                self.paths.append(f"{folder[1]}/")
        for port in _PORT.finditer(sentence):
            self.words.append(port[1] or port[2])
        for pattern in (_STATEMENT, _STARRED):
            self.texts += [" ".join(match[0].lower().split()) for match in pattern.finditer(sentence)]

    def _add_code(self, text: str, before: str, after: str) -> None:
        words = text.split()
        program = words[0].rsplit("/", 1)[-1] if words else ""
        known = _vocabulary()
        if program in known.programs or program in known.ambiguous:
            self._add_name(_command_of(words)[0], before, after)
        elif len(words) == 1 and (path := _path_of(text, sure=True)):
            self._add_path(path, before)
        elif len(words) == 1 and re.fullmatch(r"[\w.-]{3,}(?:\(\))?", text) and (len(text) > 3 or not text.isalpha()):
            self._add_name(text.removesuffix("()"), before, after)
        elif len(text) > 2 and re.search(r"\w{2}", text):
            self.texts.append(" ".join(words).lower())

    def _add_token(self, match: re.Match[str], sentence: str) -> None:
        token = match[0].strip("*_'’‘.:!?<>") if not match[0].startswith((".", "*")) else match[0].rstrip("'’.:!?>")
        before, after = sentence[: match.start()], sentence[match.end() :]
        known = _vocabulary()
        lower = token.lower()
        if not token:
            return
        following = _TOKEN.findall(after)[:3]
        if _CALLED.match(after) and re.fullmatch(r"\.?[A-Za-z][\w.]{2,}", match[0]):
            self.texts.append(f"{lower}(")
            return
        if path := _path_of(token, sure=bool(_PLACE.search(before))):
            self._add_path(path, before)
            if path[0] == "." and "/" not in path:
                self._add_path(f"*{path}", before)
            return
        if is_ban(sentence) and _LITERAL.fullmatch(raw := match[0].rstrip("'’.:!?")) and not raw.isupper():
            self.texts.append(raw.lower())
            return
        subcommands = known.subcommands.get(lower, frozenset())
        has_sub = bool(following) and following[0].rstrip(".:!?") in subcommands
        if lower in known.languages and token != lower and not _near_negation(before):
            return
        if lower in known.programs or (lower in known.ambiguous and token == lower and before.strip()):
            is_sure = lower in known.programs and lower not in known.ambiguous
            previous = before.rsplit(None, 1)[-1:]
            if previous == ["sudo"]:
                return  # Said together with it.
            if is_sure or has_sub or (following and following[0].startswith("-")) or _AS_PROGRAM.search(before):
                if lower == "git" and not has_sub:
                    return
                name, used = _command_of([lower, *following])
                for word in following[:used]:
                    after = after.partition(word)[2]
                self._add_name(name, before, after)
        elif lower in known.libraries or (lower in known.language_files and _near_negation(before)):
            self._add_name(lower, before, after)
        elif self._forbids_edits and lower in known.folders and _PLACE.search(before):
            self._add_path(f"{token}/", before)
        elif _IDENTIFIER.fullmatch(token) and len(token) > 2:
            if _BEFORE_OTHERS.match(after):
                return
            if self._forbids_edits and re.fullmatch(r"[\w-]+\.[a-z]{1,5}", token):
                self._add_path(token, before)  # A file of a kind that nobody listed.
                return
            self.words += _singular_too(token)
            if self.is_order and _WANTED.search(before) and not _MANNER.match(after):
                self.followed.update(_singular_too(token))
            if self._forbids_edits and "_" in token:
                self._add_path(f"{token}/", before)  # "third_party is vendored, don't touch it."
            if _IDENTIFIER.fullmatch(last := token.rpartition(".")[2]):
                self.words.append(last.lower())
            if re.fullmatch(r"[a-z]{3,}\d+", token):
                self.paths.append(token)
        elif (_CAPITALISED.fullmatch(token) and before.strip() and _near_negation(before)) or (
            # "NEVER PUSH" is only loud.
            _ALL_CAPITALS.fullmatch(token)
            and _near_negation(before)
            and not before.isupper()
            and not after.startswith(" *")
        ):
            self.forbidden += _singular_too(token)

    def _add_name(self, name: str, before: str, after: str) -> None:
        if self.flag and " -" not in name and (" " in name or name in _vocabulary().programs):
            name = f"{name} {self.flag}"
        clause = re.split(r",|;|\bbut\b|\band\b(?= (?:use|run)\b)", before)[-1]
        is_left = self.is_order and _LEFT.search(before) and _LEFT_FOR.match(after)
        if is_left or _GONE.search(after) or _NEGATED.search(clause):
            self.forbidden.append(name)
        elif _ALLOWED.search(clause) and is_ban(self.text):
            self.other.append(name)  # "You may run X in dev, but never in prod."
        elif (
            _WANTED.search(clause)
            or re.match(r"\W*(?:instead of|rather than|not\b|only\b)", after)
            or "use" in clause[:6].lower()
        ):
            self.wanted.append(name)
            if self.is_order and not _MANNER.match(after):
                self.followed.add(name)
        else:
            self.other.append(name)

    def _add_path(self, path: str, before: str) -> None:
        if not _EXCEPT.search(before):
            is_home = _HOME.search(before) is not None and _NEGATED.search(before) is None
            (self.homes if is_home else self.paths).append(path)


def _singular_too(name: str) -> list[str]:
    """Return a name in code in lower case, and of a plural ("NgModules") also the singular."""
    lower = name.lower()
    is_plural = re.fullmatch(r"\w+[a-z][A-Z]\w*[a-rt-z]s", name) is not None
    return [lower, lower[:-1]] if is_plural else [lower]


def _near_negation(before: str) -> bool:
    negation = r"(?:\b(?:not|never|instead of|rather than|no|without)|n['’]t use)"
    more = r"(?:\S+?(?:,|\s+(?:or|and|nor))\s+(?:no\s+)?){0,3}"
    return re.search(rf"{negation}\s+(?:(?:use|on|in|to|with|by)\s+)?(?:the\s+)?{more}$", before, re.I) is not None


def _add_mentions(found: dict[str, str], mentions: Sequence[_Mentions], guards: bool) -> None:
    known = _vocabulary()
    forbidden = [name for one in mentions for name in one.forbidden]
    wanted = [name for one in mentions for name in one.wanted]
    left_out = {name for one in mentions for name in one.followed} if guards else set()
    # Of "not pandas. Polars here" the second is wanted, as the first is forbidden.
    sorts = {sort for name in forbidden for sort in _sorts_of(name)}
    orders = {
        n for one in mentions if one.is_order for n in (*one.other, *one.words) if not sorts.isdisjoint(_sorts_of(n))
    }
    other = [name for one in mentions for name in one.other if name not in orders]
    keep_apart = {name.partition(" ")[0] for name in wanted}
    for name in forbidden:
        program = name.partition(" ")[0]
        _add_named(found, name)
        if name in known.language_files.keys() - known.programs:
            found.setdefault(f"*.{known.language_files[name]}", "path")
        for more in known.goes_with.get(program, ()) if program == name else ():
            if more not in keep_apart:
                _add_named(found, more)
    for name in wanted:
        rivals = next((group for group in known.rivals if name.partition(" ")[0] in group), frozenset())
        if forbidden:
            continue
        if not rivals and name not in left_out:
            _add_named(found, name)
        for rival in sorted(rivals - keep_apart):
            _add_named(found, rival)
        for more in known.goes_with.get(name.partition(" ")[0], ()) if rivals else ():
            _add_named(found, more)
    for name in other:
        _add_named(found, name)
    # Of "keep scripts out of src/, put them into tools/" only the first place is what it forbids.
    homes = [path for one in mentions for path in one.homes if not (guards and one.is_order)]
    for path in [path for one in mentions for path in one.paths] or homes:
        found.setdefault(path, "path")
    # "Never call collect(). Use take() or show()."
    bans = [one for one in mentions if (one.words or one.texts) and is_ban(one.text)] or mentions
    for word in sorted({word for one in bans for word in one.words} - left_out - orders):
        found.setdefault(word, "word")
    for text in [text for one in bans for text in one.texts]:
        found.setdefault(text, "text")


def _sorts_of(name: str) -> set[object]:
    """Return sorts of names, one of which two names share if one can stand for the other: its rivals; a library, a
    program, with or without a subcommand."""
    known, program = _vocabulary(), name.partition(" ")[0]
    alike = (name in known.libraries, program in known.programs | known.ambiguous, " " in name)
    return {alike, *(group for group in known.rivals if program in group)}


def _add_named(found: dict[str, str], name: str) -> None:
    known = _vocabulary()
    program = name.partition(" ")[0]
    if program in known.programs or program in known.ambiguous:
        found.setdefault(name, "command")
    if (program not in known.programs or name in known.libraries) and " " not in name:
        found.setdefault(name, "word")


def _add_concepts(found: dict[str, str], mentions: Sequence[_Mentions], strict: bool, guards: bool) -> None:
    known = _vocabulary()
    for one_sentence in mentions:
        sentence = one_sentence.text
        called = {
            name.partition(" ")[0] for name in (*one_sentence.forbidden, *one_sentence.wanted, *one_sentence.other)
        }
        for concept in known.concepts:
            if (concept.weak and strict) or (concept.unnamed and (one_sentence.paths or one_sentence.homes)):
                continue
            match = concept.pattern.search(sentence)
            if match is None or match[0].lower() in called:  # A program that is called is no kind of file.
                continue
            if concept.near is not None and concept.near.search(concept.pattern.sub(" ", sentence)) is None:
                continue
            if concept.unless is not None and concept.unless.search(sentence) is not None:
                continue
            ways = [each for one in concept.then for each in (known.installs if one == "@install" else (one,))]
            # "Deploy with fly": of the ways to do it only that one, and of the program only that.
            done_with = [one for one in ways if " " in one and one.partition(" ")[0] in called]
            if guards and not one_sentence.followed.isdisjoint(
                {*done_with, *(one.partition(" ")[0] for one in done_with)}
            ):
                continue
            for one in done_with:
                found.pop(one.partition(" ")[0], None)
            for one in done_with or ways:
                has_flag = one_sentence.flag and " " in one and " -" not in one
                found.setdefault(f"{one} {one_sentence.flag}" if has_flag else one, _kind_of(one))
        # "Migrations belong into db/migrations" is about every folder of that name.
        for path in [path for path, kind in found.items() if kind == "path" and "/" in path.strip("/")]:
            last = path.strip("/").rsplit("/", 1)[-1]
            if (
                "*" not in last
                and "." not in last
                and re.search(rf"(?<![\w/]){re.escape(last)}(?![\w/])", sentence, re.I)
            ):
                found.setdefault(f"{last}/", "path")


def _kind_of(trigger: str) -> str:
    """Return the kind of a trigger by its form: command, path, word or text."""
    known = _vocabulary()
    program = trigger.partition(" ")[0]
    if _STATEMENT.fullmatch(trigger.upper()):
        return "text"
    if " " in trigger or program in known.programs:
        return "command"
    if "/" in trigger or "*" in trigger or trigger.startswith(".") or trigger in known.file_names:
        return "path"
    stem, _, extension = trigger.rpartition(".")
    if stem and extension in known.extensions:
        return "path"
    return "command" if program in known.ambiguous else "word"


def _command_of(words: Sequence[str]) -> tuple[str, int]:
    """Return the program with its subcommand, the flags after it and the words up to a flag; and how many words after
    the program these are."""
    known = _vocabulary()
    program = words[0].rsplit("/", 1)[-1].lower()
    kept = [program]
    bare = [word.strip("`'\"").rstrip(".:!?") for word in words]
    for at in range(1, min(len(words), 4)):
        word, is_flagged = bare[at], at + 1 < len(words) and _FLAG.fullmatch(bare[at + 1]) is not None
        is_known = (
            _FLAG.fullmatch(word) is not None
            or (at == 1 and word in known.subcommands.get(program, frozenset()))
            or (at == 1 and program == "sudo" and word in known.programs)
        )
        if is_known or (len(kept) > 1 and is_flagged and word.isalpha() and word.islower()):
            kept.append(word)
        else:
            break
    return " ".join(kept), len(kept) - 1


def _path_of(token: str, *, sure: bool) -> str:
    """Return `token` as a trigger for paths; '' if it is none. `sure`: the words before it announce a place."""
    known = _vocabulary()
    token = token.strip("`'\"").removeprefix("@")
    token = token.removeprefix("./").replace("\\", "/")
    if token.lower() in _AND_OR or "//" in token or len(token) > 200 or not re.search(r"[A-Za-z]", token):
        return ""
    if "/" in token:
        segments = [segment for segment in token.split("/") if segment not in ("", "**", "~", "..")]
        if not segments or not all(re.fullmatch(r"[\w.@*\-+~ ]+", segment) for segment in segments):
            return ""
        is_place = token.endswith("/") or token[0] in "./~" or any("." in one or "*" in one for one in segments)
        if not (is_place or segments[0].lower() in known.folders or (sure and len(token) > 4)):
            return ""
        return "/".join(segments) + ("/" if token.endswith(("/", "/**")) else "")
    if token in known.file_names:
        return token
    stem, dot, extension = token.rpartition(".")
    if dot and extension in known.extensions and stem not in ("e.g", "i.e") and token.lower() not in known.libraries:
        # `.proto` and `*.proto` mean all such files, `.env` is a name.
        return f"*.{extension}" if stem in ("", "*") and extension != "env" else token
    if token.startswith(".") and re.fullmatch(r"\.[a-z][\w.-]+", token):
        return token
    return token if "*" in token and re.fullmatch(r"[\w.*-]{3,}", token) else ""
