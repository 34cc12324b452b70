"""Kernel yamls as torchgen's objects."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torchgen
import yaml
from torchgen.model import DispatchKey, OperatorName

from executorch.codegen.kernel_yaml import parse_kernel_yaml
from executorch.codegen.model import ETKernelIndex, ETKernelKey, ETKernelKeyOpArgMeta
from executorch.codegen.parse import (
    extract_kernel_fields,
    parse_et_yaml,
    parse_et_yaml_struct,
    parse_from_yaml,
    strip_et_fields,
)
from executorch.codegen.selection import CodegenError

TAGS = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "tags.yaml"
SCALE = """
- func: my::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
  type_alias: {T: [Float, Double], U: [Int]}
  dim_order_alias: {D: [0, 1], V: [0]}
  kernels:
    - {arg_meta: null, kernel_name: my::scale_out}
    - {arg_meta: {x: [T, D], y: [U, V], out: [T, D]}, kernel_name: my::scale_2d}
"""


def entries() -> list[dict[str, Any]]:
    return yaml.safe_load(SCALE)


def test_kernels_have_the_keys_that_they_are_registered_with(tmp_path: Path) -> None:
    index = parse_et_yaml_struct(entries())
    kernels = index.index[OperatorName.parse("scale.out")]
    found = {key.to_native_string(): kernel.kernel for key, kernel in kernels.items()}
    assert found == {
        "default": "scale_out",
        "v1/6;0,1|3;0|6;0,1": "scale_2d",
        "v1/7;0,1|3;0|7;0,1": "scale_2d",
    }
    assert {kernel.cpp_namespace for kernel in kernels.values()} == {"my::native"}
    (tmp_path / "kernels.yaml").write_text(SCALE)
    built = parse_kernel_yaml(tmp_path / "kernels.yaml")
    assert {kernel.key: kernel.name for kernel in built} == found


def test_entries_without_kernels_are_left_out() -> None:
    assert parse_from_yaml({"func": "f() -> ()"}) == {}
    assert parse_et_yaml_struct([{"func": "f() -> ()"}]).index == {}


def test_fields_that_torchgen_does_not_know_are_taken_out() -> None:
    content = entries()
    fields = extract_kernel_fields(content)
    assert list(fields) == [OperatorName.parse("scale.out")]
    assert set(fields[OperatorName.parse("scale.out")]) == set(content[0]) - {"func"}
    strip_et_fields(content)
    assert list(content[0]) == ["func"]


def test_files_are_read_by_torchgen(tmp_path: Path) -> None:
    (tmp_path / "kernels.yaml").write_text(SCALE.replace("my::", ""))
    functions, fields = parse_et_yaml(str(tmp_path / "kernels.yaml"), str(TAGS))
    assert [str(function.func.name) for function in functions] == ["scale.out"]
    index = parse_et_yaml_struct([{"func": str(f.func)} | fields[f.func.name] for f in functions])
    assert len(index.get_kernels(functions[0])) == 3
    assert index.has_kernels(functions[0])
    assert not ETKernelIndex({}).has_kernels(functions[0])


def test_indices_are_merged_and_grown() -> None:
    name = OperatorName.parse("scale.out")
    index = parse_et_yaml_struct(entries())
    kernel = next(iter(index.index[name].values()))
    other = ETKernelIndex.from_backend_indices({DispatchKey.CPU: {name: kernel}})
    assert other.index == {name: {ETKernelKey(default=True): kernel}}
    before = copy.deepcopy(index)
    merged = ETKernelIndex.merge_indices(other, index)
    assert merged == index == before
    other_name = OperatorName.parse("shift.out")
    assert index.grow({DispatchKey.CPU: {other_name: kernel}}) is index
    assert list(index.index) == [name, other_name]


def test_keys_of_one_dimension_have_no_comma() -> None:
    assert ETKernelKeyOpArgMeta("x", "Float", (0,)).to_native_string() == "6;0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"func": None}, "an entry needs `func`, a schema, found None"),
        ({"func": "nonsense"}, "nonsense: not a schema"),
        ({"type_alias": {}}, "argument x: alias T is not defined"),
        ({"dim_order_alias": {}}, "argument x: alias D is not defined"),
        ({"type_alias": {"T": ["Int", "Int"], "U": ["Int"]}}, "two kernels for v1/3;0,1"),
        ({"kernels": [{"arg_meta": None}]}, "a kernel needs a `kernel_name`"),
        ({"kernels": {}}, None),
        ({"kernels": 3}, "`kernels`: expected a list of maps, found 3"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert parse_et_yaml_struct([entries()[0] | change]).index == {}
        return
    with pytest.raises(CodegenError, match=message):
        parse_et_yaml_struct([entries()[0] | change])


def test_operators_are_there_once() -> None:
    with pytest.raises(CodegenError, match="scale.out is there twice"):
        parse_et_yaml_struct(entries() * 2)
