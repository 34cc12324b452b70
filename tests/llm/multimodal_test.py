"""Prompts with images and sound: `executorch generate` and MultimodalRunner, against eager greedy
search."""

from __future__ import annotations

import json
import os
import subprocess
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from executorch.extension.llm.packaging import with_tokenizer
from tests.built import BUILD, COMMAND, needs
from tests.llm.multimodal_models import (
    CONTEXT,
    END,
    LETTERS,
    WIDTH,
    Decoder,
    Multimodal,
    Vision,
)

RUNNER = BUILD / "executorch" / "extension" / "llm" / "runner" / "extension_llm_multimodal_test"
needs_command = needs(COMMAND)


def write_vocabulary(folder: Path) -> None:
    vocabulary = {letter: i for i, letter in enumerate(LETTERS)} | {"<|endoftext|>": END}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "generate", "model.pte", "--tokenizer", "vocab.json", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def generated(folder: Path, *arguments: object) -> str:
    done = run(folder, "--temperature", 0, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["text"]  # type: ignore[no-any-return]


def prepared(folder: Path, model: Multimodal) -> Path:
    write_vocabulary(folder)
    (folder / "model.pte").write_bytes(model.program())
    return folder


def image(seed: int, pixels: torch.dtype) -> Tensor:
    torch.manual_seed(seed)
    values = torch.randint(0, 256, (3, 8, 8), dtype=torch.uint8)
    return values if pixels == torch.uint8 else values[None].to(pixels) / 32 - 4


PROMPTS = [
    ("Hello <image> what", [1]),
    ("<image>", [2]),
    ("see<image>and<image>differ", [1, 2]),
    ("<image><image><image>", [3, 1, 2]),
]


def pieces_of(prompt: str, media: Sequence[Tensor], place: str) -> list[str | Tensor]:
    pieces: list[str | Tensor] = []
    for i, text in enumerate(prompt.split(place)):
        pieces += [text] if text else []
        pieces += [media[i]] if i < len(media) else []
    return pieces


@needs_command
@pytest.mark.parametrize("pixels", [torch.uint8, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("each_position", [False, True])
@pytest.mark.parametrize("most_tokens", [32, 3])
def test_prompts_with_images_go_on_as_in_eager(
    pixels: torch.dtype, each_position: bool, most_tokens: int, tmp_path: Path
) -> None:
    model = Multimodal(pixels=pixels, each_position=each_position, most_tokens=most_tokens)
    prepared(tmp_path, model)
    answers = set()
    for prompt, seeds in PROMPTS:
        prompt = prompt.replace(" ", "")
        images = [image(seed, pixels) for seed in seeds]
        options: list[object] = []
        for seed, values in zip(seeds, images, strict=True):
            # NumPy has no bfloat16; these numbers are the same as floats.
            held = values.float() if pixels == torch.bfloat16 else values
            np.save(tmp_path / f"{seed}.npy", held.numpy())
            options += ["--image", f"{seed}.npy"]
        expected = model.greedy(pieces_of(prompt, images, "<image>"), 20)
        assert (
            generated(tmp_path, "--prompt", prompt, "--bos", 0, "--tokens", 20, *options)
            == expected
        )
        answers.add(expected)
    assert len(answers) == len(PROMPTS)


@needs_command
def test_the_image_says_what_follows(tmp_path: Path) -> None:
    prepared(tmp_path, Multimodal())
    answers = set()
    for seed in range(4):
        np.save(tmp_path / "image.npy", image(seed, torch.uint8).numpy())
        answers.add(
            generated(tmp_path, "--prompt", "A<image>B", "--image", "image.npy", "--tokens", 12)
        )
    assert len(answers) > 1


@needs_command
def test_the_beginning_is_marked_once(tmp_path: Path) -> None:
    model = Multimodal()
    prepared(tmp_path, model)
    values = image(5, torch.uint8)
    pixels = values.permute(1, 2, 0).contiguous().numpy().tobytes()
    (tmp_path / "image.ppm").write_bytes(b"P6\n# a comment\n8 8\n255\n" + pixels)
    options = ("--image", "image.ppm", "--tokens", 10)
    # The program names the token.
    assert generated(tmp_path, "--prompt", "A<image>B", *options) == model.greedy(
        ["$A", values, "B"], 10
    )
    # An image without a place is the first piece, and the mark is before it.
    assert generated(tmp_path, "--prompt", "AB", *options) == model.greedy(["$", values, "AB"], 10)


@needs_command
def test_bytes_are_the_same_numbers_as_floats(tmp_path: Path) -> None:
    model = Multimodal(pixels=torch.float32)
    prepared(tmp_path, model)
    values = image(6, torch.uint8) % 8
    np.save(tmp_path / "image.npy", values.numpy())
    options = ("--prompt", "A<image>B", "--bos", 0, "--image", "image.npy", "--tokens", 10)
    assert generated(tmp_path, *options) == model.greedy(["A", values[None].float(), "B"], 10)


@needs_command
@pytest.mark.parametrize("each_position", [False, True])
def test_narrow_integers_and_an_older_name(each_position: bool, tmp_path: Path) -> None:
    model = Multimodal(
        each_position=each_position, integers=torch.int32, vision_name="image_encoder"
    )
    prepared(tmp_path, model)
    values = image(9, torch.uint8)
    np.save(tmp_path / "image.npy", values.numpy())
    options = ("--prompt", "A<image>B", "--bos", 0, "--image", "image.npy", "--tokens", 10)
    assert generated(tmp_path, *options) == model.greedy(["A", values, "B"], 10)


@needs_command
def test_prompts_with_sound_go_on_as_in_eager(tmp_path: Path) -> None:
    model = Multimodal(sound="features")
    prepared(tmp_path, model)
    torch.manual_seed(7)
    answers = set()
    for frames in (4, 12, 16):
        sound, pixels = torch.randn(1, 8, frames), image(frames, torch.uint8)
        np.save(tmp_path / "sound.npy", sound[0].numpy())
        np.save(tmp_path / "image.npy", pixels.numpy())
        expected = model.greedy(["Hear", sound, "see", pixels, "tell"], 15)
        assert expected == generated(
            tmp_path, "--prompt", "Hear<audio>see<image>tell", "--bos", 0, "--tokens", 15,
            "--audio", "sound.npy", "--image", "image.npy",
        )  # fmt: skip
        answers.add(expected)
    assert len(answers) == 3


@needs_command
def test_files_of_sound_are_samples(tmp_path: Path) -> None:
    model = Multimodal(pixels=None, sound="raw")
    prepared(tmp_path, model)
    torch.manual_seed(8)
    values = torch.randint(-32768, 32768, (2, 15), dtype=torch.int16)
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setparams((2, 2, 16000, 15, "NONE", "NONE"))
        file.writeframes(values.T.contiguous().numpy().tobytes())
    expected = model.greedy(["A", values / 32767, "B"], 12)
    options = ("--prompt", "A<audio>B", "--bos", 0, "--tokens", 12, "--audio", "sound.wav")
    assert generated(tmp_path, *options) == expected


@needs_command
def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    prepared(tmp_path, Multimodal(each_position=True))
    for name, values in {
        "good": torch.zeros(3, 8, 8, dtype=torch.uint8),
        "wide": torch.zeros(3, 8, 9, dtype=torch.uint8),
        "floats": torch.zeros(3, 8, 8),
        "ints": torch.zeros(3, 8, 8, dtype=torch.int32),
    }.items():
        np.save(tmp_path / f"{name}.npy", values.numpy())
    (tmp_path / "cut.ppm").write_bytes(b"P6 8 8 255\n" + bytes(191))
    (tmp_path / "huge.ppm").write_bytes(b"P6 2147483647 2147483647 255\n")
    (tmp_path / "text.wav").write_text("RIFF")

    def complaint(*arguments: object, prompt: str = "A") -> str:
        done = run(tmp_path, "--prompt", prompt, *arguments)
        assert done.returncode != 0
        return done.stderr

    for name, words in {
        "wide.npy": "'vision_encoder' takes Byte [3, 8, 8]; the image is Byte [3, 8, 9]",
        "floats.npy": "'vision_encoder' takes Byte [3, 8, 8]; the image is Float [3, 8, 8]",
        "ints.npy": "ints.npy holds Int; expected bytes or floats",
        "cut.ppm": "cut.ppm is cut off",
        "huge.ppm": "huge.ppm is cut off",
        "text.wav": "text.wav is no image",
        "missing.npy": "missing.npy",
    }.items():
        assert words in complaint("--image", name)
    assert "text.wav is no sound" in complaint("--audio", "text.wav")
    np.save(tmp_path / "sound.npy", np.zeros((8, 4), dtype=np.float32))
    assert "no method 'audio_encoder'" in complaint("--audio", "sound.npy")
    assert f"beyond the context, whose length is {CONTEXT}" in complaint(
        *["--image", "good.npy"] * 12
    )
    assert "more places <image>" in complaint("--image", "good.npy", prompt="<image><image>")
    assert "--top-k" in complaint("--image", "good.npy", "--top-k", 3)
    (tmp_path / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(LETTERS)}))
    assert "--bos is 2, but the tokenizer names no" in complaint(
        "--image", "good.npy", "--bos", 2, prompt="A<image>"
    )


@needs_command
@pytest.mark.parametrize("missing", ["token_embedding", "text_decoder", "vision_encoder"])
def test_a_missing_method_is_named(missing: str, tmp_path: Path) -> None:
    prepared(tmp_path, Multimodal())
    (tmp_path / "model.pte").write_bytes(Multimodal().program(without=missing))
    np.save(tmp_path / "image.npy", image(0, torch.uint8).numpy())
    done = run(tmp_path, "--prompt", "A", "--image", "image.npy")
    assert done.returncode != 0
    assert f"'{missing}'" in done.stderr


class Fixed(Vision):
    """Embeddings that depend on no pixel."""

    rows: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.ones(1, 4, WIDTH))

    def forward(self, pixels: Tensor) -> Tensor:
        return self.rows


class Scaling(Decoder):
    """Writes into what it is given."""

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        x.mul_(2)
        return super().forward(x, position)


@needs_command
def test_constant_embeddings_are_not_written(tmp_path: Path) -> None:
    model = Multimodal()
    prepared(tmp_path, model)
    np.save(tmp_path / "image.npy", image(0, torch.uint8).numpy())
    model.decoder = Scaling(each_position=False).eval()
    for vision, status in ((model.vision, 0), (Fixed().eval(), 1)):
        model.vision = vision
        (tmp_path / "model.pte").write_bytes(model.program(plans_inputs=False))
        done = run(tmp_path, "--prompt", "A<image>", "--image", "image.npy", "--tokens", 3)
        assert done.returncode == status, done.stderr
    assert "is written, but it is a constant" in done.stderr


@needs_command
def test_the_tokenizer_may_be_inside(tmp_path: Path) -> None:
    model = Multimodal()
    prepared(tmp_path, model)
    whole = with_tokenizer((tmp_path / "model.pte").read_bytes(), tmp_path / "vocab.json")
    (tmp_path / "whole.pte").write_bytes(whole)
    values = image(4, torch.uint8)
    np.save(tmp_path / "image.npy", values.numpy())
    options = ["--prompt", "A<image>", "--bos", 0, "--image", "image.npy", "--tokens", 8]
    done = subprocess.run(
        [COMMAND, "generate", "whole.pte", "--temperature", "0", "--echo", *map(str, options)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "A<image>" + model.greedy(["A", values], 8) + "\n", done.stderr


@needs(RUNNER)
@pytest.mark.parametrize("each_position", [False, True])
def test_the_runner_of_cpp(each_position: bool, tmp_path: Path) -> None:
    model = Multimodal(sound="features", each_position=each_position, most_tokens=5)
    program = tmp_path / "model.pte"
    program.write_bytes(model.program())
    done = subprocess.run(
        [RUNNER, "--gtest_filter=Program.*"],
        env=os.environ | {"ET_TEST_PROGRAM": str(program)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED" not in done.stdout
