"""Runners of language models, also of those that read images and sound.

>>> runner = MultimodalRunner("model.pte", "tokenizer.json")
>>> runner.generate_text(
...     [make_text_input("What is "), make_image_input(pixels)], GenerationConfig(echo=False)
... )
'a cat'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from executorch.extension.llm.runner._llm_runner import (
    Audio,
    GenerationConfig,
    Image,
    MultimodalInput,
    MultimodalRunner,
    RawAudio,
    Stats,
    TextLLMRunner,
    make_audio_input,
    make_image_input,
    make_raw_audio_input,
    make_text_input,
    make_token_input,
)

__all__ = [
    "Audio",
    "GenerationConfig",
    "Image",
    "MultimodalInput",
    "MultimodalRunner",
    "RawAudio",
    "Stats",
    "TextLLMRunner",
    "generate_hf",
    "generate_text_hf",
    "make_audio_input",
    "make_image_input",
    "make_raw_audio_input",
    "make_text_input",
    "make_token_input",
]


def generate_text(
    runner: MultimodalRunner, inputs: Sequence[MultimodalInput], config: GenerationConfig
) -> str:
    """What `generate` hands to its callback, as one text."""
    pieces: list[str] = []
    runner.generate(inputs, config, pieces.append)
    return "".join(pieces)


def generate_hf(
    runner: MultimodalRunner,
    inputs: Mapping[str, Any] | Sequence[MultimodalInput],
    config: GenerationConfig,
    image_token_id: int | None = None,
    token_callback: Callable[[str], None] | None = None,
    stats_callback: Callable[[Stats], None] | None = None,
) -> None:
    """`generate` for what a processor of transformers gives: a BatchFeature with `input_ids` of one
    text, and `pixel_values` of the images whose places are runs of `image_token_id` in it.

    Raises ValueError for several texts, and where runs and images are not as many.
    """
    runner.generate(_pieces(inputs, image_token_id), config, token_callback, stats_callback)


def generate_text_hf(
    runner: MultimodalRunner,
    inputs: Mapping[str, Any] | Sequence[MultimodalInput],
    config: GenerationConfig,
    image_token_id: int | None = None,
) -> str:
    """`generate_text` for the same inputs as `generate_hf`."""
    return generate_text(runner, _pieces(inputs, image_token_id), config)


def _pieces(
    inputs: Mapping[str, Any] | Sequence[MultimodalInput], image_token_id: int | None
) -> list[MultimodalInput]:
    if not isinstance(inputs, Mapping):
        return list(inputs)
    rows = [list(map(int, row)) for row in inputs["input_ids"]]
    if len(rows) != 1:
        raise ValueError(f"input_ids has {len(rows)} texts; expected one")
    images = list(inputs.get("pixel_values", ()))
    if images and image_token_id is None:
        raise ValueError("there are images; expected image_token_id, which marks their places")
    pieces: list[MultimodalInput] = []
    tokens: list[int] = []
    n_places = 0
    previous = None
    for token in rows[0]:
        if token != image_token_id or not images:
            tokens.append(token)
        elif token != previous:
            if tokens:
                pieces.append(make_token_input(tokens))
            tokens = []
            if n_places < len(images):
                pieces.append(make_image_input(images[n_places]))
            n_places += 1
        previous = token
    if tokens:
        pieces.append(make_token_input(tokens))
    if n_places != len(images):
        raise ValueError(
            f"input_ids has {n_places} runs of the image token {image_token_id}, and there are "
            f"{len(images)} images"
        )
    return pieces


for _method in (generate_text, generate_hf, generate_text_hf):
    setattr(MultimodalRunner, _method.__name__, _method)
