"""What became of a row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    row: int
    seed: str
    status: str  # PASS, FAIL, or why it does not run
    note: str = ""


class Failed(Exception):
    """A row did not do what its page says; the message is the reason."""
