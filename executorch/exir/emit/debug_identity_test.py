"""Programs say where their instructions come from; the runtime half has its tests in C++."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from executorch.backends.example.example_backend import ExamplePartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.emit._debug_identity import KEY, place_of

HERE = "/".join(Path(__file__).parts[-3:])


def _line(function: Any, text: str) -> int:
    """Where in this file `text` stands in the function."""
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if text in line)


class Lookup(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(10, 8))

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        rows = self.table[index]
        return rows * 2


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([Lookup(), Lookup()])
        self.head = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, first, second):
        x = self.tables[0](first) + self.tables[1](second)
        self.seen.add_(1)
        return self.head(x)


INDICES = (torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6]))


def _lower(model: nn.Module, inputs: tuple[Any, ...], **config: Any) -> Any:
    dim = {0: Dim("n", max=16)}
    exported = export(model.eval(), inputs, dynamic_shapes=tuple(dim for _ in inputs))
    return to_edge(exported).to_executorch(ExecutorchBackendConfig(**config))


def _origins(manager):
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(manager.buffer).load_method("forward")
    origins = []
    while (origin := method._method._origin(0, len(origins))) is not None:
        origins.append(origin)
    return origins


def _run_error(manager, inputs):
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(manager.buffer).load_method("forward")
    with pytest.raises(RuntimeError) as caught:
        method.execute(inputs)
    return str(caught.value)


@pytest.mark.parametrize("passes", [{}, {"remove_view_copy": False}])
def test_a_failing_index_names_its_module_and_its_line(passes: dict[str, Any]) -> None:
    manager = _lower(Pair(), INDICES, **passes)
    error = _run_error(manager, (INDICES[0], torch.tensor([4, 99, 6])))
    line = _line(Lookup.forward, "self.table[index]")
    assert "aten::index.Tensor_out" in error
    assert f"{HERE}:{line}, module tables.1" in error


def test_every_instruction_has_a_place() -> None:
    manager = _lower(Pair(), INDICES)
    origins = _origins(manager)
    assert len(origins) == len(manager.executorch_program.execution_plan[0].chains[0].instructions)
    for op, _, file, line in origins:
        assert file == HERE and line > 0, op
    assert "aten::copy_" in [o[0] for o in origins]  # made by a pass
    head = [o for o in origins if o[1].startswith("head.")]
    assert {o[1] for o in head} == {"head.0", "head.1"}
    assert {o[3] for o in head} == {_line(Pair.forward, "self.head(x)")}


def test_nothing_is_written_where_it_is_not_wanted() -> None:
    with_places = _lower(Pair(), INDICES)
    without = _lower(Pair(), INDICES, emit_debug_identity=False)
    assert KEY.encode() in with_places.buffer
    assert KEY.encode() not in without.buffer
    assert b"debug_identity" not in without.buffer
    error = _run_error(without, (INDICES[0], torch.tensor([4, 99, 6])))
    assert "it comes from" not in error


@dataclass
class Result:
    scores: torch.Tensor
    hidden: list[torch.Tensor]


torch.export.register_dataclass(Result)


def _names(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    from executorch.runtime import Runtime

    program = to_edge(export(model.eval(), args, kwargs)).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    assert method is not None
    return method.input_names, method.output_names


def test_inputs_and_outputs_have_the_models_names() -> None:
    class Masked(nn.Module):
        def forward(self, input, batch, *, attention_mask=None):
            rows = input + batch["a"] * attention_mask
            return {"logits": rows, "cache": [rows * 2, (rows * 3,)], 7: rows.sum()}

    x = torch.ones(3)
    names = _names(Masked(), (x, {"a": x, "unused": x}), {"attention_mask": x})
    assert names[0] == ["input", "batch_a", "batch_unused", "attention_mask"]
    assert names[1] == ["logits", "cache.0", "cache.1.0", "7"]


def test_results_of_data_classes_and_named_tuples_have_names_and_others_none() -> None:
    class Several(nn.Module):
        def forward(self, x):
            return x + 1, Result(x * 2, [x * 3]), x.topk(2)

    names = _names(Several(), (torch.ones(3),), {})
    assert names == (["x"], ["", "1.scores", "1.hidden.0", "", ""])


def test_results_of_transformers_have_names() -> None:
    from transformers import modeling_outputs as output

    class Output(nn.Module):
        def forward(self, input_ids):
            x = input_ids * 2
            return output.CausalLMOutput(logits=x, hidden_states=(x + 1, x + 2))

    names = _names(Output(), (torch.ones(3),), {})
    assert names[1] == ["logits", "hidden_states.0", "hidden_states.1"]


@pytest.mark.parametrize("delegated", [False, True])
def test_methods_that_keep_nothing_say_so(delegated: bool) -> None:
    class Adds(nn.Module):
        def forward(self, x):
            return x + 1

    lowered = [ExamplePartitioner()] if delegated else None
    for model, inputs, is_stateless in ((Adds(), (torch.ones(3),), True), (Pair(), INDICES, False)):
        manager = to_edge_transform_and_lower(export(model, inputs), partitioner=lowered)
        identity = manager.to_executorch()._emitter_output.debug_identity
        assert [method[-1] for method in identity._methods] == [is_stateless]


def test_bytes_are_equal_for_equal_programs() -> None:
    torch.manual_seed(0)
    first = _lower(Pair(), INDICES).buffer
    torch.manual_seed(0)
    assert _lower(Pair(), INDICES).buffer == first


def test_branches_name_the_line_and_the_module_that_branches() -> None:
    class Wrapped(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def positive(x: torch.Tensor) -> torch.Tensor:
                return x.sin()

            def negative(x: torch.Tensor) -> torch.Tensor:
                return x.cos()

            return torch.cond(x.sum() > 0, positive, negative, (x,))

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wrapped = Wrapped()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.wrapped(x + 1)

    manager = to_edge(export(Branches(), (torch.randn(4),))).to_executorch()
    origins = {op: rest for op, *rest in _origins(manager)}
    call = [HERE, _line(Wrapped.forward, "torch.cond")]  # the finest that PyTorch keeps
    assert origins["aten::sin.out"][1:] == origins["aten::cos.out"][1:] == call
    assert origins["jump_false"] == origins["move"] == origins["aten::sin.out"]
    assert origins["move"][0] == "wrapped"


def test_operators_inside_a_delegate_are_known_by_the_ids_of_its_backend() -> None:
    class Sum(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            z = x + y
            return z * y

    exported = export(Sum(), (torch.randn(4), torch.randn(4)))
    manager = to_edge_transform_and_lower(
        exported, partitioner=[ExamplePartitioner()]
    ).to_executorch()
    identity = manager._emitter_output.debug_identity
    strings, places = list(identity._strings), list(identity._places)
    [(name, [(origins, [(instruction, by_id, by_name)])], *_)] = identity._methods
    assert (name, instruction, strings[origins[0]]) == ("forward", 0, "ExampleBackend")
    assert places[origins[1]][2] == _line(Sum.forward, "x + y")
    operators = [strings[op] for op in by_id[1::3]]
    lines = [places[place][2] for place in by_id[2::3]]
    assert operators == ["aten::add.Tensor", "aten::mul.Tensor"]
    assert lines == [_line(Sum.forward, "x + y"), _line(Sum.forward, "z * y")]
    assert list(by_id[::3]) == sorted(by_id[::3]) and not by_name


def _place(file: str, line: int = 3, **stack: str) -> tuple[str, str, int]:
    trace = f'  File "{file}", line {line}, in forward\n    return self.f(x)\n'
    modules = {key: (path, "Module") for key, path in stack.items()}
    meta = {"stack_trace": trace, "nn_module_stack": modules}
    return place_of([SimpleNamespace(meta=meta)])  # type: ignore[list-item]


def test_files_keep_two_folders_and_no_home() -> None:
    assert _place("/srv/build/models/gpt/block.py")[1] == "models/gpt/block.py"
    assert _place(str(Path.home() / "block.py"))[1] == "block.py"
    assert _place("C:\\work\\gpt\\block.py")[1] == "work/gpt/block.py"
    assert _place("<stdin>")[1] == "<stdin>"


def test_frames_of_pytorch_are_not_the_users() -> None:
    inside = str(Path(torch.__file__).parent / "nn" / "modules" / "linear.py")
    trace = (
        '  File "/m/a/net.py", line 9, in forward\n    x = self.fc(x)\n'
        f'  File "{inside}", line 134, in forward\n    return F.linear(x)\n'
    )
    node = SimpleNamespace(meta={"stack_trace": trace})
    assert place_of([node]) == ("", "m/a/net.py", 9)  # type: ignore[list-item]


def test_module_paths_have_one_form() -> None:
    assert _place("net.py", a="", b="h.0.attn")[0] == "h.0.attn"
    assert _place("net.py", a="L['self']", b="L['self'].h.0.attn")[0] == "h.0.attn"
    assert _place("net.py", a="L['self']")[0] == ""
    assert _place("net.py")[0] == ""
