"""What a row of the tables says: lines of a text, and what they make."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cut:
    row: int
    seed: str
    first: int  # line numbers, from 1, both inclusive
    last: int
    starts: str  # how line `first` starts
    layout: str = ""
    before: str = ""
    after: str = ""
    awaits: tuple[str, str] | None = None  # (line, folder): left out while the folder is not there
    corrects: tuple[tuple[str, str], ...] = ()  # (as printed, as run) where the text is not valid
    note: str = ""  # what else differs from the page
    expects: tuple[str, ...] = ()  # regular expressions found in what it prints
    keeps: str = ""  # the program that is written by then is kept under this name and must be right
    shows: tuple[Cut, ...] = ()  # what the page says that this cut prints


@dataclass(frozen=True)
class Script:
    """Cuts that make one Python file, run by the command the page gives."""

    name: str
    seed: str
    cuts: tuple[Cut, ...]
    commands: tuple[Cut, ...] = ()  # lines that contain `python FILE`
    program: str = "nanogpt.pte"


@dataclass(frozen=True)
class Project:
    """Cuts that make one C++ project, built and run by the commands the page gives."""

    name: str
    seed: str
    folder: str  # of the project inside the scratch folder
    executorch: str  # where the page has the checkout, relative to the project
    program: tuple[str, str]  # the seed of the Script whose program it runs, and which it keeps
    source: str
    source_cuts: tuple[Cut, ...]
    cmake_cuts: tuple[Cut, ...]
    builds: tuple[tuple[Cut, ...], ...]  # each: configure, build, run
    console: Cut
    prompt_tokens: int = 0  # 0: as many as the prompt has
    n_tokens: int = 30
    files: tuple[Cut, ...] = field(default=())
    takes: tuple[str, ...] = ()  # what else the page's export script wrote and is needed beside
    parses: Script | None = None  # reads the dump that the project wrote


@dataclass(frozen=True)
class CustomOperator:
    """Cuts that make one custom operator: its library, and the rewrite of a model that uses it."""

    seed: str
    schemas: Cut
    kernel: Cut  # custom_linear.cpp
    wrapper: tuple[Cut, ...]  # custom_linear_pytorch.cpp
    model: tuple[Cut, ...]  # loads the library; replace_linear_with_custom_linear
