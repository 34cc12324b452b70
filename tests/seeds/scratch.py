"""The folder a tutorial's reader would be in: local copies in place of downloads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch

from tests.modules import load
from tests.seeds.cut import ROOT

VOCAB_SIZE = 256
BLOCK_SIZE = 64
SHIMS = (  # what stands in for downloads, whichever row runs
    "GPT-2 is a random GPT of 2 layers, 64 wide, 256 tokens; vocab.json has the prompt's words and "
    "made-up ones; the tokenizer's and sampler's headers are examples/llm_manual; the checkout is "
    "a link, compiled through launcher.sh with Ninja and all cores"
)
PROMPT = "Hello world!"  # the pages type this one
PROMPT_TOKENS = (1, 2, 3)

MODEL = """# The repository's GPT; in place of GPT-2 a small one, random but always the same.
import torch
from nanogpt_model import GPT as _GPT, GPTConfig


class GPT(_GPT):
    @classmethod
    def from_pretrained(cls, model_type):
        torch.manual_seed(0)
        config = GPTConfig({block}, {vocab}, n_layer=2, n_head=4, n_embd=64)
        model = cls(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(8)  # far enough from zero that the best token stands out
        return model.eval()
"""


def fill(folder: Path) -> None:
    """model.py, vocab.json, basic_sampler.h and basic_tokenizer.h as the pages download them."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "examples" / "nanogpt" / "model.py", folder / "nanogpt_model.py")
    (folder / "model.py").write_text(MODEL.format(block=BLOCK_SIZE, vocab=VOCAB_SIZE))
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words())}))
    for header in ("basic_sampler.h", "basic_tokenizer.h"):
        source = ROOT / "examples" / "llm_manual" / header
        if source.exists():
            shutil.copy(source, folder / header)


def words() -> list[str]:
    """The vocabulary; "\u0120" stands for a space, as in GPT-2's."""
    known = ["<none>", "Hello", "\u0120world", "!"]
    return known + [f"\u0120w{i}" for i in range(len(known), VOCAB_SIZE)]


def decode(tokens: list[int]) -> str:
    return "".join(words()[t].replace("\u0120", " ") for t in tokens)


def eager(folder: Path) -> torch.nn.Module:
    """The model that the scratch folder's `GPT.from_pretrained` gives."""
    return load(folder / "model.py").GPT.from_pretrained("gpt2")


def roundings() -> int:
    """Rounded operations on the longest path of the model, one per term of a sum."""
    width, layers = 64, 2
    block = 2 * width + width + BLOCK_SIZE + BLOCK_SIZE + width + 5 * width
    return layers * block + 2 * width
