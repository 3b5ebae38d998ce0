"""Find the rules that concern a tool call, by looking up their compiled triggers. Light module, without `re`.

The compiled file (`services/action_index.py`) has the triggers in its first line, as JSON: by program, by name of a
file or folder, by extension, by word. Each further line is one rule, and is only parsed when it matches.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from typing import Any

MOST_COMMAND_CHARACTERS = 500_000
MOST_TEXT_CHARACTERS = 60_000
"""Most characters of a file's new text that are searched."""
MOST_CARRIED = 40
"""Most words of a command at which one that it carries may begin, and most commands that carry one another."""
DEPTH = 2
"""How many levels of `sh -c '…'` are searched."""
MOST_NAMES = 6
"""Most names of a dotted one (`os.path.join`) that are looked up."""
_BEFORE_PROGRAM = frozenset(("sudo", "env", "nohup", "time", "exec", "command", "xargs", "nice", "doas", "timeout"))
_VALUE_FLAGS = {"sudo": "ughpCrt", "doas": "uC", "env": "uC", "xargs": "IiLnPdEs", "nice": "n", "timeout": "ks"}
"""Flags of these programs whose value is the next word."""
_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "fish"))
_SHELLS_AND_SSH = _SHELLS | {"ssh"}
_CARRIERS: Mapping[str, frozenset[str]] = {
    program: frozenset(words.split())
    for programs, words in (
        ("ssh eval npx bunx uvx pnpx", ""),
        ("docker podman docker-compose kubectl oc", "exec run debug"),
        ("find", "-exec -execdir -ok"),
        ("uv poetry pipenv pdm rye hatch conda mamba", "run"),
        ("bundle npm pnpm yarn bun", "exec dlx x"),
    )
    for program in programs.split()
}
"""Programs that run the command in their arguments, after one of these words; with none, after the program."""
_INTERPRETERS = frozenset(("python", "python3", "node", "ruby", "perl", "php", "bash", "sh"))
"""Environments such as `uv run` are made for these: a rule on calling them directly does not mean such a call."""
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
_SHELL_WORDS = frozenset(("{", "}", "!", "if", "then", "elif", "else", "while", "until", "do", "time"))
_SPECIAL = frozenset(" \t\n'\"\\;|&()`$<>")
"""Characters that mean something to a shell within a word."""
_BRANCH = "branch "
_PUSHES_MORE = frozenset(("--all", "--branches", "--mirror", "-o", "--push-option", "--repo", "--exec"))
"""Options of `git push` after which the other words do not tell what is pushed."""
_ENVIRONMENTS = {
    name: environment
    for environment, names in (
        ("production", "prod production prd live"),
        ("staging", "staging stage stg preprod"),
        ("development", "dev development local localhost sandbox"),
    )
    for name in names.split()
}
_JOINTS = dict.fromkeys(map(ord, "._-"), " ")
_BREAKS = dict.fromkeys(map(ord, "\n\t\r()[]{}<>,;:'\"`=+*/\\|&!?#%^~$"), " ")


def match_call(index: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the rules whose triggers are in the call, ascending.

    `index`: the first line of the compiled file; its `top`, if there is one, is the project's folder: the folders
    above it say nothing about a file.
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
        if isinstance(text, str):
            _match_text(index, text[:MOST_TEXT_CHARACTERS], found)
    return sorted(found)


def _meant(index: Mapping[str, Any], rules: set[int], words: Sequence[str]) -> set[int]:
    """Return those of the rules that are about no branch or environment, or one that this command may mean."""
    places = index.get("o", {})
    return {
        rule for rule in rules if str(rule) not in places or not _names_others(words, places[str(rule)], index["c"])
    }


def _names_others(words: Sequence[str], places: Sequence[str], programs: Container[str]) -> bool:
    """Whether a command names other branches or environments, and none of these.

    A variable tells the environment behind an option or a program; behind another word it is what the command works on.
    """
    branches = [place[len(_BRANCH) :] for place in places if place.startswith(_BRANCH)]
    if branches:
        return "push" in words and _pushes_to_others(words[words.index("push") + 1 :], branches)
    named = {
        _ENVIRONMENTS[token]
        for before, word in zip(("-", *words), words, strict=False)
        if word[:1] not in ("/", "~")
        if word[:1] != "$" or before[:1] == "-" or before == words[0] or before in programs
        for token in word.lower().translate(_BREAKS).translate(_JOINTS).split()
        if token in _ENVIRONMENTS
    }
    return bool(named) and named.isdisjoint(places)


def _pushes_to_others(arguments: Sequence[str], branches: Sequence[str]) -> bool:
    specs = [word for word in arguments if word[:1] != "-"][1:]
    targets = [spec.lstrip("+").rpartition(":")[2].removeprefix("refs/heads/") for spec in specs]
    return (
        bool(targets)
        and _PUSHES_MORE.isdisjoint(arguments)
        and not any(target in ("", "HEAD", "@", *branches) or "$" in target or "*" in target for target in targets)
    )


def _match_command(index: Mapping[str, Any], command: str, found: set[int], depth: int) -> None:
    simple = [*split_commands(command)]
    programs = {_program_of(word) for words, _ in simple for word in words}
    writes_file = "<<" in command and any(targets for _, targets in simple)
    if writes_file or not programs.isdisjoint(_RUNS_TEXT):
        said: set[int] = set()
        _match_text(index, command, said)
        found |= _meant(index, said - found, [word for words, _ in simple for word in words])
    for words, targets in simple:
        mine: set[int] = set()
        lines = []  # What it has another shell run: each command of it speaks for itself.
        for target in targets:
            _match_path(index, target, mine, reads=False)
        for carried in _carried_commands(index, words):
            program, rest = _program_of(carried[0]), carried[1:]
            if depth and len(carried) == 1 and " " in carried[0]:
                lines.append(carried[0])
                continue
            if program in _SHELLS and depth:
                flags = [word[:1] == "-" and word[:2] != "--" and word[-1:] == "c" for word in rest]
                if True in flags and (text := rest[flags.index(True) + 1 :]):
                    lines.append(text[0])
            _match_program(index["c"], program, rest, mine)
            if program not in _BEFORE_PROGRAM:
                _match_arguments(index, carried, program, mine)
        for line in dict.fromkeys(lines):
            _match_command(index, line, mine, depth - 1)
        found |= _meant(index, mine - found, [word for word in words if word not in lines])


def _match_arguments(index: Mapping[str, Any], words: Sequence[str], program: str, found: set[int]) -> None:
    """Add the rules on the files and names in a command's arguments."""
    rest = words[1:]
    if "/" in words[0]:
        _match_path(index, words[0], found, reads=False)
    is_reading = (program in _READING and not (program == "sed" and "-i" in "".join(rest[:2]))) or (
        program == "git" and any(word in _GIT_READING for word in rest[:2])
    )
    for word in rest:
        if " " in word and program not in _RUNS_TEXT:
            continue  # A message, not a name.
        _match_path(index, word, found, reads=is_reading)
        if not is_reading:
            _match_words(index["w"], (word.lower(),), found)
            _match_text(index, word, found)


def _program_of(word: str) -> str:
    return word.rsplit("/", 1)[-1].lower()


def _carried_commands(index: Mapping[str, Any], words: list[str], most: int = MOST_CARRIED) -> Iterator[list[str]]:
    """Yield a command without assignments before it, and the commands that it runs in its turn (`sudo`, `ssh`,
    `docker exec`), each as its words. One word with spaces is a command line."""
    words = _from_program(words)
    while words and most > 0:
        most -= 1
        program = _program_of(words[0])
        if program in _BEFORE_PROGRAM and len(words) > 1:
            inner = _from_program(_after_flags(words[1:], _VALUE_FLAGS.get(program, "")))
            yield [words[0], *([_program_of(inner[0]), *inner[1:]] if inner else words[1:])]
            words = inner
            continue
        yield words
        if program in ("python", "python3") and words[1:2] == ["-m"]:
            words = words[2:]
            continue
        starts = _CARRIERS.get(program)
        if starts is not None:
            yield from _commands_within(index, words, starts, most)
        return


def _commands_within(
    index: Mapping[str, Any], words: list[str], starts: frozenset[str], most: int
) -> Iterator[list[str]]:
    at = 1
    while starts and at < len(words) and words[at] not in starts:
        at += 1
    # Which word begins the command depends on options of many programs: so any that names a program of a rule.
    begin = at + bool(starts)
    words = words[: begin + MOST_CARRIED * 10]
    for start in range(begin, min(len(words), begin + MOST_CARRIED)):
        name = _program_of(words[start]).partition("@")[0]
        rest = words[start + 1 :]
        if " " in words[start]:
            yield [words[start]]
        elif name in _BEFORE_PROGRAM:
            yield from _carried_commands(index, words[start:], most)
            return
        elif name in _INTERPRETERS and "run" in starts and "exec" not in starts:
            return
        elif name in index["c"] or name in _SHELLS:
            yield [name, *rest]


def _after_flags(words: list[str], with_value: str) -> list[str]:
    at = 0
    while at < len(words) and (words[at][:1] == "-" or words[at].rstrip("smh").isdigit()):
        at += 2 if len(words[at]) == 2 and words[at][0] == "-" and words[at][1] in with_value else 1
    return words[at:]


def _match_program(commands: Mapping[str, Any], program: str, rest: Sequence[str], found: set[int]) -> None:
    for name in {program, program.rstrip("0123456789.-")}:  # `python3.11`
        found.update(rule for rule, wanted in commands.get(name, ()) if rule not in found and _has_words(wanted, rest))


def _has_words(wanted: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether the arguments have the trigger's flags anywhere, and its words in order with nothing but options between
    (`git -C x push`)."""
    at = 0
    for word in wanted:
        if word[:2] == "--":
            if not any(one == word or one.startswith((word + "=", word + "-")) for one in rest):
                return False
        elif word[:1] == "-":
            flags = "".join(one[1:] for one in rest if one[:1] == "-" and one[:2] != "--")
            if any(letter not in flags for letter in word[1:]):
                return False
        else:
            at = _after_word(word, rest, at)
            if at < 0:
                return False
    return True


def _after_word(word: str, rest: Sequence[str], at: int) -> int:
    """Return the place after `word`, the first from `at` that is neither an option nor an option's value; -1 if it is
    another word."""
    follows_flag = False
    while at < len(rest):
        one = rest[at]
        at += 1
        if one[:1] == "-" and len(one) > 1:
            follows_flag = "=" not in one
        elif one == word or (one[-1:].isdigit() and one.rstrip("0123456789.") == word):
            return at
        elif follows_flag:
            follows_flag = False
        else:
            break
    return -1


def _match_path(index: Mapping[str, Any], path: str, found: set[int], *, reads: bool, is_file: bool = False) -> None:
    """Add the rules on this path. `reads`: the command only reads it; then only rules on reading count."""
    if path[:1] == "-" or len(path) > 1000:
        return
    path, top = path.replace("\\", "/"), index.get("top", "")
    if top and path.startswith(f"{top}/"):
        path = path[top.rindex("/") :]
    segments = [segment for segment in path.split("/") if segment not in ("", ".", "..")]
    if not segments:
        return
    last = len(segments) - 1
    reading = index["r"]

    def add(rule: int) -> None:
        if not reads or rule in reading:
            found.add(rule)

    named = index["n"]
    for at, segment in enumerate(segments):
        if "*" in segment and len(segment) > 2:  # The shell's: `cat .env*`.
            those = [one for name in named if matches(name, segment) for one in named[name]]
        else:
            those = named.get(segment, ())
        for rule, before, is_folder in those:
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
        folders = f"/{'/'.join(segments[:-1])}/"
        for pattern, rule, before in index["g"]:
            if matches(name, pattern) and (not before or f"/{before}/" in folders):
                add(rule)


def _match_text(index: Mapping[str, Any], text: str, found: set[int]) -> None:
    """Add the rules on what stands in new text of a file, or in text that a program runs."""
    lower = text.lower()
    if index["w"]:
        _match_words(index["w"], lower.translate(_BREAKS).split(" "), found)
    if texts := index.get("t"):
        lower = " ".join(lower.split())
        for wanted, rules in texts.items():
            if _has_text(lower, wanted):
                found.update(rules)


def _has_text(text: str, wanted: str) -> bool:
    """Whether the text has `wanted`, not within longer names."""
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        is_inside = _is_of_name(wanted[0]) and _is_of_name(text[at - 1 : at])
        if not is_inside and not (_is_of_name(wanted[-1]) and _is_of_name(text[end : end + 1])):
            return True
        at = text.find(wanted, at + 1)
    return False


def _is_of_name(character: str) -> bool:
    return character.isalnum() or character == "_"


def _match_words(words: Mapping[str, Any], tokens: Sequence[str], found: set[int]) -> None:
    for token in tokens:
        token = token.strip(".")
        if not token:
            continue
        found.update(words.get(token, ()))
        if "@" in token:
            found.update(words.get(token.partition("@")[0], ()))
        if "." in token:
            names = token.split(".")[:MOST_NAMES]
            for begin in range(len(names)):
                for end in range(begin + 1, len(names) + 1):
                    found.update(words.get(".".join(names[begin:end]), ()))


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
    return _CommandLine(line).commands()


class _CommandLine:
    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._words: list[str] = []
        self._targets: list[str] = []
        self._word: str | None = None
        self._is_target = False
        """Whether the next word is the target of a redirection."""
        self._marks: list[str] = []
        """Those that end the here-documents whose text begins in the next line."""
        self._last_lines: dict[str, int] = {}

    def commands(self) -> Iterator[tuple[list[str], list[str]]]:
        """As `split_commands`."""
        line, line_at = self._line, 0
        while self._at < len(line):
            c = line[self._at]
            self._at += 1
            if c in "'\"":
                self._read_quoted(c)
            elif c == "\\" and self._at < len(line):
                if line[self._at] != "\n":
                    self._add(line[self._at])
                self._at += 1
            elif c in " \t":
                self._end_word()
            elif c == "#" and self._word is None:
                self._at = self._find("\n")
            elif c == "&" and self._next() == ">":
                pass
            elif c in ";|&\n()`" or (c == "$" and self._next() == "("):
                self._end_word()
                if self._words or self._targets:
                    yield self._words, self._targets
                self._words, self._targets = [], []
                if c == "\n":
                    self._skip_texts(line[line_at : self._at])
                    line_at = self._at
            elif c in "<>":
                self._read_redirection(c)
            else:
                begin = self._at - 1
                self._at = self._end_of_plain(self._at)
                self._add(line[begin : self._at])
        self._end_word()
        if self._words or self._targets:
            yield self._words, self._targets

    def _next(self, count: int = 1) -> str:
        return self._line[self._at : self._at + count]

    def _find(self, text: str) -> int:
        """Return the place of the next occurrence; without one, the end."""
        found = self._line.find(text, self._at)
        return len(self._line) if found < 0 else found

    def _end_of_plain(self, at: int) -> int:
        while at < len(self._line) and self._line[at] not in _SPECIAL:
            at += 1
        return at

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is not None:
            (self._targets if self._is_target else self._words).append(self._word)
            self._word, self._is_target = None, False

    def _read_quoted(self, quote: str) -> None:
        self._add("")
        while self._at < len(self._line) and self._next() != quote:
            if quote == '"' and self._next() == "\\" and self._at + 1 < len(self._line):
                self._add(self._line[self._at + 1])
                self._at += 2
                continue
            end = min(self._find(quote), self._find("\\")) if quote == '"' else self._find(quote)
            end = max(end, self._at + 1)  # A backslash that ends the line stands for itself.
            self._add(self._line[self._at : end])
            self._at = end
        self._at += 1

    def _read_redirection(self, c: str) -> None:
        if c == "<" and self._next() == "<":
            self._end_word()
            if self._next(2) == "<<":  # The word that follows is its input.
                self._at += 2
            else:
                self._read_mark()
            return
        if self._word is not None and self._word.isdigit():  # A descriptor, as in 2>.
            self._word = None
        self._end_word()
        self._is_target = c == ">"
        if self._next() == "&":  # Of a descriptor, as in 2>&1.
            self._at += 1
            while self._next().isdigit():
                self._at += 1
            self._is_target = False

    def _read_mark(self) -> None:
        """Read the word that ends a here-document."""
        line = self._line
        at = self._at + (2 if self._next(2) == "<-" else 1)
        while line[at : at + 1] in (" ", "\t", "\\"):
            at += 1
        quote = line[at : at + 1]
        end = max(at, line.find(quote, at + 1) + 1) if quote in ("'", '"') else at
        self._at = self._end_of_plain(end)
        if self._at > at:
            self._marks.append(line[at : self._at].strip("'\""))

    def _skip_texts(self, command: str) -> None:
        """Skip the here-documents of a line. What a shell is given is run; for other programs it is text."""
        if self._marks and _SHELLS_AND_SSH.isdisjoint(command.lower().translate(_BREAKS).split()):
            self._last_lines = self._last_lines or _last_lines(self._line)
            for mark in self._marks:
                if self._last_lines.get(mark, -1) >= self._at:
                    self._skip_text(mark)
        self._marks = []

    def _skip_text(self, mark: str) -> None:
        while self._at < len(self._line):
            stop = self._find("\n")
            text = self._line[self._at : stop]
            self._at = stop + 1
            if text.strip() == mark:
                break


def _last_lines(text: str) -> dict[str, int]:
    """Return where each line begins for the last time, by its words."""
    found: dict[str, int] = {}
    at = 0
    for line in text.split("\n"):
        found[line.strip()] = at
        at += len(line) + 1
    return found


def _from_program(words: list[str]) -> list[str]:
    """The words without the assignments and the shell's own words before them."""
    at = 0
    while at < len(words):
        word = words[at]
        is_assignment = "=" in word and word.partition("=")[0].replace("_", "a").isalnum() and word[:1] != "-"
        if not is_assignment and word not in _SHELL_WORDS:
            break
        at += 1
    return words[at:]
