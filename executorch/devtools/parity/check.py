"""Whether a written program, run by the C++ runtime, computes what the model computes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.export import ExportedProgram

from executorch.devtools.parity.bounds import map_floats
from executorch.devtools.parity.compare import Difference, compare
from executorch.devtools.parity.inputs import boundary_inputs
from executorch.devtools.parity.origin import Origins
from executorch.devtools.parity.replay import Replay, Suspect
from executorch.exir.error import first_line
from executorch.exir.recurrent import dynamic_steps
from executorch.exir.side_effects import copied, unchanged_buffers
from executorch.exir.torch_internals import tree_flatten, tree_map

# The runtime's error may be this many times that of eager PyTorch, both against float64.
_FACTOR = 8
_ROUNDINGS = 16  # and these of the largest element


@dataclass(frozen=True)
class Case:
    """One set of inputs. `error` is empty if every output is within its bound."""

    name: str
    error: str = ""
    skipped: str = ""  # why eager PyTorch could not be asked
    worst: float = 0.0  # the largest difference, in bounds: above 1 is an error

    def __str__(self) -> str:
        if self.skipped:
            return f"skip  {self.name}: {self.skipped}"
        if self.error:
            return f"FAIL  {self.name}: {self.error}"
        return f"pass  {self.name}: {self.worst:.2f} of the bound"


@dataclass
class ParityReport:
    method: str
    cases: list[Case] = field(default_factory=list)
    suspects: list[Suspect] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        ran = [c for c in self.cases if not c.skipped]
        return bool(ran) and not any(c.error for c in ran)

    def __str__(self) -> str:
        lines = [str(c) for c in self.cases]
        if self.suspects:
            lines.append(f"first operator beyond its bound: {self.suspects[0]}")
            lines += [f"  then: {s}" for s in self.suspects[1:]]
        elif not self.passed and self.checked:
            lines.append(
                f"{sum(self.checked.values())} operators of {len(self.checked)} kinds agree with "
                "PyTorch on their own arguments: the program does not compute what the model does"
            )
        for name, reason in self.unchecked.items() if not self.passed else ():
            lines.append(f"  not checked: {name} ({reason})")
        lines.append(f"{self.method}: " + ("PASS" if self.passed else "FAIL"))
        return "\n".join(lines)

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "passed": self.passed})


def check_parity(
    program: str | Path | bytes | Any,
    model: torch.nn.Module | ExportedProgram | Callable[..., Any],
    inputs: tuple[Any, ...] | Sequence[tuple[Any, ...]],
    *,
    dynamic_shapes: Any = None,
    method: str = "forward",
    before_quantization: Callable[..., Any] | None = None,
    max_suspects: int = 3,
    progress: Callable[[str], None] = lambda text: None,
) -> ParityReport:
    """Compare `program` in the C++ runtime with `model` in eager PyTorch: on `inputs`, and on the
    boundary sizes (1, 2, a prime, max - 1, max) of every dynamic dimension.

    program  a path, the bytes of a .pte, or a manager with `.buffer`; upstream's files too
    model    what it was exported from (a quantized program: the converted model)
    inputs   one tuple of arguments, or several
    dynamic_shapes  as for torch.export; not needed if `model` is an ExportedProgram
    before_quantization  the model that `model` was quantized from: backends may choose the scales
             of activations for each row, where the converted model has one for the tensor

    An output may be 8 times as far from the result in float64 as eager PyTorch's is, and 16
    roundings of its largest element, or, with `before_quantization`, twice as far as quantization
    itself moves it; integers must be equal. After a failure the run is repeated
    step by step; `suspects` are the first operators whose result rounding does not explain.
    Raises ValueError for inputs that are no tuples or a method the program lacks.
    """
    from executorch.runtime import Runtime

    data = _bytes(program)
    loaded = Runtime.get().load_program(data)
    if method not in loaded.method_names:
        raise ValueError(f"method {method!r}: the program has {sorted(loaded.method_names)}")
    given = _tuples(inputs)
    report = ParityReport(method)
    exported = model if isinstance(model, ExportedProgram) else None
    if exported is None and dynamic_shapes is not None:
        progress("export for the ranges of its sizes")
        with dynamic_steps():
            exported = torch.export.export(
                cast(Any, model), given[0], dynamic_shapes=dynamic_shapes
            )
    eager = _Eager(model, before_quantization)

    def runner() -> Any:
        """The method with memory and state of its own."""
        return loaded._program.load_method(method)

    failed: tuple[Any, ...] | None = None
    for name, case in _cases(given, exported, loaded.metadata(method)):
        progress(name)
        report.cases.append(_run(name, case, eager, runner()))
        if failed is None and report.cases[-1].error:
            failed = case
    if failed is not None:
        progress("search for the operator")
        replay = Replay.of(data, method)
        origins = Origins(replay.plan, runner(), exported, model, failed)
        found = replay.suspects(runner(), tree_flatten(copied(failed))[0])
        report.suspects = [origins.place(s) for s in islice(found, max_suspects)]
        report.checked, report.unchecked = replay.checked, replay.unchecked
    return report


def _bytes(program: Any) -> bytes:
    if isinstance(program, (str, Path)):
        return Path(program).read_bytes()
    return bytes(program if isinstance(program, (bytes, bytearray)) else program.buffer)


def _tuples(inputs: tuple[Any, ...] | Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    given = [inputs] if isinstance(inputs, tuple) else list(inputs)
    if not given or not all(isinstance(i, tuple) for i in given):
        raise ValueError("inputs: expected a tuple of arguments, or a list of such tuples")
    return given


def _cases(
    given: Sequence[tuple[Any, ...]], exported: ExportedProgram | None, meta: Any
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for i, case in enumerate(given):
        yield f"inputs {i}" if len(given) > 1 else "the given inputs", case
    if exported is None:
        return
    largest: list[Sequence[int] | None] = []
    for i, value in enumerate(tree_flatten(given[0])[0]):
        largest.append(meta.input_tensor_meta(i).sizes() if isinstance(value, Tensor) else None)
    yield from boundary_inputs(exported, given[0], largest)


class _Eager:
    """The model, whose state is what it was after each call."""

    def __init__(self, model: Any, before_quantization: Any) -> None:
        self.model = model.module() if isinstance(model, ExportedProgram) else model
        self.before_quantization = before_quantization
        self._wide: Any = None
        self._refuses_double = False

    def __call__(self, inputs: tuple[Any, ...]) -> list[Any]:
        return _run_model(self.model, inputs)

    def in_double(self, inputs: tuple[Any, ...]) -> list[Any] | None:
        """The same in float64; None if the model insists on its own types."""
        if self._refuses_double:
            return None
        try:
            if self._wide is None:
                self._wide = _in_double(self.model)
            return _run_model(self._wide, tree_map(lambda v: map_floats(v, Tensor.double), inputs))
        except Exception:  # fixed types somewhere in the model's code
            self._refuses_double = True
            return None


def _in_double(model: Any) -> Any:
    """A copy that computes in float64, also where the graph of an exported program says float32."""
    wide = copy.deepcopy(model)
    if not isinstance(wide, torch.nn.Module):
        return wide
    for module in wide.modules():
        if isinstance(module, torch.fx.GraphModule):
            _say_double(module)
    return wide.double()


def _say_double(module: torch.fx.GraphModule) -> None:
    def widened(value: Any) -> Any:
        return torch.float64 if value is torch.float32 else value

    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            module.graph.erase_node(node)
        else:
            node.args = tree_map(widened, node.args)
            node.kwargs = tree_map(widened, node.kwargs)
    module.recompile()


def _run_model(model: Any, inputs: tuple[Any, ...]) -> list[Any]:
    unchanged = unchanged_buffers(model) if isinstance(model, torch.nn.Module) else nullcontext()
    with torch.no_grad(), unchanged:
        outputs = model(*copied(inputs))
        return [o.clone() if isinstance(o, Tensor) else o for o in tree_flatten(outputs)[0]]


def _run(name: str, inputs: tuple[Any, ...], eager: _Eager, runner: Any) -> Case:
    try:
        expected = eager(inputs)
    except Exception as error:
        return Case(name, skipped=f"eager PyTorch: {first_line(error)[:200]}")
    try:
        found = runner.call(tree_flatten(copied(inputs))[0])
    except RuntimeError as error:
        return Case(name, error=str(error))
    if len(found) < len(expected):
        return Case(name, error=f"{len(found)} outputs, expected {len(expected)}")
    original = eager.before_quantization
    unquantized = _run_model(original, inputs) if original is not None else None
    wide = eager.in_double(inputs) if original is None else None
    worst = 0.0
    for i, output in enumerate(expected):
        message, bounds = _output(
            found[i],
            output,
            wide[i] if wide is not None else None,
            unquantized[i] if unquantized is not None else None,
        )
        if message:
            return Case(name, error=f"output {i}: {message}", worst=bounds)
        worst = max(worst, bounds)
    return Case(name, worst=worst)


def _output(found: Any, expected: Any, wide: Any, unquantized: Any) -> tuple[str, float]:
    if not isinstance(expected, Tensor):
        same = found == expected or (found != found and expected != expected)
        return ("" if same else f"found {found!r}, expected {expected!r}"), 0.0
    if not isinstance(found, Tensor):
        return f"found {found!r}, expected a tensor", 0.0
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return (
            f"found {found.dtype} {list(found.shape)}, expected {expected.dtype} "
            f"{list(expected.shape)}"
        ), 0.0
    allowed = torch.zeros(())
    reference = expected
    if expected.is_floating_point() and expected.numel():
        unit = torch.finfo(expected.dtype).eps
        finite = expected.double().nan_to_num(0.0, 0.0, 0.0).abs().amax()
        allowed = _ROUNDINGS * unit * finite
        if isinstance(wide, Tensor) and wide.shape == expected.shape:
            reference = wide
            own = (wide - expected.double()).abs().nan_to_num(0.0, 0.0, 0.0)
            allowed = allowed + _FACTOR * own.amax()
        if isinstance(unquantized, Tensor):
            moved = (unquantized.double() - expected.double()).abs().nan_to_num(0.0, 0.0, 0.0)
            allowed = allowed + 2 * moved.amax()
    message, difference = compare(found, reference, allowed)
    if message:
        return message, _in_bounds(difference)
    off = (found.double() - reference.double()).abs().nan_to_num(0.0, 0.0, 0.0)
    return "", float(off.amax() / allowed) if off.numel() and float(allowed) > 0 else 0.0


def _in_bounds(difference: Difference | None) -> float:
    if difference is None or difference.bound == 0:
        return float("inf")
    return abs(difference.found - difference.expected) / difference.bound
