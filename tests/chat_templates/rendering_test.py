"""Templates against Python's jinja2 with the settings of transformers.

A longer run: TEMPLATES=200000 python -m pytest tests/chat_templates
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests.built import BUILD, needs
from tests.chat_templates.families import CONVERSATIONS, FAMILIES, SMALL
from tests.chat_templates.generated import Templates

SAMPLE = BUILD / "executorch" / "extension" / "llm" / "jinja" / "template_sample"
COUNT = int(os.environ.get("TEMPLATES", "4000"))
pytestmark = needs(SAMPLE)


class Generation(Extension):
    """{% generation %}: what trainers mark, written like any other block."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("same", [])
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def same(self, caller: Any) -> str:
        return str(caller())


def environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )

    def tojson(
        x: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def raise_exception(message: str) -> None:
        raise ValueError(message)

    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    return made


@pytest.fixture(autouse=True)
def slices_are_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jinja computes slices of constants beforehand, by other rules than those of Python, which
    hold for all else."""
    as_const = nodes.Getitem.as_const

    def without_slices(self: nodes.Getitem, *args: Any) -> Any:
        if isinstance(self.arg, nodes.Slice):
            raise nodes.Impossible
        return as_const(self, *args)

    monkeypatch.setattr(nodes.Getitem, "as_const", without_slices)


def expected(template: str, variables: dict[str, Any]) -> tuple[str | None, str]:
    """The text, or None and what is wrong."""
    try:
        return environment().from_string(template).render(**variables), ""
    except Exception as error:  # what a template can do wrong has no common class
        return None, f"{type(error).__name__}: {error}"


def rendered(jobs: list[tuple[str, dict[str, Any]]]) -> list[dict[str, str]]:
    lines = "".join(json.dumps({"template": t, "variables": v}) + "\n" for t, v in jobs)
    done = subprocess.run([SAMPLE], input=lines, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(jobs)
    return answers


def difference(template: str, variables: dict[str, Any], found: dict[str, str]) -> str:
    """Empty where both give the same text, or both refuse."""
    text, cause = expected(template, variables)
    if text is None and "error" in found:
        return ""
    # Names of filters and tests are looked up here when they are used, by Jinja before.
    if cause.startswith("TemplateAssertionError: No "):
        return ""
    if found.get("text") == text:
        return ""
    return f"{template!r} with {variables!r}:\n  jinja2 {text!r} {cause}\n  here   {found!r}"


@pytest.mark.parametrize("family", FAMILIES)
def test_families_render_as_jinja2_does(family: str) -> None:
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    jobs = [(FAMILIES[family], special | variables) for variables in CONVERSATIONS.values()]
    answers = rendered(jobs)
    found = [difference(*job, answer) for job, answer in zip(jobs, answers, strict=True)]
    assert [line for line in found if line] == []
    # More than refusals are compared, and nothing that a family needs is missing.
    assert sum("text" in answer for answer in answers) >= 3
    assert not any("not supported" in answer.get("error", "") for answer in answers)


def test_small_templates_render_as_jinja2_does() -> None:
    jobs = [(template, {"messages": [{"a": 1}, {}]}) for template in SMALL]
    answers = rendered(jobs)
    found = [difference(*job, answer) for job, answer in zip(jobs, answers, strict=True)]
    missing = [
        line
        for line, answer in zip(found, answers, strict=True)
        if line and "not supported" not in answer.get("error", "")
    ]
    assert missing == []
    # The text of a method, a variable named loop, an escape in octal digits.
    assert sum(bool(line) for line in found) == 3, found


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # of templates that use numbers as lists
def test_generated_templates_render_as_jinja2_does() -> None:
    made = Templates(int(os.environ.get("TEMPLATES_SEED", "1")))
    jobs = [(made.template(), made.variables()) for _ in range(COUNT)]
    answers = rendered(jobs)
    differing, n_unsupported, n_equal = [], 0, 0
    for job, answer in zip(jobs, answers, strict=True):
        n_equal += "text" in answer
        if line := difference(*job, answer):
            unsupported = "not supported" in answer.get("error", "")
            n_unsupported += unsupported
            differing += [] if unsupported else [line]
    assert differing == []
    assert n_equal > COUNT // 10
    assert n_unsupported < COUNT // 20
