"""Find the rules that concern a tool call, by looking up their compiled triggers. Light module, without `re`.

The compiled file (`services/action_index.py`) has the triggers in its first line, as JSON: by program, by name of a
file or folder, by extension, by word. Each further line is one rule, and is only parsed when it matches.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

MOST_COMMAND_CHARACTERS = 20_000
MOST_TEXT_CHARACTERS = 60_000
"""Most characters of a file's new text that are searched."""
DEPTH = 2
"""How many levels of `sh -c '…'` are searched."""
_BEFORE_PROGRAM = frozenset(("sudo", "env", "nohup", "time", "exec", "command", "xargs", "nice", "doas", "timeout"))
_RUNNERS = frozenset(("npx", "bunx", "uvx", "pnpx"))
_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "fish"))
_READING = frozenset(
    """
    cat head tail less more grep rg ack ag ls find fd wc jq yq diff stat file tree echo printf cd pwd which type sort
    uniq cut awk sed bat test true
    """.split()  # noqa: SIM905  a list of literals would take a page
)
_RUNS_TEXT = frozenset(
    """
    psql mysql sqlite3 mongosh mongo duckdb python python3 node ruby perl php osascript clickhouse-client
    """.split()  # noqa: SIM905  as above
)
_GIT_READING = frozenset(("log", "diff", "show", "blame", "status", "grep", "ls-files"))
_SEPARATORS = frozenset(("&&", "||", ";", "|", "&", "\n", "(", ")", "{", "}", "|&", "!", "then", "do", "else"))
_BREAKS = dict.fromkeys(map(ord, "\n\t\r()[]{}<>,;:'\"`=+*/\\|&!?#%^~"), " ")


def match_call(index: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the rules whose triggers are in the call, ascending.

    `index`: the first line of the compiled file.
    """
    found: set[int] = set()
    command = arguments.get("command")
    if tool == "Bash" and isinstance(command, str):
        _match_command(index, command[:MOST_COMMAND_CHARACTERS], found, DEPTH)
    paths = arguments.get("file_paths")  # Of a patch.
    for path in (arguments.get("file_path"), arguments.get("notebook_path"), *(paths if type(paths) is list else ())):
        if isinstance(path, str):
            _match_path(index, path, found, reads=False, is_file=True)
    for key in ("new_string", "content", "new_source"):
        text = arguments.get(key)
        if isinstance(text, str) and index["w"]:
            _match_words(index["w"], text[:MOST_TEXT_CHARACTERS].lower().translate(_BREAKS).split(" "), found)
    return sorted(found)


def _match_command(index: Mapping[str, Any], command: str, found: set[int], depth: int) -> None:
    simple = [*split_commands(command)]
    programs = {words[0].rsplit("/", 1)[-1] for words, _ in simple if words}
    if not programs.isdisjoint(_RUNS_TEXT):
        lower = " ".join(command.lower().split())
        found.update(
            rule for phrase, rules in index["w"].items() if " " in phrase and phrase in lower for rule in rules
        )
    for words, targets in simple:
        words = _without_prefixes(words)
        for target in targets:
            _match_path(index, target, found, reads=False)
        if not words:
            continue
        program, rest = words[0].rsplit("/", 1)[-1].lower(), words[1:]
        if program in _SHELLS and "-c" in rest and depth:
            inner = rest[rest.index("-c") + 1 :]
            if inner:
                _match_command(index, inner[0], found, depth - 1)
        _match_program(index["c"], program, rest, found)
        if "/" in words[0]:
            _match_path(index, words[0], found, reads=False)
        if program in ("python", "python3") and rest[:1] == ["-m"]:
            rest_of = rest[1:]
        else:
            rest_of = [word for word in rest if word[:1] != "-"] if program in _RUNNERS else []
        if rest_of:
            _match_program(index["c"], rest_of[0].partition("@")[0], rest_of[1:], found)
        is_reading = (program in _READING and not (program == "sed" and "-i" in "".join(rest[:2]))) or (
            program == "git" and any(word in _GIT_READING for word in rest[:2])
        )
        for word in rest:
            if " " in word and program not in _RUNS_TEXT:
                continue  # A message, not a name.
            _match_path(index, word, found, reads=is_reading)
            if not is_reading and index["w"]:
                _match_words(index["w"], (word.lower(), *word.lower().translate(_BREAKS).split(" ")), found)


def _match_program(commands: Mapping[str, Any], program: str, rest: Sequence[str], found: set[int]) -> None:
    for rule, wanted in commands.get(program, ()):
        if rule not in found and _has_words(wanted, rest):
            found.add(rule)


def _has_words(wanted: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether the words have the trigger's flags, and its subcommand as the first word that is no flag (`git -C x
    push`)."""
    bare = [word for word in rest if word[:1] != "-"]
    place = 0
    for word in wanted:
        if word[:2] == "--":
            if not any(one == word or one.startswith((word + "=", word + "-")) for one in rest):
                return False
        elif word[:1] == "-":
            flags = "".join(one[1:] for one in rest if one[:1] == "-" and one[:2] != "--")
            if any(letter not in flags for letter in word[1:]):
                return False
        else:
            skipped = 1 if place == 0 and rest[:1] and rest[0][:1] == "-" else 0
            if word not in bare[place : place + 1 + skipped]:
                return False
            place = bare.index(word, place) + 1
    return True


def _match_path(index: Mapping[str, Any], path: str, found: set[int], *, reads: bool, is_file: bool = False) -> None:
    """Add the rules on this path. `reads`: the command only reads it; then only rules on reading count."""
    if path[:1] == "-" or len(path) > 1000:
        return
    segments = [segment for segment in path.replace("\\", "/").split("/") if segment not in ("", ".", "..")]
    if not segments:
        return
    last = len(segments) - 1
    reading = index["r"]

    def add(rule: int) -> None:
        if not reads or rule in reading:
            found.add(rule)

    for at, segment in enumerate(segments):
        for rule, before, is_folder in index["n"].get(segment, ()):
            # The name alone of a folder is one in a command (`rm -r vendor`), not the file of an edit.
            if is_folder and at == last and is_file:
                continue
            if not is_folder and at != last and before == "" and "." in segment:
                continue
            if before == "" or "/".join(segments[:at]).endswith(before):
                add(rule)
    name = segments[-1]
    if is_file or "." in name:
        for rule in index["e"].get(name.rpartition(".")[2], ()):
            add(rule)
        for pattern, rule in index["g"]:
            if matches(name, pattern):
                add(rule)


def _match_words(words: Mapping[str, Any], tokens: Sequence[str], found: set[int]) -> None:
    for token in tokens:
        token = token.rstrip(".")
        if not token:
            continue
        found.update(words.get(token, ()))
        if "." in token or "@" in token:
            found.update(words.get(token.partition(".")[0], ()))
            found.update(words.get(token.partition("@")[0], ()))


def matches(name: str, pattern: str) -> bool:
    """Whether a file name matches a pattern in which `*` stands for any text."""
    pieces = pattern.split("*")
    if len(pieces) == 1:
        return name == pattern
    if not name.startswith(pieces[0]) or not name.endswith(pieces[-1]) or len(name) < len(pieces[0]) + len(pieces[-1]):
        return False
    at, end = len(pieces[0]), len(name) - len(pieces[-1])
    for piece in pieces[1:-1]:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def split_commands(line: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield (words, targets of redirections) of each simple command of a command line, quotes removed.

    No shell: what it makes of variables and substitutions is not known; those of `$(…)` and backticks are commands.
    """
    words: list[str] = []
    targets: list[str] = []
    word, quote, has_word, redirected = "", "", False, False
    at, length = 0, len(line)

    def end_word() -> None:
        nonlocal word, has_word, redirected
        if has_word:
            (targets if redirected else words).append(word)
            redirected = False
        word, has_word = "", False

    while at < length:
        c = line[at]
        at += 1
        if quote:
            if c == quote:
                quote = ""
            elif c == "\\" and quote == '"' and at < length:
                word += line[at]
                at += 1
            else:
                word += c
        elif c in "'\"":
            quote, has_word = c, True
        elif c == "\\" and at < length:
            if line[at] != "\n":
                word, has_word = word + line[at], True
            at += 1
        elif c in " \t":
            end_word()
        elif c == "#" and not has_word:
            end = line.find("\n", at)
            at = length if end < 0 else end
        elif c in ";|&\n()`" or (c == "$" and line[at : at + 1] == "("):
            if c == "&" and line[at : at + 1] == ">":
                continue
            end_word()
            if words or targets:
                yield words, targets
            words, targets = [], []
        elif c in "<>":
            if word.isdigit():
                word, has_word = "", False
            end_word()
            redirected = c == ">"
            if line[at : at + 1] == "&":  # Of a descriptor, as in 2>&1.
                at += 1
                while line[at : at + 1].isdigit():
                    at += 1
                redirected = False
        else:
            word, has_word = word + c, True
    end_word()
    if words or targets:
        yield words, targets


def _without_prefixes(words: list[str]) -> list[str]:
    """The words from the program on: without assignments, `sudo`, `env` and the like."""
    at = 0
    while at < len(words):
        word = words[at]
        name = word.rsplit("/", 1)[-1]
        is_assignment = "=" in word and word.partition("=")[0].replace("_", "a").isalnum() and word[:1] != "-"
        if is_assignment or word in _SEPARATORS:
            at += 1
        elif name in _BEFORE_PROGRAM and at + 1 < len(words):
            at += 1
            while at < len(words) and (words[at][:1] == "-" or words[at].rstrip("smh").isdigit()):
                at += 1
        else:
            break
    return words[at:]
