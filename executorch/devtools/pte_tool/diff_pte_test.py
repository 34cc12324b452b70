import copy

import pytest
import torch
from torch.export import export

from executorch.devtools.pte_tool.diff_pte import diff_pte, format_diff_result, main
from executorch.exir import to_edge
from executorch.exir._serialize._program import deserialize_pte_binary, serialize_pte_binary
from executorch.exir.schema import Int, Null, Tensor


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        return torch.cumsum(self.linear(x), 1)


@pytest.fixture(scope="module")
def model() -> Layer:
    torch.manual_seed(0)
    return Layer()


def pte(model) -> bytes:
    manager = to_edge(export(model, (torch.ones(4, 3),)))
    return manager.to_executorch(named_data={"words": b"abc"}).buffer


def edited(data: bytes, edit) -> bytes:
    file = deserialize_pte_binary(data)
    edit(file.program.execution_plan[0], file.program)
    return bytes(serialize_pte_binary(file))


def test_equal_files_are_equal(model) -> None:
    data = pte(model)
    result = diff_pte(data, bytes(bytearray(data)), "one.pte", "other.pte")
    assert result.bitwise_equal and not result.plan_diffs
    text = format_diff_result(result)
    assert "bitwise equal" in text and "one.pte" in text and "other.pte" in text


def test_changed_weights_are_found_element_by_element(model) -> None:
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.linear.bias[1] += 0.5
    result = diff_pte(pte(model), pte(other))
    (tensor,) = [t for t in result.plan_diffs[0].tensor_diffs if t.bytes_differ]
    assert (tensor.num_elements, tensor.num_differing) == (2, 1)
    assert tensor.max_abs_diff == pytest.approx(0.5) == 2 * tensor.mean_abs_diff
    (element,) = tensor.element_diffs
    assert (element.flat_index, element.multi_index) == (1, (1,))
    assert element.value_a == model.linear.bias[1].item()
    assert tensor.tensor_a.operator_usages[0].name == "aten::addmm.out"
    text = format_diff_result(result, verbose=True)
    assert "1 of 2 elements differ" in text and "byte sizes: 8 vs 8" in text
    assert diff_pte(pte(model), pte(other), max_samples=0).plan_diffs[0].tensor_diffs


def test_values_operators_and_versions_are_compared(model) -> None:
    data = pte(model)

    def number(plan, program):
        at = next(i for i, v in enumerate(plan.values) if v.val == Int(1))
        plan.values[at].val = Int(7)

    (diff,) = diff_pte(data, edited(data, number)).plan_diffs[0].evalue_diffs
    (field,) = diff.field_diffs
    assert (field.field_name, field.value_a, field.value_b) == ("int_val", 1, 7)

    def nothing(plan, program):
        at = next(i for i, v in enumerate(plan.values) if v.val == Int(1))
        plan.values[at].val = Null()
        plan.operators[0].name = "aten::other"
        program.version = 1

    result = diff_pte(data, edited(data, nothing))
    (plan,) = result.plan_diffs
    assert plan.evalue_diffs[0].type_mismatch and plan.operators_only_in_b == ["aten::other.out"]
    assert (result.version_a, result.version_b) == (0, 1)
    assert "Version: 0 vs 1" in format_diff_result(result)


def test_shapes_of_tensors_are_compared(model) -> None:
    data = pte(model)

    def grow(plan, program):
        at = next(i for i, v in enumerate(plan.values) if isinstance(v.val, Tensor))
        plan.values[at].val.requires_grad = not plan.values[at].val.requires_grad

    (tensor,) = diff_pte(data, edited(data, grow)).plan_diffs[0].tensor_diffs
    assert [f.field_name for f in tensor.metadata_diffs] == ["requires_grad"]
    assert not tensor.bytes_differ


def test_methods_and_named_data_of_one_side_are_listed(model) -> None:
    programs = {name: export(model, (torch.ones(4, 3),)) for name in ("forward", "other")}
    both = to_edge(programs).to_executorch().buffer
    result = diff_pte(both, pte(model))
    assert result.extra_plans_in_a == ["other"]
    assert {(d.key, d.only_in) for d in result.named_data_diffs if d.key == "words"} == {
        ("words", "B")
    }
    assert "Named data 'words': only in B" in format_diff_result(result)


def test_what_is_no_program_is_an_error(model, tmp_path, capsys) -> None:
    result = diff_pte(b"", pte(model))
    assert not result.bitwise_equal and "Deserialization failed: A: " in result.error
    odd = pte(model).replace(b"forward", b"forwar\xff")
    result = diff_pte(pte(model), odd, path_b="odd.pte")
    assert result.error.endswith(r"odd.pte: a text in it is not UTF-8: forwar\xff")
    (tmp_path / "a.pte").write_bytes(pte(model))
    names = [str(tmp_path / "a.pte"), str(tmp_path / "a.pte")]
    assert main(names) == 0 and "bitwise equal" in capsys.readouterr().out
    assert main([names[0], str(tmp_path / "missing.pte")]) == 2
