from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from executorch.examples.models.llama import kv_cache
from executorch.examples.models.llama.attention import KVCache, RingKVCache
from executorch.examples.models.llama.llama_transformer import construct_transformer
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.examples.models.llama.source_transformation.custom_kv_cache import (
    CustomKVCache,
    CustomRingKVCache,
    QuantizedCacheType,
    QuantizedKVCache,
    QuantizedRingKVCache,
    replace_kv_cache_with_custom_kv_cache,
    replace_kv_cache_with_quantized_kv_cache,
    replace_kv_cache_with_ring_kv_cache,
)
from executorch.examples.models.llama.source_transformation.sdpa import (
    replace_sdpa_with_custom_op,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

HEADS, HEAD_DIM, WINDOW, CONTEXT = 2, 8, 4, 32
WIDTH = HEADS * HEAD_DIM
SIZES = (HEADS, HEAD_DIM)
ASYMMETRIC = QuantizedCacheType.AffineAsymmetric
STEPS = (3, 1, 1, 4, 2, 1, 1, 3)  # tokens; more than a ring of 2 * WINDOW slots holds

CACHES: dict[str, Callable[[], Any]] = {
    "float": lambda: KVCache(1, CONTEXT, *SIZES, enable_dynamic_shape=True),
    "float ring": lambda: RingKVCache(1, WINDOW, *SIZES, enable_dynamic_shape=True),
    "custom": lambda: CustomKVCache(1, CONTEXT, *SIZES),
    "custom ring": lambda: CustomRingKVCache(1, WINDOW, *SIZES),
    "quantized": lambda: QuantizedKVCache(1, CONTEXT, *SIZES, ASYMMETRIC, True),
    "quantized ring": lambda: QuantizedRingKVCache(1, WINDOW, *SIZES, ASYMMETRIC, True),
}


def heads(x: Tensor) -> Tensor:
    return x.view(1, -1, HEADS, HEAD_DIM).transpose(1, 2)


class Attention(nn.Module):
    """As exporters of Hugging Face's models write it: any cache, and llama::custom_sdpa."""

    use_attention_mask = False

    def __init__(self, cache: Any) -> None:
        super().__init__()
        self.kv_cache, self.qkv = cache, nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        q, k, v = map(heads, self.qkv(x).split(WIDTH, -1))
        k, v = self.kv_cache.update(positions, k, v)
        start, mask = positions[0].item(), None
        if hasattr(self.kv_cache, "is_ring_buffer"):
            mask = self.kv_cache.create_causal_mask_for_ring_buffer(start, x.size(1))
            start = 0
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        y: Tensor = torch.ops.llama.custom_sdpa(q, k, v, start, mask, 0.0, mask is None)
        return y.flatten(2)

    def whole(self, x: Tensor, window: int) -> Tensor:
        """The same of the whole text, by PyTorch's attention."""
        q, k, v = map(heads, self.qkv(x).split(WIDTH, -1))
        distance = torch.arange(x.size(1)).view(-1, 1) - torch.arange(x.size(1))
        seen = (distance >= 0) & (distance < window)
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return y.transpose(1, 2).flatten(2)


def in_steps(call: Callable[[Tensor, Tensor], Tensor], x: Tensor) -> Tensor:
    positions = torch.arange(x.size(1)).split(STEPS)
    parts = zip(x.split(STEPS, 1), positions, strict=True)
    return torch.cat([call(*part).clone() for part in parts], 1)


@pytest.mark.parametrize("name", CACHES)
def test_steps_give_what_the_whole_text_gives(name: str) -> None:
    torch.manual_seed(0)
    model = Attention(CACHES[name]()).eval()
    x = torch.randn(1, sum(STEPS), WIDTH)
    expected = model.whole(x, WINDOW if "ring" in name else CONTEXT)
    # 255 steps of 8 bits over the values' range, rounded to half of one, for keys and for values.
    largest = float(model.qkv(x).detach().abs().max())
    tolerance = 2 * largest / 255 if "quantized" in name else 16 * torch.finfo(x.dtype).eps
    exported = copy.deepcopy(model)
    torch.testing.assert_close(in_steps(model, x), expected, atol=tolerance, rtol=0)

    tokens = torch.export.Dim("tokens", max=WINDOW)
    inputs, dims = (x[:, :3], torch.arange(3)), ({1: tokens}, {0: tokens})
    program = torch.export.export(exported, inputs, dynamic_shapes=dims)
    buffer = to_edge_transform_and_lower(program).to_executorch().buffer
    method = Runtime.get().load_program(buffer).load_method("forward")
    answer = in_steps(lambda *given: method.execute(given)[0], x)
    torch.testing.assert_close(answer, expected, atol=tolerance, rtol=0)


def test_assignments_fill_a_quantized_cache_as_the_operator_does() -> None:
    k, v, positions = torch.randn(1, HEADS, 3, HEAD_DIM), torch.randn(1, HEADS, 3, HEAD_DIM), 2
    by_operator, by_assignment = (
        QuantizedKVCache(1, CONTEXT, *SIZES, ASYMMETRIC, use_operator, return_float_values=False)
        for use_operator in (True, False)
    )
    given = (torch.arange(3) + positions, k, v)
    for one, other in zip(by_operator.update(*given), by_assignment.update(*given), strict=True):
        assert one.any()
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_unknown_quantization_and_too_many_tokens_are_named() -> None:
    with pytest.raises(ValueError, match="AffineSymmetricGroupWise"):
        QuantizedKVCache(1, 4, *SIZES, QuantizedCacheType.AffineSymmetricGroupWise)
    values = torch.zeros(1, HEADS, 9, HEAD_DIM)
    with pytest.raises(ValueError, match="9 tokens at once for 8 slots"):
        CustomRingKVCache(1, WINDOW, *SIZES).update(torch.arange(9), values, values)


def layers(n_layers: int) -> Any:
    model = nn.Module()
    blocks = [nn.Module() for _ in range(n_layers)]
    for block in blocks:
        block.attention = Attention(CACHES["float"]())
        block.attention.SDPA = nn.Module()
        block.attention.SDPA.use_attention_mask = False
    model.layers = nn.ModuleList(blocks)
    return model


def caches(model: Any) -> list[Any]:
    return [block.attention.kv_cache for block in model.layers]


def test_caches_are_replaced_in_place() -> None:
    model = layers(2)
    assert replace_kv_cache_with_custom_kv_cache(model) is model
    assert [type(cache) for cache in caches(model)] == [CustomKVCache] * 2
    assert caches(model)[0].k_cache.shape == (1, CONTEXT, HEADS, HEAD_DIM)
    replace_kv_cache_with_quantized_kv_cache(model)
    assert [type(cache) for cache in caches(model)] == [QuantizedKVCache] * 2
    assert all(cache.use_custom_update_cache_op for cache in caches(model))


@pytest.mark.parametrize(
    ("replace", "ring"),
    [
        (lambda model: model, RingKVCache),
        (replace_kv_cache_with_custom_kv_cache, CustomRingKVCache),
        (replace_kv_cache_with_quantized_kv_cache, QuantizedRingKVCache),
    ],
)
def test_windows_are_repeated_over_layers(replace: Callable[[Any], Any], ring: type) -> None:
    model = replace_kv_cache_with_ring_kv_cache(replace(layers(4)), [WINDOW, 0])
    assert [isinstance(cache, ring) for cache in caches(model)] == [True, False] * 2
    assert caches(model)[0].window_size == WINDOW
    masks = [block.attention.SDPA.use_attention_mask for block in model.layers]
    assert masks == [True, False] * 2
    with pytest.raises(ValueError, match="3 windows for 4 layers"):
        replace_kv_cache_with_ring_kv_cache(model, [1, 2, 3])


def test_a_ring_of_floats_becomes_one_of_the_operator() -> None:
    model = replace_kv_cache_with_ring_kv_cache(layers(1), [WINDOW])
    replace_kv_cache_with_custom_kv_cache(model)
    assert isinstance(caches(model)[0], CustomRingKVCache)
    assert caches(model)[0].k_cache.shape == (1, 2 * WINDOW, HEADS, HEAD_DIM)


@torch.no_grad()
def test_caches_of_models_of_this_folder_are_replaced() -> None:
    args = ModelArgs(
        dim=32, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=16, hidden_dim=16,
        max_context_len=CONTEXT, use_kv_cache=True, enable_dynamic_shape=True,
    )  # fmt: skip
    torch.manual_seed(0)
    model = construct_transformer(args).eval()
    tokens, start = torch.tensor([[3, 1, 4]]), torch.tensor([0])
    expected = copy.deepcopy(model)(tokens, {"input_pos": start})
    replaced = replace_sdpa_with_custom_op(copy.deepcopy(model))
    operators = [type(layer.attention.kv_cache) for layer in replaced.layers]  # type: ignore
    assert operators == [kv_cache.CustomKVCache] * 2
    torch.testing.assert_close(replaced(tokens, {"input_pos": start}), expected)
    in_bytes = replace_kv_cache_with_quantized_kv_cache(replaced)
    assert isinstance(in_bytes.layers[0].attention.kv_cache, kv_cache.QuantizedKVCache)  # type: ignore
    answer = in_bytes(tokens, {"input_pos": start})
    # Keys, values and queries of 255 steps, through two layers.
    torch.testing.assert_close(answer, expected, atol=4 / 255, rtol=0)
    with pytest.raises(ValueError, match="causal"):
        replace_sdpa_with_custom_op(model, use_attention_mask=True)
