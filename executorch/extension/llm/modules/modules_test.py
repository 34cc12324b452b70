"""torchtune's layers against their definition, and from export to run."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from executorch.exir import to_edge
from executorch.exir.capture._config import ExecutorchBackendConfig
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.extension.llm.modules import (
    KVCache,
    MultiHeadAttention,
    TiledTokenPositionalEmbedding,
    TilePositionalEmbedding,
    replace_mha_with_inference_mha,
    replace_tile_positional_embedding,
    replace_tiled_token_positional_embedding,
)
from executorch.runtime import Runtime


def method_of(module: nn.Module, inputs: tuple[Any, ...], shapes: Any, kwargs: Any = None) -> Any:
    with torch.no_grad():
        exported = torch.export.export(module, inputs, kwargs, dynamic_shapes=shapes, strict=True)
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["kv_cache_pos"])])
    program = to_edge(exported).to_executorch(config)
    return Runtime.get().load_program(program.buffer).load_method("forward")


class Update(nn.Module):
    def __init__(self, cache: KVCache) -> None:
        super().__init__()
        self.cache = cache

    def forward(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = self.cache.update(k, v)
        return keys + 0, values + 0


@pytest.mark.parametrize("transposed", [False, True])
def test_tokens_are_appended(transposed: bool) -> None:
    def cache() -> KVCache:
        return KVCache(1, 6, 2, 4, torch.float32, transposed)

    dim = 2 if transposed else 1
    eager = Update(cache())
    shapes = ({dim: (tokens := Dim("tokens", min=1, max=6))}, {dim: tokens})
    method = method_of(Update(cache()), tuple(values(3, transposed)), shapes)
    parts: list[Tensor] = []
    for n in (3, 1, 2):
        k, v = values(n, transposed)
        parts.append(k)
        expected = torch.cat(parts, dim)
        for keys, _ in (eager(k, v), method.execute((k, v))):
            assert torch.equal(keys.narrow(dim, 0, expected.shape[dim]), expected)
            assert not keys.narrow(dim, expected.shape[dim], 6 - expected.shape[dim]).any()
    assert eager.cache.size == 6
    twin = eager.cache.clone()
    with pytest.raises(AssertionError, match="1 tokens behind 6 exceed a cache of 6"):
        eager(*values(1, transposed))
    with pytest.raises(RuntimeError):
        method.execute(tuple(values(1, transposed)))
    with pytest.raises(ValueError, match="3 batch entries"):
        eager(*(t.expand(3, -1, -1, -1) for t in values(1, transposed)))
    eager.cache.reset()
    assert eager.cache.size == 0 and not eager.cache.k_cache.any()
    assert twin.size == 6 and torch.equal(twin.k_cache.narrow(dim, 0, 6), torch.cat(parts, dim))


def values(n: int, transposed: bool) -> tuple[Tensor, Tensor]:
    k, v = torch.randn(2, 1, n, 2, 4).unbind()
    if transposed:
        k, v = (t.transpose(1, 2).contiguous() for t in (k, v))
    return k, v


def attention(**changes: Any) -> MultiHeadAttention:
    given = {
        "embed_dim": 16,
        "num_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 4,
        "q_proj": nn.Linear(16, 16, bias=False),
        "k_proj": nn.Linear(16, 8, bias=False),
        "v_proj": nn.Linear(16, 8, bias=False),
        "output_proj": nn.Linear(16, 16, bias=False),
    }
    return MultiHeadAttention(**(given | changes)).eval()  # type: ignore[arg-type]


def by_definition(layer: MultiHeadAttention, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    q = layer.q_proj(x).view(*x.shape[:2], 4, 4)
    k, v = (p(y).view(*y.shape[:2], 2, 4) for p in (layer.k_proj, layer.v_proj))
    if layer.q_norm is not None and layer.k_norm is not None:
        q, k = layer.q_norm(q), layer.k_norm(k)
    k, v = (t.repeat_interleave(2, 2) for t in (k, v))
    scores = torch.einsum("bshd,bthd->bhst", q, k) / 2
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    out = torch.einsum("bhst,bthd->bshd", weights, v)
    return layer.output_proj(out.flatten(2))  # type: ignore[no-any-return]


def test_attention_is_causal_unless_a_mask_says_what_is_visible() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, 16)
    layer = attention(q_norm=nn.RMSNorm(4), k_norm=nn.RMSNorm(4))
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(layer(x, x), by_definition(layer, x, x, causal))
    mask = (torch.rand(2, 5, 5) < 0.5) | torch.eye(5, dtype=torch.bool)
    expected = by_definition(layer, x, x, mask[:, None])
    torch.testing.assert_close(layer(x, x, mask=mask), expected)


def test_a_cache_is_read_and_appended_to_also_in_a_program() -> None:
    torch.manual_seed(1)
    layer = attention()
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    layer.setup_cache(1, torch.float32, 8)
    tokens = Dim("tokens", min=1, max=7)
    shapes = {"x": {1: tokens}, "y": {1: tokens}, "mask": {1: tokens}}
    sample = torch.randn(1, 3, 16)
    whole = torch.ones(8, 8, dtype=torch.bool).tril()
    method = method_of(layer, (sample, sample.clone()), shapes, {"mask": whole[None, :3]})
    seen = torch.empty(1, 0, 16)
    for n, is_new in ((3, True), (1, True), (2, False), (2, True)):
        x = torch.randn(1, n, 16)
        y = x if is_new else torch.full_like(x, torch.nan)
        seen = torch.cat([seen, x], 1) if is_new else seen
        end = seen.shape[1]
        mask = whole[None, end - n : end]
        expected = by_definition(layer, x, seen, mask[:, None, :, :end])
        torch.testing.assert_close(layer(x, y, mask=mask), expected)
        torch.testing.assert_close(method.execute((x, y, mask))[0], expected)
    torch.testing.assert_close(layer(x, None, mask=mask), expected)
    layer.reset_cache()
    torch.testing.assert_close(
        layer(x, x, mask=whole[None, :2]), by_definition(layer, x, x, whole[:2, :2])
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"num_kv_heads": 3},
        {"embed_dim": 18},
        {"attn_dropout": 1.5},
        {"q_norm": nn.Identity()},
    ],
)
def test_attention_refuses_parts_that_do_not_fit(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        attention(**changes)
    with pytest.raises(RuntimeError, match="setup_cache"):
        attention().reset_cache()
    with pytest.raises(AssertionError, match="y is expected"):
        attention()(torch.zeros(1, 1, 16))


def embeddings() -> list[tuple[nn.Module, str]]:
    made = [
        (TilePositionalEmbedding(3, 8), "embedding"),
        (TiledTokenPositionalEmbedding(3, 8, 6, 2), "global_token_positional_embedding"),
    ]
    for module, _ in made:
        module.gate.data.fill_(0.7)
    return made


@pytest.mark.parametrize("which", [0, 1])
def test_tiles_get_the_embedding_of_their_place(which: int) -> None:
    module, name = embeddings()[which]
    table, gate = module.get_parameter(name).detach(), torch.tensor(0.7).tanh()
    images, tokens = 3, 10
    shapes = ({1: Dim("tiles", min=2, max=6)}, None)
    method = method_of(
        module, (torch.zeros(images, 4, tokens, 8), torch.ones(images, 2, dtype=torch.long)), shapes
    )
    for n, ratios in ((6, [[1, 1], [2, 3], [3, 2]]), (2, [[1, 2], [2, 1], [1, 1]])):
        x = torch.randn(images, n, tokens, 8)
        expected = x.clone()
        if which == 1:
            expected += module.local_token_positional_embedding.detach() * (1 - gate)
        for i, (down, across) in enumerate(ratios):
            for tile in range(down * across):
                expected[i, tile] += table[tile // across, tile % across] * gate
        given = (x, torch.tensor(ratios))
        torch.testing.assert_close(module(*given).detach(), expected)
        torch.testing.assert_close(method.execute(given)[0], expected)
    for bad in ([[1, 1], [1, 1], [2, 2]], [[1, 1], [1, 1], [0, 1]], [[4, 1], [1, 1], [1, 1]]):
        with pytest.raises(RuntimeError, match="aspect ratios"):
            module(torch.zeros(3, 2, tokens, 8), torch.tensor(bad))


def test_embeddings_of_other_sizes_are_interpolated_when_they_are_loaded() -> None:
    small, large = TilePositionalEmbedding(2, 4), TilePositionalEmbedding(3, 4)
    large.load_state_dict(small.state_dict())
    corners = large.embedding[::2, ::2]
    torch.testing.assert_close(corners, small.embedding)
    torch.testing.assert_close(large.embedding[1, 1], small.embedding.mean((0, 1)))

    old = TiledTokenPositionalEmbedding(2, 4, 4, 2)
    new = TiledTokenPositionalEmbedding(2, 4, 6, 2)
    new.load_state_dict(old.state_dict())
    local = new.local_token_positional_embedding
    before = old.local_token_positional_embedding
    torch.testing.assert_close(local[0], before[0])  # the class token
    torch.testing.assert_close(local[1:].view(3, 3, 4)[1, 1], before[1:].mean(0))
    whole, was = new.global_token_positional_embedding, old.global_token_positional_embedding
    torch.testing.assert_close(whole[:, :, 0], was[:, :, 0])
    torch.testing.assert_close(whole[0, 0, 1], was[0, 0, 1])  # corners of the whole image
    torch.testing.assert_close(whole[1, 1, -1], was[1, 1, -1])
    with pytest.raises((ValueError, RuntimeError), match="cannot be resized"):
        TilePositionalEmbedding(3, 5).load_state_dict(small.state_dict())
    wrong = old.state_dict() | {"local_token_positional_embedding": torch.zeros(4, 4)}
    with pytest.raises((ValueError, RuntimeError), match="square grid"):
        new.load_state_dict(wrong)


def test_layers_of_torchtune_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    class TuneAttention(MultiHeadAttention):
        pass

    class TuneTiles(TilePositionalEmbedding):
        pass

    class TuneTokens(TiledTokenPositionalEmbedding):
        pass

    attention_module = types.ModuleType("torchtune.modules.attention")
    attention_module.MultiHeadAttention = TuneAttention  # type: ignore[attr-defined]
    clip = types.ModuleType("torchtune.models.clip")
    clip.TilePositionalEmbedding = TuneTiles  # type: ignore[attr-defined]
    clip.TiledTokenPositionalEmbedding = TuneTokens  # type: ignore[attr-defined]
    modules = {attention_module.__name__: attention_module, clip.__name__: clip}
    for name in ("torchtune", "torchtune.modules", "torchtune.models"):
        modules[name] = types.ModuleType(name)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    old = attention()
    old.__class__ = TuneAttention
    model = nn.Sequential(nn.Sequential(old, TuneTiles(2, 4)), TuneTokens(2, 4, 4, 2))
    values = {k: v.clone() for k, v in model.state_dict().items()}
    replace_mha_with_inference_mha(model)
    replace_tile_positional_embedding(model)
    replace_tiled_token_positional_embedding(model)
    found = [type(m) for m in (*model[0], model[1])]
    assert found == [MultiHeadAttention, TilePositionalEmbedding, TiledTokenPositionalEmbedding]
    for name, value in model.state_dict().items():
        assert torch.equal(value, values[name])
