"""Which lines of which tutorial text are run, row by row, and everything that is adapted.

Seeds: A LLM page of release 1.0, B LLM manual of 0.4, C LLM page of main, D LLM page of 0.2,
E export tutorial of 0.1. The code is cut out of the text by line numbers at test time; `starts`
guards against another edition. A and E lost their indentation, D that of two blocks: `layout`
gives the level of every line of a cut, one digit each; levels inside brackets are free. Lines that
are added around a cut are spelled out in `before` and `after`, a line that needs a part of the
project that does not exist yet in `awaits`. Nothing else is changed; the table says all of it.
"""

from __future__ import annotations

from tests.seeds.custom_operators import CUSTOM_OPERATORS
from tests.seeds.projects import PROJECTS
from tests.seeds.row_types import CustomOperator, Cut, Project, Script
from tests.seeds.scripts import SCRIPTS

__all__ = ["CUSTOM_OPERATORS", "PROJECTS", "SCRIPTS", "CustomOperator", "Project", "Script"]

SEEDS = {
    "A": "000_41c93761da2dd0bf.txt",
    "B": "001_68d519f92fb0dada.txt",
    "C": "002_310abb35ba36cf0f.txt",
    "D": "003_75ba8476b52e3f1a.txt",
    "E": "004_f801faf4ca022a58.txt",
}

DOWNLOADS = (
    Cut(1, "A", 8, 9, "curl"),
    Cut(2, "A", 10, 11, "wget"),
    Cut(1, "B", 98, 99, "curl"),
    Cut(2, "B", 100, 101, "wget"),
    Cut(1, "C", 18, 19, "curl"),
    Cut(2, "C", 24, 25, "wget"),
    Cut(2, "D", 50, 50, "`wget"),
    Cut(2, "D", 127, 127, "wget"),
    Cut(61, "B", 286, 287, "curl -O"),
)

# Rows that run in a shell alone.
SHELL = (Cut(77, "D", 21, 22, "mkdir  third-party"),)

# Rows nothing is run for, and why.
NOT_RUN: dict[str, tuple[int, ...]] = {
    "not run: downloads; local copies of the same interfaces stand in": (1, 2, 61),
    "not run: clones and installs over the network (conda, pyenv)": (75, 76),
    "commented out on the page": (92,),
    "no code in the text": (93,),
}
N_ROWS = 93
