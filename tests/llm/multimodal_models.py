"""Small models that read images and sound, in the methods that MultimodalRunner knows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export
from torch.nn import functional as F

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass

VOCABULARY = 50
WIDTH = 16
HEADS = 2
CONTEXT = 48
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvw"
END = 49


class Embedding(nn.Module):
    """tokens int64 or int32 [1, t] -> [1, t, d]"""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.table(tokens)  # type: ignore[no-any-return]


class Vision(nn.Module):
    """pixels [3, 8, 8] of bytes, or [1, 3, 8, 8] of floats -> [1, 4, d]"""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, pixels: Tensor) -> Tensor:
        if pixels.dtype == torch.uint8:
            pixels = pixels[None].to(torch.float32) / 64
        patches = self.patches(pixels.to(torch.float32)).flatten(2).transpose(1, 2)
        return self.project(F.gelu(patches))  # type: ignore[no-any-return]


class Hearing(nn.Module):
    """a spectrogram [1, 8, frames], frames a multiple of 4 -> [1, frames / 4, d]"""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.Conv1d(8, WIDTH, 4, stride=4)

    def forward(self, sound: Tensor) -> Tensor:
        return self.steps(sound).transpose(1, 2)  # type: ignore[no-any-return]


class RawHearing(nn.Module):
    """samples [2, n] of two channels, n a multiple of 5 -> [n / 5, d]"""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(10, WIDTH)

    def forward(self, samples: Tensor) -> Tensor:
        pieces = samples.unflatten(1, (samples.shape[1] // 5, 5)).transpose(0, 1)
        return self.project(pieces.flatten(1))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """embeddings [1, t, d], position [1] or positions [t] -> logits [1, t, v], over caches"""

    keys: Tensor
    values: Tensor

    def __init__(self, each_position: bool) -> None:
        super().__init__()
        self.each_position = each_position
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(HEADS, CONTEXT, WIDTH // HEADS))

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        t = x.shape[1]
        position = position.to(torch.int64)
        places = position if self.each_position else position + torch.arange(t)
        x = x + self.places(places)
        q, k, v = (
            y[0].view(t, HEADS, WIDTH // HEADS).transpose(0, 1)
            for y in self.qkv(self.norm(x)).split(WIDTH, dim=2)
        )
        self.keys.index_copy_(1, places, k)
        self.values.index_copy_(1, places, v)
        seen = torch.arange(CONTEXT)[None] <= places[:, None]
        y = F.scaled_dot_product_attention(q[None], self.keys[None], self.values[None], seen[None])
        x = x + self.out(y[0].transpose(0, 1).reshape(1, t, WIDTH))
        return self.head(self.norm(x))  # type: ignore[no-any-return]


class Multimodal:
    """All of them, with random weights that give each token a say in the next one."""

    def __init__(
        self,
        *,
        pixels: torch.dtype | None = torch.uint8,
        sound: str | None = None,
        each_position: bool = False,
        most_tokens: int = 32,
        integers: torch.dtype = torch.int64,
        vision_name: str = "vision_encoder",
    ) -> None:
        torch.manual_seed(0)
        self.pixels, self.sound, self.most_tokens = pixels, sound, most_tokens
        self.integers, self.vision_name = integers, vision_name
        self.embedding, self.vision, self.decoder = Embedding(), Vision(), Decoder(each_position)
        self.hearing = RawHearing() if sound == "raw" else Hearing()
        for module in (self.embedding, self.vision, self.decoder, self.hearing):
            module.eval()
            for parameter in module.parameters():
                if parameter.dim() > 1:
                    parameter.data *= 2

    def embed(self, piece: str | Tensor) -> Tensor:
        """A text's letters, an image of 3 channels, or sound."""
        if isinstance(piece, str):
            ids = torch.tensor([[END if c == "$" else LETTERS.index(c) for c in piece]])
            return self.embedding(ids)  # type: ignore[no-any-return]
        if piece.shape[-3:] == (3, 8, 8):
            return self.vision(piece)  # type: ignore[no-any-return]
        return self.hearing(piece).reshape(1, -1, WIDTH)  # type: ignore[no-any-return]

    @torch.no_grad()
    def greedy(self, pieces: Sequence[str | Tensor], n: int) -> str:
        """What eager PyTorch chooses, up to the end of the text, in one call for each token."""
        x = torch.cat([self.embed(piece) for piece in pieces], dim=1)
        text = ""
        for _ in range(n):
            places = torch.arange(x.shape[1]) if self.decoder.each_position else torch.tensor([0])
            token = int(self.decoder(x, places)[0, -1].argmax())
            if token == END:
                break
            text += LETTERS[token]
            x = torch.cat([x, self.embedding(torch.tensor([[token]]))], dim=1)
        return text

    def methods(self) -> dict[str, ExportedProgram]:
        t = Dim("t", max=self.most_tokens)
        place = torch.arange(3) if self.decoder.each_position else torch.tensor([0])
        place = place.to(self.integers)
        found = {
            "token_embedding": export(
                self.embedding, (torch.zeros(1, 3, dtype=self.integers),), dynamic_shapes=({1: t},)
            ),
            "text_decoder": export(
                self.decoder,
                (torch.zeros(1, 3, WIDTH), place),
                dynamic_shapes=({1: t}, {0: t} if self.decoder.each_position else None),
            ),
        }
        if self.pixels is not None:
            shape = (3, 8, 8) if self.pixels == torch.uint8 else (1, 3, 8, 8)
            found[self.vision_name] = export(self.vision, (torch.zeros(shape, dtype=self.pixels),))
        n = Dim("n", max=4)
        if self.sound == "raw":
            found["audio_encoder"] = export(
                self.hearing, (torch.zeros(2, 10),), dynamic_shapes=({1: 5 * n},)
            )
        elif self.sound is not None:
            found["audio_encoder"] = export(
                self.hearing, (torch.zeros(1, 8, 8),), dynamic_shapes=({2: 4 * n},)
            )
        return found

    def program(self, without: str = "", plans_inputs: bool = True) -> bytes:
        """A .pte file, without one of the methods if that is named."""
        constants = {
            "get_max_seq_len": CONTEXT,
            "get_max_context_len": CONTEXT,
            "get_vocab_size": VOCABULARY,
            "get_bos_id": END,
            "get_eos_ids": [END],
            "use_kv_cache": True,
        }
        methods = {name: method for name, method in self.methods().items() if name != without}
        config = ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(alloc_graph_input=plans_inputs)
        )
        return to_edge(methods, constant_methods=constants).to_executorch(config).buffer
