"""What one test of `memory doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Grade = Literal["ok", "note", "fault"]


@dataclass(frozen=True)
class Finding:
    """One thing that was tested; `todo` is what the user should do, empty when nothing."""

    what: str
    grade: Grade
    detail: str
    todo: str = ""
