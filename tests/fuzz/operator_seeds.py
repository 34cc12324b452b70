"""Write a program of one instruction for each operator of the kernel table, for several types.

python -m tests.fuzz.operator_seeds FOLDER

FOLDER is left as it is if it holds what these sources write. The samples are those of tests/ops,
the smallest first; prim operators and those that write into their arguments have theirs here.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from tests.fuzz import llm_operator_seeds
from tests.ops import (  # noqa: F401  (they add their rows)
    samples_beyond_core,
    samples_of_gradients,
    samples_of_quantized,
    samples_of_shapes,
)
from tests.ops.oracle import expected, overload
from tests.ops.program import Builder, Call
from tests.ops.samples import SAMPLES, Maker

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = ROOT / "executorch" / "exir" / "operators.txt"

MOST_DTYPES = 8  # of an operator, spread over those it takes
MOST_SAMPLES = 3  # of a dtype
LARGEST = 2048  # elements of a sample's tensors


def elements(arg: Any) -> int:
    if isinstance(arg, (list, tuple)):
        return sum(map(elements, arg))
    return arg.numel() if isinstance(arg, torch.Tensor) else 0


def spread(items: list[Any], most: int) -> list[Any]:
    step = max(1.0, len(items) / most)
    return [items[int(i * step)] for i in range(min(most, len(items)))]


def table_calls(name: str) -> Iterator[tuple[str, Call]]:
    """Calls of the operator by samples of tests/ops, with what tells them apart."""
    row = SAMPLES.get(name.removeprefix("aten::"))
    if row is None:
        return
    out = overload(name)
    list_out = str(out._schema.arguments[-1].type).startswith("List")
    for dtype in spread(list(row.dtypes), MOST_DTYPES):
        made = row.make(Maker(dtype))
        samples = [args for args in made if elements(args) <= LARGEST] or [min(made, key=elements)]
        for i, args in enumerate(spread(samples, MOST_SAMPLES)):
            want = expected(out, args, dtype)
            yield f"{str(dtype).removeprefix('torch.')}--{i}", Call(name, args, want, (), list_out)


def other_calls(name: str) -> Iterator[tuple[str, Call]]:
    """What tests/ops has no samples of: copies between devices, and what writes its arguments."""
    for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool):
        m = Maker(dtype)
        label = str(dtype).removeprefix("torch.")
        if name in ("et_copy::_d2h_copy.out", "et_copy::_h2d_copy.out"):
            yield f"{label}--0", Call(name, [m(2, 3)], [m(2, 3)])
        if name == "aten::copy_":
            for i, (to, source) in enumerate([(m(2, 3), m(3)), (m.last(1, 2, 3, 4), m(2, 1, 1))]):
                yield f"{label}--{i}", Call(name, [to, source, False], [to], (0,))
        if name == "aten::index_put_":
            x, values = m(4, 5), m(2, 5)
            for i, accumulate in enumerate([False, True]):
                args = [x, (torch.tensor([0, 3]), None), values, accumulate]
                yield f"{label}--{i}", Call(name, args, [x], (0,))
        if name == "aten::_native_batch_norm_legit.out" and dtype.is_floating_point:
            mean, var = m(3), m(3, low=1)
            for i, training in enumerate([False, True]):
                args = [m(2, 3, 4), m(3), m(3), mean, var, training, 0.1, 1e-5]
                results = [mean, var, m(2, 3, 4), m(3), m(3)]
                yield f"{label}--{i}", Call(name, args, results, (3, 4))


# Arguments of prim operators; the last value is where the result goes.
PRIM: dict[str, list[list[Any]]] = {
    "aten::sym_size.int": [[torch.ones(2, 3), 1, 0]],
    "aten::sym_stride.int": [[torch.ones(2, 3), 1, 0]],
    "aten::sym_numel": [[torch.ones(2, 3), 0]],
    "aten::sym_storage_offset": [[torch.ones(2, 3), 0]],
    "aten::_local_scalar_dense": [
        [torch.tensor(value, dtype=dtype), 0]
        for value, dtype in [(3, torch.int64), (1.5, torch.float32), (True, torch.bool)]
    ],
    "executorch_prim::sym_not.Scalar": [[True, False]],
    "executorch_prim::sym_float.Scalar": [[3, 0.0], [True, 0.0]],
    "executorch_prim::sym_int.Scalar": [[3.5, 0], [True, 0]],
    "executorch_prim::sym_ite.Scalar": [[True, 1, 2.5, 0]],
    "executorch_prim::neg.Scalar": [[3, 0], [2.5, 0.0]],
    **{f"executorch_prim::{name}.Scalar": [[2.5, 0]] for name in ("ceil", "round", "trunc")},
    **{
        f"executorch_prim::{name}.Scalar": [[7, 2, 0], [2.5, 2, 0.0]]
        for name in (*("add", "sub", "mul", "floordiv", "truediv"), *("eq", "gt", "lt", "ge", "le"))
    },
    **{
        f"executorch_prim::{name}": [[7, 2, 0]]
        for name in ("mod.Scalar", "mod.int", "floordiv.int", "sym_max.Scalar", "sym_min.Scalar")
    },
}


def add_prim_call(builder: Builder, name: str, args: list[Any]) -> None:
    """Calls `name`; its result, a number, is the size of a tensor that is made then."""
    values = [builder.argument(arg) for arg in args]
    add_kernel(builder, name, values)
    if isinstance(args[-1], (bool, float)):
        return
    sizes = builder.values[builder.argument([2])].val
    sizes.items = [values[-1]]
    size_list = len(builder.values) - 1
    out = builder.tensor(torch.ones(8), buffer=0, planned=True, slack=8)
    add_kernel(builder, "aten::full.out", [size_list, builder.argument(1.0), out, out])
    builder.outputs.append(out)


def add_kernel(builder: Builder, name: str, values: list[int]) -> None:
    from executorch.exir import schema

    base, _, variant = name.partition(".")
    builder.operators.append(schema.Operator(base, variant))
    kernel = schema.KernelCall(len(builder.operators) - 1, values)
    builder.instructions.append(schema.Instruction(kernel))


def tensor_prim(name: str) -> Builder | None:
    """The two prim operators on tensors."""
    builder = Builder()
    if name == "executorch_prim::et_view.default":
        base = builder.variable(torch.arange(12.0))
        out = builder.tensor(torch.ones(3, 4), buffer=0, planned=False)
        add_kernel(builder, name, [base, builder.argument([3, 4]), out])
        builder.values[out].val.shape_dynamism = 1
    elif name == "executorch_prim::et_copy_index.tensor":
        out = builder.tensor(torch.ones(4, 3), buffer=0, planned=True, slack=4)
        row, index, one = builder.argument(torch.ones(3)), builder.argument(0), builder.argument(1)
        for _ in range(2):
            add_kernel(builder, name, [out, row, index])
            add_kernel(builder, "executorch_prim::add.Scalar", [index, one, index])
    else:
        return None
    builder.outputs.append(out)
    return builder


def programs_of(name: str) -> Iterator[tuple[str, bytes]]:
    for i, args in enumerate(PRIM.get(name, [])):
        builder = Builder()
        add_prim_call(builder, name, args)
        yield f"prim--{i}", builder.program()
    if (made := tensor_prim(name)) is not None:
        yield "prim--0", made.program()
    for calls in (table_calls, other_calls, llm_operator_seeds.llm_calls):
        for label, call in calls(name):
            # Constants, or memory that mutants can lay over that of the results.
            for place, plans in {"": False, "--planned": True}.items():
                builder = Builder(plans_arguments=plans)
                builder.call(call)
                yield label + place, builder.program()


def stamp_of(*sources: Path) -> str:
    """Of everything that seeds follow from."""
    digest = hashlib.sha256(torch.__version__.encode())
    for source in [*sources, ROOT / "executorch" / "schema" / "program.fbs"]:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def is_current(folder: Path, stamp: str) -> bool:
    """Whether `folder` holds the seeds of that stamp; if not, it is emptied."""
    note = folder / "stamp.txt"
    if note.exists() and note.read_text() == stamp:
        print(f"{folder.name}: {len(list(folder.glob('*.pte')))} programs are there")
        return True
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.pte"), *folder.glob("stamp.txt")]:
        old.unlink()
    return False


def write(folder: Path) -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sources = [Path(__file__), Path(llm_operator_seeds.__file__)]
    wanted = stamp_of(OPERATORS, *sources, *sorted((ROOT / "tests" / "ops").glob("*.py")))
    if is_current(folder, wanted):
        return
    names = OPERATORS.read_text().split()
    count, missing = 0, []
    for i, name in enumerate(names):
        found = 0
        for label, program in programs_of(name):
            (folder / f"{name}--{label}.pte").write_bytes(program)
            found += 1
        count += found
        if not found:
            missing.append(name)
        if sys.stdout.isatty():
            print(f"\r\x1b[K{i + 1} of {len(names)} operators, {count} programs", end="")
    print(f"\roperator seeds: {count} programs of {len(names)} operators")
    if missing:
        raise SystemExit(f"operator seeds: no samples of {', '.join(missing)}")
    (folder / "stamp.txt").write_text(wanted)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
