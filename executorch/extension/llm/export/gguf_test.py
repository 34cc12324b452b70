"""GGUF files: written here byte by byte, read, damaged, and run as weights of programs."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from torch import Tensor

from executorch.exir import to_edge
from executorch.extension.llm.export.gguf import (
    ExportableGGUFTensor,
    iter_gguf,
    load_gguf,
)
from executorch.extension.llm.export.gguf_file import TYPES, GGUFFile
from executorch.runtime import Runtime

NUMBERS = {name: number for number, (name, _, _) in TYPES.items()}
QUANTIZED = {
    name: (n, size) for name, n, size in TYPES.values() if name not in ("f32", "f16", "bf16")
}


def half(data: bytes) -> float:
    return float(struct.unpack("<e", data)[0])


def numbers_of(block: bytes, kind: str) -> list[float]:
    """A block's numbers, one after the other as the format defines them."""
    if kind == "q4_0":
        q = [block[2 + i] & 15 for i in range(16)] + [block[2 + i] >> 4 for i in range(16)]
        return [half(block[:2]) * (x - 8) for x in q]
    if kind == "q8_0":
        return [half(block[:2]) * x for x in struct.unpack("<32b", block[2:])]
    if kind == "q6_k":
        scales, d = struct.unpack("<16b", block[192:208]), half(block[208:])
        found = []
        for i in range(256):
            part, rest = divmod(i, 128)
            quarter, lane = divmod(rest, 32)
            low = block[64 * part + 32 * (quarter % 2) + lane] >> (4 * (quarter // 2)) & 15
            top = block[128 + 32 * part + lane] >> (2 * quarter) & 3
            found.append(d * scales[i // 16] * ((low | top << 4) - 32))
        return found
    s = block[4:16]
    found = []
    for i in range(256):
        group, lane = divmod(i, 32)
        if group < 4:
            scale, least = s[group] & 63, s[group + 4] & 63
        else:
            scale = s[group + 4] & 15 | s[group - 4] >> 6 << 4
            least = s[group + 4] >> 4 | s[group] >> 6 << 4
        q = block[-128 + 32 * (group // 2) + lane] >> (4 * (group % 2)) & 15
        if kind == "q5_k":
            q |= (block[16 + lane] >> group & 1) << 4
        found.append(half(block[:2]) * scale * q - half(block[2:4]) * least)
    return found


def random_blocks(kind: str, n: int) -> bytes:
    size = QUANTIZED[kind][1]
    blocks = torch.randint(0, 256, (n, size), dtype=torch.uint8)
    halves = [0, 2] if kind in ("q4_k", "q5_k") else [208] if kind == "q6_k" else [0]
    for at in halves:
        scale = (torch.rand(n) * 0.01 + 0.001).half()
        blocks[:, at : at + 2] = scale.view(torch.uint8).reshape(n, 2)
    return bytes(blocks.numpy().tobytes())


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


ENTRIES = [
    text("general.architecture") + struct.pack("<I", 8) + text("llama"),
    text("general.alignment") + struct.pack("<II", 4, 64),
    text("llama.rope.freq") + struct.pack("<If", 6, 0.5),
    text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"),
    text("scores") + struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3),
    text("nested") + struct.pack("<IIQIQ2B", 9, 9, 1, 0, 2, 7, 7),
]


def file_of(tensors: list[tuple[str, list[int], int, bytes]], version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(ENTRIES)) + b"".join(ENTRIES)
    offset, body = 0, b""
    for name, shape, kind, data in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        head += struct.pack("<IQ", kind, offset)
        body += data + bytes(-len(data) % 64)
        offset = len(body)
    return head + bytes(-len(head) % 64) + body


def sample(tmp_path: Path) -> tuple[Path, dict[str, Tensor]]:
    torch.manual_seed(0)
    tensors, expected = [], {}
    for name, dtype in {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}.items():
        value = torch.randn(2, 3, 5).to(dtype)
        data = value.view(torch.uint8).numpy().tobytes()
        tensors.append((name, [2, 3, 5], NUMBERS[name], data))
        expected[name] = value
    for kind, (block, size) in QUANTIZED.items():
        data = random_blocks(kind, 6)
        rows = [numbers_of(data[i * size : (i + 1) * size], kind) for i in range(6)]
        tensors.append((kind, [3, 2 * block], NUMBERS[kind], data))
        expected[kind] = torch.tensor(rows).reshape(3, 2 * block)
    path = tmp_path / "model.gguf"
    path.write_bytes(file_of(tensors))
    return path, expected


def test_tensors_are_those_of_the_file(tmp_path: Path) -> None:
    path, expected = sample(tmp_path)
    found = dict(iter_gguf(str(path)))
    assert list(found) == list(expected)
    for name, value in found.items():
        if isinstance(value, ExportableGGUFTensor):
            assert value.ggml_type == name
            torch.testing.assert_close(value.dequantize(torch.float32), expected[name])
        else:
            assert torch.equal(value, expected[name])
    for name, value in load_gguf(str(path), torch.float32).items():
        torch.testing.assert_close(value, expected[name].float())
    metadata = GGUFFile(str(path)).metadata
    assert metadata == {
        "general.architecture": "llama",
        "general.alignment": 64,
        "llama.rope.freq": 0.5,
    }


def test_the_blocks_are_those_of_the_gguf_package(tmp_path: Path) -> None:
    path, _ = sample(tmp_path)
    mine = load_gguf(str(path), torch.float32)
    for tensor in gguf.GGUFReader(str(path)).tensors:
        theirs = torch.tensor(gguf.dequantize(tensor.data, tensor.tensor_type))
        assert torch.equal(mine[tensor.name], theirs.reshape(mine[tensor.name].shape).float())


def test_more_than_two_dimensions_are_read_in_floats(tmp_path: Path) -> None:
    data = random_blocks("q8_0", 8)
    path = tmp_path / "experts.gguf"
    path.write_bytes(file_of([("w", [2, 2, 64], NUMBERS["q8_0"], data)]))
    rows = [numbers_of(data[i * 34 : (i + 1) * 34], "q8_0") for i in range(8)]
    value = load_gguf(str(path), torch.float32)["w"]
    torch.testing.assert_close(value, torch.tensor(rows).reshape(2, 2, 64))
    with pytest.raises(ValueError, match=r"'w' of q8_0 has the shape \[2, 2, 64\]"):
        list(iter_gguf(str(path)))


def read(path: Path) -> Any:
    return load_gguf(str(path), torch.float32)


def test_damaged_files_are_errors_that_name_the_place(tmp_path: Path) -> None:
    path, _ = sample(tmp_path)
    whole = path.read_bytes()
    for n in [*range(0, 700, 3), len(whole) - 64, len(whole) // 2]:
        path.write_bytes(whole[:n])
        with pytest.raises(ValueError, match="byte"):
            read(path)
    refused = 0
    for at in range(700):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[at] ^= mask
            path.write_bytes(damaged)
            try:
                read(path)
            except ValueError as error:
                refused += "model.gguf, byte" in str(error)
    assert refused > 500


def entry(kind: int, value: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", kind) + value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "exceed"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "of version 2 or 3"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "of version 2 or 3"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 63, 0), "tensors of 24 bytes"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 63), "entries of 13 bytes"),
        (entry(9, struct.pack("<IQ", 4, 1 << 62)), "elements of 4 bytes"),
        (entry(9, struct.pack("<IQ", 9, 1) * 9 + bytes(99)), "below 4 arrays"),
        (entry(11 + 2, b""), "a value of type 13"),
        (entry(8, text(b"\xff")), "no UTF-8"),
        (file_of([("w", [1] * 5, 0, bytes(4))]), "5 dimensions"),
        (file_of([("w", [1 << 40, 1 << 40], 0, bytes(4))]), "ends at byte"),
        (file_of([("w", [2, 33], 2, bytes(64))]), "no blocks of 32"),
        (file_of([("w", [1], 3, bytes(64))]), "type 3"),
        (file_of([("w", [1], 0, bytes(4))] * 2), "two tensors"),
    ],
)
def test_what_a_file_says_is_compared_with_its_length(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read(path)


def test_a_file_does_not_stand_for_more_weights_than_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    data = bytearray(file_of([("one", [20], 0, bytes(80)), ("two", [20], 0, bytes(80))]))
    path.write_bytes(data)
    assert list(read(path)) == ["one", "two"]
    offset = data.index(text("two")) + len(text("two")) + struct.calcsize("<IQI")
    (right,) = struct.unpack_from("<Q", data, offset)
    for wrong in (0, 64):
        struct.pack_into("<Q", data, offset, wrong)
        path.write_bytes(data)
        with pytest.raises(ValueError, match="'one' and 'two' lie over each other"):
            read(path)
    assert right == 128


class Layers(torch.nn.Module):
    def __init__(self, weight: Tensor, table: Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.table = torch.nn.Parameter(table, requires_grad=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = torch.nn.functional.embedding(tokens, self.table)
        return torch.nn.functional.linear(x, self.weight)


@pytest.mark.parametrize("kind", ["q4_0", "q4_k"])
def test_four_bits_stay_four_bits_in_a_program(kind: str) -> None:
    torch.manual_seed(1)
    block, size = QUANTIZED[kind]
    raws = [
        torch.frombuffer(bytearray(random_blocks(kind, 256 * 512 // block)), dtype=torch.uint8)
        for _ in range(2)
    ]
    stored = [
        ExportableGGUFTensor.from_raw(raw.reshape(256, -1), kind, torch.float32) for raw in raws
    ]
    module = Layers(*(w.to_exportable_int4_tensor(torch.float32) for w in stored))
    exported = torch.export.export(module, (torch.tensor([1, 5, 63]),))
    program = to_edge(exported).to_executorch()
    assert len(program.buffer) < 2 * 256 * 512 * 0.8
    tokens = torch.tensor([0, 9, 62])
    (found,) = Runtime.get().load_program(program.buffer).load_method("forward").execute((tokens,))
    dense = Layers(*(w.dequantize(torch.float32) for w in stored))
    torch.testing.assert_close(found, dense(tokens), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", QUANTIZED)
def test_a_byte_for_each_number_keeps_the_numbers(kind: str) -> None:
    torch.manual_seed(2)
    block, size = QUANTIZED[kind]
    raw = torch.frombuffer(bytearray(random_blocks(kind, 8)), dtype=torch.uint8).reshape(4, -1)
    stored = ExportableGGUFTensor.from_raw(raw, kind)
    found = stored.to_intx_unpacked_to_int8_tensor(scale_dtype=torch.float32).dequantize()
    torch.testing.assert_close(found, stored.dequantize(torch.float32), atol=1e-5, rtol=1e-5)
    if kind.startswith("q4"):
        four = stored.to_exportable_int4_tensor(torch.float32).dequantize()
        torch.testing.assert_close(four, stored.dequantize(torch.float32), atol=1e-5, rtol=1e-5)
    else:
        with pytest.raises(NotImplementedError, match=kind):
            stored.to_exportable_int4_tensor()
