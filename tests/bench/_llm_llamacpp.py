"""llama.cpp as a side of the benchmark of language models: its library through ctypes, and the
files that it reads."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import c_bool, c_float, c_int8, c_int32, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _llm_models import Decoder, Shape, decoder

# Of the npm package that ./dev bench installs into the peers' environment.
BINARIES = Path(sys.prefix) / "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64"
VERSION = "v0.5.0"  # whose structures are below; the library is named by it
F32, F16 = 0, 1  # of ggml's types


class ModelParams(ctypes.Structure):
    _fields_ = [("all", ctypes.c_uint64 * 10)]  # nothing of it is set


class ContextParams(ctypes.Structure):
    _fields_ = [
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("ctx_type", c_int32),
        ("rope_scaling_type", c_int32),
        ("pooling_type", c_int32),
        ("attention_type", c_int32),
        ("flash_attn_type", c_int32),
        ("rope_and_yarn", c_float * 6),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", c_void_p),
        ("cb_eval_user_data", c_void_p),
        ("type_k", c_int32),
        ("type_v", c_int32),
        ("abort_callback", c_void_p),
        ("abort_callback_data", c_void_p),
        ("flags", c_bool * 6),
        ("samplers", c_void_p),
        ("n_samplers", ctypes.c_size_t),
        ("ctx_other", c_void_p),
    ]


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", c_int32),
        ("token", ctypes.POINTER(c_int32)),
        ("embd", c_void_p),
        ("pos", c_void_p),
        ("n_seq_id", c_void_p),
        ("seq_id", c_void_p),
        ("logits", ctypes.POINTER(c_int8)),
    ]


def library() -> Any:
    """libllama with the processor's own kernels. Raises RuntimeError where it is missing or where
    its structures are others than those above."""
    if not BINARIES.exists():
        raise RuntimeError("not on this machine")
    file = BINARIES / f"libllama.{VERSION}.so"
    if not file.exists():
        raise RuntimeError(f"not version {VERSION}, whose structures are known here")
    os.environ["GGML_NO_BACKTRACE"] = "1"  # else it calls a debugger when it aborts
    ctypes.CDLL(str(BINARIES / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
    ggml = ctypes.CDLL(str(BINARIES / f"libggml.{VERSION}.so"), mode=ctypes.RTLD_GLOBAL)
    llama = ctypes.CDLL(str(file))
    ggml.ggml_backend_load_all_from_path(str(BINARIES).encode())
    for name, result, arguments in (
        ("llama_model_default_params", ModelParams, []),
        ("llama_context_default_params", ContextParams, []),
        ("llama_model_load_from_file", c_void_p, [ctypes.c_char_p, ModelParams]),
        ("llama_init_from_model", c_void_p, [c_void_p, ContextParams]),
        ("llama_batch_get_one", Batch, [ctypes.POINTER(c_int32), c_int32]),
        ("llama_decode", c_int32, [c_void_p, Batch]),
        ("llama_get_logits_ith", ctypes.POINTER(c_float), [c_void_p, c_int32]),
        ("llama_get_memory", c_void_p, [c_void_p]),
        ("llama_memory_seq_rm", c_bool, [c_void_p, c_int32, c_int32, c_int32]),
    ):
        function = getattr(llama, name)
        function.restype, function.argtypes = result, arguments
    llama.llama_backend_init()
    return llama


class LlamaCpp:
    """Keys and values are float32 in the fp32 rows, else float16, which is llama.cpp's default."""

    def __init__(self, shape: Shape, command: dict, threads: int) -> None:
        self.llama, self.shape, self.length = library(), shape, 0
        self.facts = {"version": VERSION}
        params = self.llama.llama_model_default_params()
        model = self.llama.llama_model_load_from_file(command["program"].encode(), params)
        if not model:
            raise RuntimeError("does not load its file")
        params = self.llama.llama_context_default_params()
        if (params.n_ctx, params.n_batch, params.n_threads, params.type_k) != (512, 2048, 4, F16):
            raise RuntimeError("its structures are others")
        params.n_ctx = shape.block
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = F32 if command["format"] == "fp32" else F16
        self.context = self.llama.llama_init_from_model(model, params)
        if not self.context:
            raise RuntimeError("makes no context")
        self.memory = self.llama.llama_get_memory(self.context)

    def keep(self, n: int) -> None:
        if not self.llama.llama_memory_seq_rm(self.memory, 0, n, -1):
            raise RuntimeError(f"does not go back to {n} tokens")
        self.length = n

    def reset(self) -> None:
        self.keep(0)

    def mark(self) -> None:
        self.marked = self.length

    def rewind(self) -> None:
        self.keep(self.marked)

    def step(self, ids: torch.Tensor) -> np.ndarray:
        """The logits after the last token; valid until the next step."""
        n = ids.shape[1]
        tokens = (c_int32 * n)(*ids[0].tolist())
        code = self.llama.llama_decode(self.context, self.llama.llama_batch_get_one(tokens, n))
        if code:
            raise RuntimeError(f"decode: {code}")
        self.length += n
        logits = self.llama.llama_get_logits_ith(self.context, -1)
        return np.ctypeslib.as_array(logits, (self.shape.vocabulary,))


def interleaved(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """The rows of a projection whose pairs of rotary positions lie in two halves of a head, with
    the two of a pair beside each other."""
    halves = rows.view(heads, 2, -1, *rows.shape[1:])
    return halves.transpose(1, 2).reshape(rows.shape)


def tensors(model: Decoder) -> dict[str, torch.Tensor]:
    """The weights under the names of llama.cpp's `gpt2` and `llama`; the embedding is the head."""
    shape = model.s
    named = {"token_embd.weight": model.embedding.weight}
    if model.position is not None:
        named["position_embd.weight"] = model.position.weight
    parts = {"output_norm": model.norm}
    for i, layer in enumerate(model.layers):
        at = f"blk.{i}"
        parts |= {f"{at}.attn_norm": layer.norm_1, f"{at}.ffn_norm": layer.norm_2}
        parts[f"{at}.attn_output"] = layer.out
        names = ("gate", "up", "down")
        if shape.experts:
            parts[f"{at}.ffn_gate_inp"] = layer.feed.router
            for each in names:
                weights = [getattr(e, each).weight for e in layer.feed.experts]
                named[f"{at}.ffn_{each}_exps.weight"] = torch.stack(weights)
        else:
            found = ((n, getattr(layer.feed, n)) for n in names)
            parts |= {f"{at}.ffn_{n}": part for n, part in found if part is not None}
        if not shape.rotary:
            parts[f"{at}.attn_qkv"] = layer.qkv
            continue
        q, k, v = layer.qkv.weight.split(layer.widths)
        named[f"{at}.attn_q.weight"] = interleaved(q, shape.heads)
        named[f"{at}.attn_k.weight"] = interleaved(k, shape.kv_heads)
        named[f"{at}.attn_v.weight"] = v
    for name, part in parts.items():
        named[f"{name}.weight"] = part.weight
        if getattr(part, "bias", None) is not None:
            named[f"{name}.bias"] = part.bias
    return named


def write_gguf(shape: Shape, form: str, file: Path) -> None:
    """Every matrix in `form`; positions, routers and vectors in float32."""
    import gguf

    kinds = gguf.GGMLQuantizationType
    kind = {"fp32": kinds.F32, "int8": kinds.Q8_0, "int4": kinds.Q4_0}[form]
    writer = gguf.GGUFWriter(file, "llama" if shape.rotary else "gpt2")
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(shape.vocabulary)
    writer.add_context_length(shape.block)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    if shape.experts:
        writer.add_expert_count(shape.experts)
        writer.add_expert_used_count(shape.picked)
    model = decoder(shape)
    if shape.rotary:
        writer.add_layer_norm_rms_eps(torch.finfo(torch.float32).eps)
        writer.add_rope_dimension_count(shape.head)
        writer.add_rope_freq_base(10000.0)
    else:
        writer.add_layer_norm_eps(model.norm.eps)
    for name, tensor in tensors(model).items():
        data = tensor.detach().contiguous().numpy()
        in_floats = data.ndim < 2 or name.startswith("position") or "ffn_gate_inp" in name
        own = kinds.F32 if in_floats else kind
        writer.add_tensor(name, gguf.quants.quantize(data, own), raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
