"""Train a byte-level BPE vocabulary and a small GPT on any text file.

    python train.py shakespeare.txt                 # writes nanogpt.safetensors and vocab.json
    python train.py shakespeare.txt --steps 200 --out try

The first nine tenths of the text train, the rest validates. The weights with the lowest validation
loss are kept.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import torch
from bpe import Tokenizer, train
from model import GPT, GPTConfig
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

HERE = Path(__file__).resolve().parent


def batch(data: Tensor, block: int, size: int) -> tuple[Tensor, Tensor]:
    """`size` random windows of `block` tokens, and the same windows one token later."""
    starts = torch.randint(len(data) - block, (size,)).tolist()
    x = torch.stack([data[i : i + block] for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + block] for i in starts])
    return x, y


@torch.no_grad()
def validation_loss(model: GPT, data: Tensor) -> float:
    """Mean cross entropy, nats per token, over all whole windows of `data`."""
    model.eval()
    block = model.config.block_size
    n = (len(data) - 1) // block
    x, y = data[: n * block].view(n, block), data[1 : n * block + 1].view(n, block)
    losses = [model(a, b)[1].item() * len(a) for a, b in zip(x.split(16), y.split(16), strict=True)]
    model.train()
    return sum(losses) / n


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Linear warm-up over 100 steps, then a cosine down to a tenth."""
    if step < 100:
        return peak * (step + 1) / 100
    return peak * (0.55 + 0.45 * math.cos(math.pi * step / steps))


def optimizer_of(model: GPT, lr: float) -> torch.optim.Optimizer:
    params = list(model.parameters())
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path, help="UTF-8 text file")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the two files")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--lr", type=float, default=1.5e-3)
    parser.add_argument("--vocab", type=int, default=2048)
    parser.add_argument("--block", type=int, default=256)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--dropout", type=float, default=0.15)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if not args.text.is_file():
        raise SystemExit(f"train: no text file at {args.text}")
    torch.manual_seed(0)
    text = args.text.read_text(encoding="utf-8")
    args.out.mkdir(parents=True, exist_ok=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("vocabulary", total=args.vocab)
        vocab = train(text, args.vocab, lambda done: progress.update(task, completed=done))
        data = torch.tensor(Tokenizer(vocab).encode(text))
        progress.update(task, completed=args.vocab)
        split = len(data) * 9 // 10
        if len(data) - split <= args.block + 1:
            raise SystemExit(f"train: {len(data)} tokens are too few for --block {args.block}")
        (args.out / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False) + "\n")

        config = GPTConfig(
            args.block, len(vocab), args.layers, args.heads, args.width, args.dropout, bias=False
        )
        model = GPT(config)
        optimizer = optimizer_of(model, args.lr)
        best = math.inf
        task = progress.add_task("training", total=args.steps)
        for step in range(args.steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, args.steps, args.lr)
            _, loss = model(*batch(data[:split], args.block, args.batch))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            progress.advance(task)
            if (step + 1) % 200 == 0 or step + 1 == args.steps:
                current = validation_loss(model, data[split:])
                if current < best:
                    best = current
                    model.save(args.out / "nanogpt.safetensors")
                progress.update(task, description=f"validation loss {current:.3f}")
                progress.print(f"step {step + 1}: train {loss.item():.3f} val {current:.3f}")
    held_out = len(Tokenizer(vocab).decode(data[split:].tolist()))
    per_char = best * (len(data) - split) / held_out
    print(f"best validation loss {best:.3f} nats per token, {per_char:.3f} per character")


if __name__ == "__main__":
    main()
