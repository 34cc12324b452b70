"""Every public Python name of upstream 1.5.1 imports, with its members and parameters.

names.txt has one section a module: `name`, `Class.member`, or `name(parameters)` without self,
starred ones and types.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# What is left out, and why.
_TORCHGEN = "upstream's generator of C++ sources goes through torchgen; ours does not"
_HYDRA = "export_llm reads its options without Hydra"
_ARM = "traces of Arm's VGF backend"
_EMPTY = "does nothing upstream"
ABSENT = {
    "executorch.codegen.gen": (
        ("parse_yaml_files", _TORCHGEN),
        ("gen_unboxing", _TORCHGEN),
        ("gen_custom_ops", _TORCHGEN),
        ("gen_headers", _TORCHGEN),
    ),
    "executorch.codegen.tools.gen_oplist": (
        ("KernelType", "numbers of the schema that the script reads"),
        ("ScalarType", "numbers of the schema that the script reads"),
        ("create_kernel_key", "kernel keys are made in C++"),
    ),
    "executorch.codegen.tools.gen_ops_def": (("get_operators", "programs are read in C++"),),
    "executorch.codegen.tools.merge_yaml": (("BlankLineDumper", "PyYAML's own writer is used"),),
    "executorch.devtools": (
        ("Inspector.get_vgf_neural_statistics", _ARM),
        ("Inspector.write_tensorboard_artifact", _EMPTY),
    ),
    "executorch.devtools.inspector": (
        ("Inspector.get_vgf_neural_statistics", _ARM),
        ("Inspector.write_tensorboard_artifact", _EMPTY),
        ("parse_vgf_neural_statistics_delegate_metadata", _ARM),
        ("parse_vgf_neural_statistics_metadata", _ARM),
    ),
    "executorch.exir.passes.init_mutable_pass": (
        ("InitializedMutableBufferPass.placeholder", "a pass over nodes here, not an interpreter"),
    ),
    "executorch.extension.llm.export.export_llm": (
        ("add_hydra_config_args", _HYDRA),
        ("pop_config_arg", _HYDRA),
    ),
}


def entries() -> Iterator[tuple[str, str, list[str]]]:
    """(module, name or Class.member, parameters), of those that are not left out."""
    module, absent = "", {}
    for line in (Path(__file__).parent / "names.txt").read_text().splitlines():
        if not line.startswith(" "):
            module, absent = line, dict(ABSENT.get(line, ()))
            continue
        name, _, parameters = line.strip().rstrip(")").partition("(")
        if not any(name == left_out or name.startswith(left_out + ".") for left_out in absent):
            yield module, name, re.findall(r"\w+", parameters)


def find(module: str, name: str) -> Any:
    """The object, or None for a field that only instances have."""
    owner, _, inner = name.partition(".")
    found = getattr(importlib.import_module(module), owner)
    if not inner:
        return found
    fields = getattr(found, "__dataclass_fields__", {})
    if inner in fields or inner in getattr(found, "_fields", ()):
        return None
    return getattr(found, inner)


def takes(found: Any) -> tuple[set[str], bool]:
    """Its parameters' names, and whether it takes any others too."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except ValueError:  # a function of C++: nanobind writes the signatures into the docstring
        text = found.__init__.__doc__ if inspect.isclass(found) else found.__doc__
        return set(re.findall(r"(\w+)\s*:", text)), False
    starred = any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)
    return {p.name for p in parameters}, starred


def test_the_list_is_whole() -> None:
    assert len(list(entries())) > 1100


@pytest.mark.parametrize(("module", "name", "given"), list(entries()))
def test_names_are_there_with_their_parameters(module: str, name: str, given: list[str]) -> None:
    found = find(module, name)
    if given and callable(found):
        names, any_other = takes(found)
        assert any_other or not set(given) - names, f"{module}.{name} takes {sorted(names)}"


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, rows in ABSENT.items() for name, _ in rows]
)
def test_what_is_listed_as_left_out_is_not_there(module: str, name: str) -> None:
    with pytest.raises(AttributeError):
        find(module, name)
