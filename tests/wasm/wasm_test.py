"""executorch.wasm under Node and in Chromium gives what eager PyTorch gives, or says why not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.browser import needs_chromium
from tests.wasm import programs
from tests.wasm.sides import HERE, MISSING, PACKAGE, Node, chromium_page, copy_package

pytestmark = pytest.mark.skipif(not (PACKAGE / "executorch.wasm").exists(), reason=MISSING)

Value = Callable[[str], Any]  # of a JavaScript expression


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, what expressions use, and programs."""
    path = tmp_path_factory.mktemp("package")
    copy_package(path)
    (path / "helpers.mjs").write_text((HERE / "helpers.mjs").read_text())
    for name, case in programs.CASES.items():
        (path / f"{name}.pte").write_bytes(case.program())
    for name, program in programs.other_programs().items():
        (path / f"{name}.pte").write_bytes(program)
    return path


@pytest.fixture(scope="module", params=["node", pytest.param("chromium", marks=needs_chromium)])
def value(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Value]:
    if request.param == "node":
        node = Node(folder)
        yield node.value
        node.close()
        return
    with chromium_page(folder, tmp_path_factory.mktemp("profile")) as page:
        yield page.value


def body(statements: str) -> str:
    """An expression that runs them."""
    return f"(async () => {{ {statements} }})()"


def described(tensor: Tensor) -> dict[str, Any]:
    """As helpers.mjs reads it; int64 as numbers."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"dtype": dtype, "sizes": list(tensor.shape), "data": tensor.reshape(-1).tolist()}


def tensor_of(written: dict[str, Any]) -> Tensor:
    dtype = getattr(torch, written["dtype"])
    return torch.tensor(written["data"], dtype=dtype).reshape(written["sizes"])


@pytest.mark.parametrize("name", programs.CASES)
def test_results_are_those_of_eager(value: Value, name: str) -> None:
    case = programs.CASES[name]
    for inputs in case.calls():
        given = json.dumps([described(x) for x in inputs])
        found = value(
            body(
                f"const module = await load('{name}.pte');"
                f"try {{ return module.forward({given}.map(read)).map(written); }}"
                "finally { module.delete(); }"
            )
        )
        expected = case.eager(inputs)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(
                tensor_of(one), other, rtol=case.tolerance, atol=case.tolerance
            )


def test_a_method_is_described(value: Value) -> None:
    found = value(
        body(
            "const module = await load('dense.pte');"
            "return [module.methods(), module.getMethods(), module.describe('forward')];"
        )
    )
    tensor = {"kind": "Tensor", "dtype": "float32", "isDynamic": True, "dimOrder": [0, 1]}
    description = {
        "name": "forward",
        "inputs": [tensor | {"name": "x", "sizes": [8, 4], "nbytes": 128}],
        "outputs": [tensor | {"name": "", "sizes": [8, 3], "nbytes": 96}],
    }
    assert found == [["forward"], ["forward"], description]


def test_inputs_are_given_by_name(value: Value) -> None:
    found = value(
        body(
            "const module = await load('dense.pte'); const x = Tensor.ones([2, 4]);"
            "const refused = (inputs) => {"
            "  try { module.forward(inputs); } catch (error) { return error.message; } };"
            "return [module.forward({ x })[0].data.join() === module.forward([x])[0].data.join(),"
            "  refused({ y: x }), refused({}), refused({ x: Tensor.ones([9, 4]) })];"
        )
    )
    same, unknown, missing, wrong = found
    assert same
    assert unknown == "forward: found an input 'y', expected x"
    assert missing == "forward: input 0 (x) was not given"
    assert "input 0 (x) has shape" in wrong


def test_upstreams_names_are_there(value: Value) -> None:
    found = value(
        body(
            "const module = await load('dtypes.pte'); module.loadMethod('forward');"
            "const meta = module.getMethodMeta('forward');"
            "return [meta.inputTags.map((tag) => tag.name),"
            "  meta.inputTensorMeta.map((info) => info.scalarType.name),"
            "  meta.outputTensorMeta[0].sizes, Tensor.full([2], 1n).scalarType.name,"
            "  Tensor.ones([2, 1]).data.join(), Tensor.fromIter([2], [1, 2].values()).data.join(),"
            "  (await load('dense.pte')).execute('forward', Tensor.ones([1, 4]))[0].sizes];"
        )
    )
    types = ["Float", "Double", "Char", "Byte", "Int", "Long", "Bool"]
    assert found == [["Tensor"] * 7, types, [3], "Long", "1,1", "1,2", [1, 3]]


def test_types_follow_from_arrays(value: Value) -> None:
    found = value(
        "[new Float64Array(1), new Int8Array(1), new Uint8Array(1), new BigInt64Array(1),"
        " [1], [1n], [true]].map((array) => Tensor.fromArray([1], array).dtype)"
    )
    assert found == ["float64", "int8", "uint8", "int64", "float32", "int64", "bool"]


@pytest.mark.parametrize(
    ("action", "parts"),
    [
        ("module.forward([Tensor.zeros([9, 4])])", ["ExecuTorchError: ", "input 0", "9", "8"]),
        ("module.forward([Tensor.zeros([2, 5])])", ["ExecuTorchError: ", "5", "4"]),
        ("module.forward([Tensor.zeros([4])])", ["input 0 (x) has rank 1, expected 2"]),
        ("module.forward([Tensor.zeros([2, 4], ScalarType.Long)])", ["ExecuTorchError: ", "Long"]),
        ("module.forward([])", ["forward: 0 inputs, expected 1"]),
        ("module.forward(['x'])", ["TypeError: forward: input 0 (x): found String, expected"]),
        ("module.execute('backward')", ["ExecuTorchError: ", "backward"]),
        ("Tensor.fromArray([2, 2], [1, 2, 3])", ["[2,2]: required 4 elements, given 3"]),
        ("Tensor.zeros([-1])", ["RangeError: ", "found -1"]),
        ("Module.load(7)", ["TypeError: Module.load: found Number"]),
        ("Module.load(null)", ["TypeError: Module.load: found null"]),
        ("Module.load(new ArrayBuffer(0))", ["ExecuTorchError: program_load_memory"]),
        ("load('missing.pte')", ["missing.pte"]),
    ],
)
def test_what_is_refused_says_why(value: Value, action: str, parts: list[str]) -> None:
    found = value(
        body(
            "const module = await load('dense.pte');"
            f"const said = await refusal(() => {action});"
            "module.forward([Tensor.zeros([1, 4])]); return said;"  # it goes on
        )
    )
    assert found is not None
    missing = [part for part in parts if part not in found]
    assert not missing, found


def test_damaged_programs_are_errors(value: Value) -> None:
    """Some damage is not seen, as that of a weight; none stops the instance."""
    outcomes = value(
        body(
            "const outcomes = { ran: 0, refused: 0, other: [] };"
            "for (const name of ['dense.pte', 'gpt.pte', 'quantized.pte']) {"
            "  const whole = await bytes(name);"
            "  let state = 1;"
            "  const random = (n) => (state = (state * 48271) % 2147483647) % n;"
            "  for (let i = 0; i < 150; ++i) {"
            "    let damaged = whole.slice();"
            "    if (i % 10 === 0) damaged = damaged.slice(0, random(whole.length));"
            "    else for (let k = 0; k < 4; ++k)"
            "      damaged[random(Math.min(whole.length, 3000))] = random(256);"
            "    const said = await refusal(async () => {"
            "      const module = await Module.load(damaged);"
            "      try { module.forward(module.describe().inputs.map("
            "        ({ sizes, dtype }) => read({ sizes, dtype,"
            "          data: new Array(sizes.reduce((a, b) => a * b, 1)).fill(0) }))); }"
            "      finally { module.delete(); }"
            "    });"
            "    if (said === null) outcomes.ran += 1;"
            "    else if (said.startsWith('ExecuTorchError: ')) outcomes.refused += 1;"
            "    else outcomes.other.push(`${name} ${i}: ${said}`);"
            "  }"
            "}"
            "return outcomes;"
        )
    )
    stopped = [said for said in outcomes["other"] if "stopped" in said]
    assert not stopped
    assert outcomes["refused"] > 100


def test_memory_is_freed(value: Value) -> None:
    before, after = value(
        body(
            "const size = async () => (await Runtime.get()).wasm.memory.buffer.byteLength;"
            "const use = async () => { const module = await load('gpt.pte');"
            "  module.forward([Tensor.zeros([1, 5], ScalarType.Long)]); module.delete();"
            "  return refusal(() => module.forward([])); };"
            "for (let i = 0; i < 5; ++i) await use();"
            "const before = await size();"
            "for (let i = 0; i < 40; ++i)"
            "  if (await use() !== 'Error: Module: deleted') return [0, 1];"
            "return [before, await size()];"
        )
    )
    assert 0 < after == before


def test_state_stays_in_a_module(value: Value) -> None:
    found = value(
        body(
            "const [a, b] = [await load('counter.pte'), await load('counter.pte')];"
            "const one = (module) => module.forward([Tensor.ones([1])])[0].data[0];"
            "return [one(a), one(a), one(b), one(a)];"
        )
    )
    assert found == [1, 2, 1, 3]


def test_too_much_memory_is_an_error(value: Value) -> None:
    said = value(
        body(
            "const runtime = await Runtime.get();"
            "return refusal(() => { for (;;) runtime.allocate(2 ** 30); });"
        )
    )
    assert said == f"ExecuTorchError: out of memory: {2**30} bytes"
    # What was taken is of the instance that is left here.
    value("Runtime.get().then((runtime) => refusal(() => runtime.run('no such function')))")
    assert value(body("return (await load('dense.pte')).methods()")) == ["forward"]


def test_an_instance_that_was_stopped_is_replaced(value: Value) -> None:
    found = value(
        body(
            "const module = await load('dense.pte');"
            "const runtime = await Runtime.get();"
            "await refusal(() => runtime.run('no such function'));"
            "const said = await refusal(() => module.forward([Tensor.zeros([1, 4])]));"
            "module.delete();"
            "return [said, (await load('dense.pte')).methods()];"
        )
    )
    assert found == ["Error: executorch.wasm was stopped", ["forward"]]


def test_numbers_and_absent_tensors_go_in_and_out(value: Value) -> None:
    found = value(
        body(
            "const module = await load('scaled.pte');"
            "return [module.describe().inputs.map(({ kind }) => kind),"
            "  module.forward([Tensor.ones([2]), 3n]).map(written),"
            "  await refusal(() => module.forward([Tensor.ones([2]), 4n]))];"
        )
    )
    kinds, (scaled,), refused = found
    assert kinds == ["Tensor", "Int"]
    assert scaled["data"] == [3, 3]
    assert refused.startswith("ExecuTorchError: ") and "4" in refused
    assert math.isfinite(scaled["data"][0])
