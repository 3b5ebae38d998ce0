# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Is a rule one for the program that is being built, and not for the agent that builds it?

"Never guess when there are fewer than 20 residues, ask then" has the form of an order to the agent. What tells is what
it speaks of: a thing that the program shows, data that it sees, people who use it, and nothing of the agent's own work;
or that it stands in the description of a program. Such a rule is put to the user.
"""

from __future__ import annotations

import re

from .common_patterns import order_of
from .rewording import in_known_words

_FLAGS = re.IGNORECASE | re.VERBOSE

OWN_WORK = r"(?:commit(?:\ message|s)?|commit\ messages|prs?|pull\ requests?|branch(?:\ name|es)?|branch\ names|tests?|unit\ tests|docstrings?|comments?|changelogs?|migrations?|release\ notes)"
"""What the agent makes itself. What the program makes ("errors", "files", "users") is as likely a wish for the program."""

AGENTS_WORK = re.compile(
    r"""\b(?:me|my|your|asking|commit\w*|(?:force[-\ ]?)?push(?:es|ing)?|merg(?:e|es|ed|ing)|rebas\w+|squash\w*|branch(?:es)?|prs?|pull\ requests?|diffs?|tests?|lint\w*|format(?:ter|ting)
        |changelogs?|docs?|docstrings?|readmes?|migrations?|dependenc\w+|refactor\w*|code|imports?)\b""",
    _FLAGS,
)
"""Without a word of these, what is called a rule may be the program's: "Rule: send a mail when the order ships"."""

_PROGRAM_VERB = r"""(?:
    accept|align|allocate|apply|archive|cache|compare|download|estimate|evaluate|fit|flag|hash|initiali[sz]e|normali[sz]e|query|rebuild|
    record|register|restart|restore|schedule|seed|share|shuffle|truncate|upload|wipe|begin|close|compress|convert|create|declare|decode|disable|display|emit|enable|encode|encrypt|end|escape|export|extract|fetch|
    generate|hide|limit|load|lock|log|open|order|output|paginate|parse|play|preserve|print|raise|redirect|refuse|reject|
    render|request|retry|return|round|sanitize|save|send|serve|set|show|sort|start|store|strip|
    suppress|throw|translate|trim|validate|write)"""
_FOR_GOOD = r"""(?:(?:(?:you|we)\s+(?:should|must|need\ to|have\ to|shall)\s+)?(?:always|never)
    |(?:do\ not|don'?t|dont)\s+ever
    |(?:from\ (?:now|here|this\ point|today)\ on(?:wards?)?|(?:going|moving)\ forwards?|henceforth)\s*[,:]?(?:\s+(?:please|just|always|never|do\ not|don'?t))*)\s+"""
_PROGRAM_DOES = re.compile(
    rf"""^{_FOR_GOOD}{_PROGRAM_VERB}\s+(?:[^,;:.]*?\s)?(?:the|[\w.]*\w_\w+|\w+\(\))(?!\w)[^,;:]*""", _FLAGS
)
_TO_ME = re.compile(
    r"\b(?:me|my|i|you|your|plan|diff|commit\w*|prs?|pull\s+requests?|branch(?:es)?|tests?|changelog|docs?|readme|asking|being)\b",
    re.IGNORECASE,
)
"""What is ordered is shown to the user, or done to what the agent works on."""
_WORKED_ON = re.compile(
    rf"""\b(?:{OWN_WORK}|mock\w*|fakes?|stubs?|fixtures?|functions?|classes|methods?|modules?|packages?|librar(?:y|ies)|linters?|warnings?|build|ci|pipeline
        |deploy\w*|install\w*|releas\w*|unclear|ambiguous|unsure|uncertain|doubt)\b""",
    _FLAGS,
)

_ON_DATA = re.compile(
    r"""\b(?:when(?:ever)?|if|once|where|unless)\s+
        (?:there\s+(?:is|are|was|were)\b
          |[^.?!;,]*?\b(?:(?:fewer|less|more|greater|smaller|larger|bigger|longer|shorter|older|younger|higher|lower)\s+than
            |at\s+(?:least|most)|below|above|under|over|exactly|equals?)\s+(?:an?\b|half\b|zero\b|one\b|two\b|three\b|[<>=-]*\d)
          |(?:the|an?|no|any)\s+(?:[\w-]+\s+){1,3}?(?:is|are|has|have|was|were|does|do|answers?|returns?|comes?|runs?\ out|ends?|fails?)\b)""",
    _FLAGS,
)
"""A condition on what the program sees, and the agent at its work does not."""
_IN_USE = re.compile(
    r"""\b(?:(?:the|an?|each|every)\s+(?:user|player|customer|visitor|guest|opponent)|users|players|customers|visitors|opponents
        |(?:high[-\ ]?)?scores?|scoreboards?|decimals|decimal\s+places|new\s+tab|pop-?ups?|modals?|dialogs?|buttons?)\b""",
    _FLAGS,
)
"""Who uses a program, and what they see of it."""

_DESCRIBES_PROGRAM = re.compile(
    r"""\b(?:the|this|our|my)\s+(?:new\s+)?(?:feature|program|app|application|game|tool|page|form|bot|screen|widget|dialog|command|endpoint|site)\s+
          (?:is|should|shall|must|will|would|needs\s+to|has\s+to|does|works)\b
      |\b(?:the|an?|each|every)\s+(?:user|player|customer|visitor|guest)\s+(?!stor(?:y|ies)\b)(?:can|may|must|should|will|\w+s)\b
      |(?:^|[.!?:]\s+|\n\s*)(?:(?:can|could)\s+you\s+|please\s+|let'?s\s+)*(?:build|write|make|create|implement|code|develop|program)\s+(?:me\s+|us\s+)?an?\s+(?:[\w-]+\s+){0,5}?
          (?:app|application|game|tool|cli|program|bot|site|website|page|form|widget|calculator|quiz|tracker|viewer|editor|timer|simulator)\b""",
    _FLAGS,
)
_BEHAVIOUR = re.compile(
    rf"""^{_FOR_GOOD}(?:{_PROGRAM_VERB}|add|ask|assume|draw|drop|guess|ignore|keep|move|pause|remove|replace|reset|skip|spawn|stop|switch|tell|update|wait|warn)\b""",
    _FLAGS,
)
"""What a program is told to do as well as an agent."""


def tells_program(core: str) -> bool:
    """Does a rule say what the program does to one thing ("always show the banner"), how it goes where the data are so,
    or how it treats those who use it, and nothing of the agent's work? `core`: in the words that the forms know."""
    does = _PROGRAM_DOES.match(core)
    if does is not None and _TO_ME.search(does[0]) is None:
        return True
    return (_ON_DATA.search(core) or _IN_USE.search(core)) is not None and not _names_agents_work(core)


def is_part_of_description(sentence: str, before: str) -> bool:
    """Is a rule part of what is told of a program to be built ("The feature is this: a user pastes a text, we guess its
    language. Never guess without a hint.")? `before`: what its paragraph says before it."""
    if not before or _DESCRIBES_PROGRAM.search(before) is None:
        return False
    core = in_known_words(order_of(sentence))
    return _BEHAVIOUR.match(core) is not None and not _names_agents_work(core)


def _names_agents_work(core: str) -> bool:
    return any(pattern.search(core) for pattern in (AGENTS_WORK, _TO_ME, _WORKED_ON))
