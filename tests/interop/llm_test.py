"""Operators and programs of language models, exchanged with upstream.

Needs the interpreter of an environment with upstream's wheel in EXECUTORCH_UPSTREAM_PYTHON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from executorch.examples.models.llama.llama_transformer import Transformer, initialize
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.extension.llm.custom_ops.packed_linear import pack_linear
from tests.interop.sides import SIDES, needs_upstream, work

pytestmark = needs_upstream

WORKER = Path(__file__).with_name("llm_worker.py")
PARAMS = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 96,
    "multiple_of": 32,
    "norm_eps": 1e-5,
}


def delta_rule_calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for heads, tokens, by_channel in ((2, 1, True), (4, 7, False), (6, 7, True)):
        leading = (2, 2, tokens)
        decay = torch.rand(*leading, 8) if by_channel else torch.rand(leading)
        q, k, v = (
            torch.randn(2, heads, tokens, 8),
            torch.randn(*leading, 8),
            torch.randn(*leading, 5),
        )
        yield (
            "gated_delta_rule",
            (q, k / 8**0.5, v, decay, torch.rand(leading), torch.randn(2, 2, 8, 5)),
            {},
        )


def expert_calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for experts, active, bits, score in ((6, 2, 4, "sigmoid"), (4, 4, 8, "softmax")):

        def packed(n: int, k: int, experts: int = experts, bits: int = bits) -> torch.Tensor:
            most = 1 << (bits - 1)
            layers = []
            for _ in range(experts):
                q = torch.randint(-most, most, (n, k), dtype=torch.int8)
                layers.append(pack_linear(q, torch.rand(n, k // 32) / (most * 8), 32, bits))
            return torch.stack(layers)

        bias = torch.randn(experts) if score == "sigmoid" else torch.empty(0)
        tensors = (torch.randn(9, 64), torch.randn(experts, 64) / 8, bias)
        weights = (packed(2 * 96, 64), packed(64, 96))
        settings = (active, experts, 96, 64, 32, bits, score, 1.5)
        yield "quantized_moe_ffn", (*tensors, *weights, *settings), {}


def calls() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    torch.manual_seed(0)
    made: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for batch, tokens, heads, kv_heads, dim, start in (
            (1, 1, 4, 2, 16, 0),
            (1, 1, 4, 1, 64, 60),
            (2, 7, 6, 2, 8, 3),
            (1, 40, 2, 2, 32, 24),
        ):
            q = torch.randn(batch, tokens, heads, dim).to(dtype)
            k, v = torch.randn(2, batch, 64, kv_heads, dim).to(dtype).unbind()
            made.append(("custom_sdpa", (q, k, v, start, None, 0.0, True), {}))
            made.append(("custom_sdpa", (q, k, v, start), {"scale": 0.3}))
            if dtype == torch.float32:
                mask = torch.randn(tokens, 64)
                made.append(("custom_sdpa", (q, k, v, start, mask), {}))
            made.append(("update_cache", (k[:, :tokens].clone(), v.clone(), start), {}))
            indices = torch.randperm(64)[:tokens].repeat(batch, 1)
            args = (k[:, :tokens].clone(), v.clone(), 0, indices)
            made.append(("update_cache_with_indices", args, {}))
    for heads_first in (False, True):

        def rows(n: int, heads: int, first: bool = heads_first) -> list[torch.Tensor]:
            shape = (1, heads, n) if first else (1, n, heads)
            return [
                torch.randint(-9, 9, (*shape, 1), dtype=torch.int8),
                torch.rand(*shape, 1) / 40,
                torch.randint(-128, 128, (*shape, 32), dtype=torch.int8),
            ]

        (qz, qs, q), (kz, ks, k), (vz, vs, v) = rows(5, 4), rows(24, 2), rows(24, 2)
        args = (q, k, v, 11, None, 0.0, True, None, qz, qs, kz, ks, vz, vs, heads_first)
        made.append(("custom_quantized_sdpa", args, {}))
    for n in (1, 8, 128, 28, 28 * 16):
        made.append(("fast_hadamard_transform", (torch.randn(3, n),), {}))
    made += [*delta_rule_calls(), *expert_calls()]
    shapes = [(1, 2, 9, 8), (1, 2, 9, 8), (1, 2, 9, 4), (1, 2, 9, 8), (1, 2, 9), (1, 2, 8, 4)]
    for name in ("gated_delta_rule", "channelwise_gated_delta_rule"):
        made.append((name, tuple(torch.rand(s) for s in shapes), {}))
    return made


def test_operators_compute_the_same(tmp_path: Path) -> None:
    given = calls()
    torch.save(given, tmp_path / "calls.pt")
    for side in SIDES:
        work(side, WORKER, tmp_path, "operators", side, str(tmp_path))
    ours, upstream = (torch.load(tmp_path / f"operators.{side}.pt") for side in SIDES)
    for (name, args, _), found, expected in zip(given, ours, upstream, strict=True):
        eps = torch.finfo(args[0].dtype).eps if args[0].is_floating_point() else 2**-23
        exact = name.startswith("update_cache")
        # Sums of up to 64 terms; upstream keeps weights of 16 bits in 16 bits.
        bound = 0.0 if exact else 16 * eps
        torch.testing.assert_close(
            found, expected, atol=bound, rtol=bound, msg=lambda text, name=name: f"{name}: {text}"
        )


# Settings, and how far apart logits may be as a part of the greatest: quantized inputs may fall on
# the other side of a step.
PROGRAMS = {
    "plain": ([], 1e-5),
    "operator": (["model.use_sdpa_with_kv_cache=True"], 1e-5),
    "half": (["model.use_sdpa_with_kv_cache=True", "model.dtype_override=fp16"], 2e-2),
    "xnnpack": (
        [
            "model.use_sdpa_with_kv_cache=True",
            "quantization.qmode=8da4w",
            "quantization.group_size=32",
            "backend.xnnpack.enabled=True",
            "backend.xnnpack.extended_ops=True",
        ],
        3e-2,
    ),
    "int8_cache": (["model.use_sdpa_with_kv_cache=True", "model.quantize_kv_cache=True"], 3e-2),
    "embedding": (
        ["model.use_sdpa_with_kv_cache=True", "quantization.embedding_quantize='4,32'"],
        1e-5,
    ),
}


@pytest.mark.parametrize("exporter", SIDES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_alike_in_both_runtimes(name: str, exporter: str, tmp_path: Path) -> None:
    settings, relative = PROGRAMS[name]
    (tmp_path / "params.json").write_text(json.dumps(PARAMS))
    model = Transformer(ModelArgs.from_params(PARAMS))
    initialize(model)
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    work(exporter, WORKER, tmp_path, "export", exporter, str(tmp_path), name, *settings)
    for side in SIDES:
        work(side, WORKER, tmp_path, "run", side, str(tmp_path), f"{name}.{exporter}")
    (ours, constants), (upstream, other_constants) = (
        torch.load(tmp_path / f"{name}.{exporter}.by_{side}.pt") for side in SIDES
    )
    assert constants == other_constants and constants["get_vocab_size"] == [96]
    for found, expected in zip(ours, upstream, strict=True):
        bound = relative * float(expected.float().abs().max())
        torch.testing.assert_close(found, expected, atol=bound, rtol=0)
