"""Where in the user's model an instruction of a program comes from."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch.export import ExportedProgram

from executorch.devtools.parity.replay import Suspect
from executorch.exir import schema, to_edge


class Origins:
    """By the program's own debug identity; for a file without one, such as upstream's, the model is
    exported again and its operators are matched with the program's, in order."""

    def __init__(
        self,
        plan: schema.ExecutionPlan,
        runner: Any,
        exported: ExportedProgram | None,
        model: Any,
        inputs: tuple[Any, ...],
    ) -> None:
        self._plan = plan
        self._runner = runner
        self._exported = exported
        self._model = model
        self._inputs = inputs

    def place(self, suspect: Suspect) -> Suspect:
        """`suspect` with its `place`, if that is known."""
        origin = self._runner._origin(suspect.chain, suspect.instruction, suspect.inside)
        if origin is not None:
            operators, module, file, line = origin
            if suspect.inside:
                suspect = replace(suspect, operator=f"{suspect.operator}, {operators},")
            text = " ".join(filter(None, [module, f"({file}:{line})" if file else ""]))
            return replace(suspect, place=text)
        return replace(suspect, place=self._matched.get((suspect.chain, suspect.instruction), ""))

    @cached_property
    def _matched(self) -> dict[tuple[int, int], str]:
        exported = self._exported
        if exported is None:
            if not isinstance(self._model, torch.nn.Module):
                return {}
            exported = torch.export.export(self._model, self._inputs)
        nodes = [
            n for n in to_edge(exported).exported_program().graph.nodes if n.op == "call_function"
        ]
        places, names = [], []
        for chain, code in enumerate(self._plan.chains):
            for number, instruction in enumerate(code.instructions):
                call = instruction.instr_args
                if isinstance(call, schema.KernelCall):
                    places.append((chain, number))
                    names.append(self._plan.operators[call.op_index].name.rpartition("::")[2])
        matched: dict[tuple[int, int], str] = {}
        for block in difflib.SequenceMatcher(
            None, names, [_base_name(n) for n in nodes], autojunk=False
        ).get_matching_blocks():
            for i in range(block.size):
                matched[places[block.a + i]] = "about " + _describe(nodes[block.b + i])
        return matched


def _base_name(node: torch.fx.Node) -> str:
    name = getattr(node.target, "name", None)
    return str(name() if callable(name) else node.target).rpartition("::")[2].split(".")[0]


def _describe(node: torch.fx.Node) -> str:
    """`module path (file:line)` of the user's innermost frame."""
    stack: Sequence[tuple[str, Any]] = list(node.meta.get("nn_module_stack", {}).values())
    module = re.sub(r"^L\['self'\]\.?", "", stack[-1][0]) if stack else ""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    line = f"({frames[-1][0]}:{frames[-1][1]})" if frames else ""
    return " ".join(filter(None, [module, line])) or "the model"
