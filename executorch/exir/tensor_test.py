import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv

from executorch.exir.tensor import (
    AddressSpaceOverflowException,
    TensorSpec,
    dim_order_from_stride,
    dim_order_of,
    make_allocation_info,
    make_tensor_value,
    scalar_type_enum,
    stride_from_dim_order,
)


@given(st.permutations(range(4)), st.lists(st.integers(2, 5), min_size=4, max_size=4))
def test_dim_order_and_strides_are_inverse(order, sizes):
    assert dim_order_from_stride(stride_from_dim_order(sizes, order)) == tuple(order)


@pytest.mark.parametrize(
    ("tensor", "order"),
    [
        (torch.empty(2, 3, 4, 5), (0, 1, 2, 3)),
        (torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last), (0, 2, 3, 1)),
        (torch.empty(2, 1, 4, 5).to(memory_format=torch.channels_last), (0, 1, 2, 3)),
        (torch.empty(3, 4).t(), (1, 0)),
        (torch.empty(1, 4).t(), (0, 1)),
        (torch.empty(0, 4), (0, 1)),
        (torch.empty(()), ()),
    ],
)
def test_dim_order_of_a_tensor(tensor, order):
    found = dim_order_of(tensor)
    assert found == order or tensor.is_contiguous(memory_format=torch.channels_last)
    permuted = tensor.permute(found)
    assert permuted.is_contiguous()


def test_expanded_tensors_are_refused():
    with pytest.raises(RuntimeError, match="contiguous"):
        TensorSpec.from_tensor(torch.empty(3, 1).expand(3, 4))


def test_strides_of_unknown_sizes_are_ordered_where_one_is_a_multiple():
    environment = ShapeEnv()
    u, v = environment.create_unbacked_symint(), environment.create_unbacked_symint()
    assert dim_order_from_stride((1, u)) == (1, 0)
    assert dim_order_from_stride((u, 2 * u, u)) == (1, 0, 2)
    assert dim_order_from_stride((4 * u * v, 1, 4 * u, 4)) == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="contain 0"):
        dim_order_from_stride((u, 0))
    with pytest.raises(GuardOnDataDependentSymNode):
        dim_order_from_stride((u, v))


def test_offsets_are_split_into_words():
    info = make_allocation_info(1, 5 << 32 | 7)
    assert (info.memory_offset_low, info.memory_offset_high) == (7, 5)
    assert info.memory_offset == 5 << 32 | 7
    with pytest.raises(AddressSpaceOverflowException):
        make_allocation_info(1, 1 << 64)


def test_extents_beyond_int32_are_refused():
    with pytest.raises(ValueError, match="2147483647"):
        make_tensor_value(0, None, TensorSpec(torch.uint8, [1 << 31]))


def test_the_runtime_takes_16_dimensions():
    assert make_tensor_value(0, None, TensorSpec(torch.uint8, [1] * 16)).sizes == [1] * 16
    with pytest.raises(ValueError, match="17 dimensions, the runtime takes at most 16"):
        make_tensor_value(0, None, TensorSpec(torch.uint8, [1] * 17))


def test_sizes_are_aligned():
    spec = TensorSpec(torch.float32, [3, 3])
    assert (spec.nbytes(), spec.allocated_memory, spec.realign(64)) == (36, 48, 64)


def test_dtypes_without_a_scalar_type_are_named():
    with pytest.raises(ValueError, match="uint4"):
        scalar_type_enum(torch.uint4)


def test_a_spec_may_lie_at_the_start_of_another():
    base, child = TensorSpec(torch.float32, [4]), TensorSpec(torch.float32, [4])
    assert child.inplace_base is None
    child.inplace_base = base
    assert child.storage_base is base and child.inplace_base is base
    child.storage_base_offset = 4
    with pytest.raises(ValueError, match="begins at offset 4"):
        child.inplace_base  # noqa: B018
    with pytest.raises(ValueError, match="storage_base_offset is 0; it is 4"):
        child.inplace_base = base


def test_negative_offsets_are_refused():
    with pytest.raises(ValueError, match="offset -1 is negative"):
        make_allocation_info(1, -1)
