"""`executorch.extension.llm.runner`: the runners for Python, against eager greedy search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import executorch.extension.llm.runner as runners
from tests.llm.multimodal_models import END, LETTERS, VOCABULARY, Multimodal


def greedy(n: int, **options: Any) -> Any:
    return runners.GenerationConfig(echo=False, max_new_tokens=n, temperature=0, **options)


def made(folder: Path, model: Multimodal) -> Any:
    vocabulary = {letter: i for i, letter in enumerate(LETTERS)} | {"<|endoftext|>": END}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "model.pte").write_bytes(model.program())
    return runners.MultimodalRunner(str(folder / "model.pte"), str(folder / "vocab.json"))


def image(seed: int) -> Tensor:
    torch.manual_seed(seed)
    return torch.randint(0, 256, (3, 8, 8), dtype=torch.uint8)


@pytest.fixture(scope="module")
def model() -> Multimodal:
    return Multimodal(sound="features")


@pytest.fixture
def runner(model: Multimodal, tmp_path: Path) -> Any:
    return made(tmp_path, model)


def test_pieces_go_on_as_in_eager(model: Multimodal, runner: Any) -> None:
    pixels, sound = image(1), torch.randn(1, 8, 12)
    expected = model.greedy(["See", pixels, "hear", sound], 12)
    pieces = [
        runners.make_text_input("See"),
        runners.make_image_input(pixels),
        runners.make_token_input([LETTERS.index(c) for c in "hear"]),
        runners.make_audio_input(sound),
    ]
    assert runner.generate_text(pieces, greedy(12)) == expected
    runner.reset()
    runner.prefill(pieces)
    assert runner.generate_text([], greedy(12)) == expected
    assert runner.get_vocab_size() == VOCABULARY


@pytest.mark.parametrize("pixels", [torch.uint8, torch.float32], ids=str)
def test_images_of_any_order_and_framework(pixels: torch.dtype, tmp_path: Path) -> None:
    model = Multimodal(pixels=pixels)
    runner = made(tmp_path, model)
    values = image(2).to(pixels) / 64 if pixels == torch.float32 else image(2)
    expected = model.greedy(["A", values if pixels == torch.uint8 else values[None]], 8)
    last = values.permute(1, 2, 0)
    for given in (values, values[None], last, last[None], last.contiguous(), values.numpy()):
        runner.reset()
        pieces = [runners.make_text_input("A"), runners.make_image_input(given)]
        assert runner.generate_text(pieces, greedy(8)) == expected


def test_samples_are_bytes_of_floats(tmp_path: Path) -> None:
    model = Multimodal(pixels=None, sound="raw")
    runner = made(tmp_path, model)
    samples = torch.randn(1, 2, 15)
    piece = runners.make_raw_audio_input(samples)
    assert runner.generate_text([piece], greedy(8)) == model.greedy([samples[0]], 8)


def test_callbacks_are_told_and_may_raise(model: Multimodal, runner: Any) -> None:
    pieces = [runners.make_image_input(image(3)), runners.make_text_input("AB")]
    expected = model.greedy([image(3), "AB"], 10)
    texts: list[str] = []
    stats: list[Any] = []
    config = runners.GenerationConfig(max_new_tokens=10, temperature=0)
    runner.generate(pieces, config, texts.append, stats.append)
    assert texts[0] == "AB"
    assert "".join(texts[1:]) == expected
    assert stats[0].num_prompt_tokens == 6
    assert (
        json.loads(stats[0].to_json_string())["generated_tokens"] == stats[0].num_generated_tokens
    )

    def raises(text: str) -> None:
        raise KeyError(text)

    runner.reset()
    with pytest.raises(KeyError, match=expected[0]):
        runner.generate(pieces, greedy(10), raises)
    runner.reset()
    assert runner.generate_text(pieces, greedy(10)) == expected


def test_what_processors_of_transformers_give(model: Multimodal, runner: Any) -> None:
    features = pytest.importorskip("transformers").BatchFeature
    images = torch.stack([image(4), image(5)])
    letters = [LETTERS.index(c) for c in "seeand"]
    ids = [*letters[:3], 1000, 1000, *letters[3:], 1000, 0]
    expected = model.greedy(["see", image(4), "and", image(5), "A"], 10)

    def given(**changed: Any) -> Any:
        return features({"input_ids": torch.tensor([ids]), "pixel_values": images} | changed)

    assert runner.generate_text_hf(given(), greedy(10), 1000) == expected
    runner.reset()
    texts: list[str] = []
    runners.generate_hf(runner, given(), greedy(10), 1000, texts.append)
    assert "".join(texts) == expected
    runner.reset()
    pieces = [runners.make_text_input("AB")]
    assert runner.generate_text_hf(pieces, greedy(5)) == model.greedy(["AB"], 5)
    plain: Mapping[str, Any] = {"input_ids": [[0, 1]]}
    runner.reset()
    assert runner.generate_text_hf(plain, greedy(5)) == model.greedy(["AB"], 5)
    for wrong, token in (
        (given(pixel_values=images[:1]), 1000),
        (given(pixel_values=torch.cat([images, images])), 1000),
        (given(), None),
        (given(input_ids=torch.tensor([ids, ids])), 1000),
    ):
        with pytest.raises(ValueError, match="expected|and there are"):
            runner.generate_hf(wrong, greedy(1), token)


def test_text_runners(tmp_path: Path) -> None:
    from tests.incremental.models import Model
    from tests.llm.generate_test import LETTERS as SMALL_FIRST
    from tests.llm.generate_test import greedy as eager
    from tests.llm.generate_test import made as eager_model
    from tests.llm.generate_test import program_of

    vocabulary = {letter: i for i, letter in enumerate(SMALL_FIRST)} | {"<|endoftext|>": END}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    model = eager_model(Model)
    (tmp_path / "model.pte").write_bytes(program_of(model, True))
    runner = runners.TextLLMRunner(str(tmp_path / "model.pte"), str(tmp_path / "vocab.json"))
    config = greedy(5)
    config.ignore_eos = True
    texts: list[str] = []
    runner.generate("hello", config, texts.append)
    expected = eager(model, "hello", 5)
    assert "".join(texts) == expected
    runner.reset()
    runner.prefill("hel", config)
    texts.clear()
    runner.generate("lo", config, texts.append)
    assert "".join(texts) == expected
    assert runner.get_vocab_size() == -1


def test_threads_take_turns(runner: Any) -> None:
    def ask(_: int) -> str:
        pieces: list[str] = []
        runner.generate([runners.make_text_input("a")], greedy(2), pieces.append)
        runner.reset()
        return "".join(pieces)

    with ThreadPoolExecutor(4) as threads:
        for text in threads.map(ask, range(200)):
            assert set(text) <= set(LETTERS)
    runner.reset()
    assert ask(0) == ask(1)


def test_errors_are_python_errors(runner: Any, tmp_path: Path) -> None:
    vocabulary = str(tmp_path / "vocab.json")
    with pytest.raises(RuntimeError, match="cannot run no such file.pte"):
        runners.MultimodalRunner("no such file.pte", vocabulary)
    with pytest.raises(RuntimeError, match="cannot run no such file.pte"):
        runners.TextLLMRunner("no such file.pte", vocabulary)
    with pytest.raises(RuntimeError, match="cannot read the tokenizer none"):
        runners.MultimodalRunner(str(tmp_path / "model.pte"), "none")
    with pytest.raises(RuntimeError, match="InvalidState"):
        runner.generate([], greedy(1))
    with pytest.raises(RuntimeError, match="prefill: Error::InvalidArgument"):
        runner.prefill([runners.make_image_input(torch.zeros(3, 9, 9, dtype=torch.uint8))])
    for wrong in (torch.zeros(3, 8), torch.zeros(0, 8, 8), torch.zeros(5, 8, 9),
                  torch.zeros(2, 3, 8, 8), torch.zeros(3, 8, 8, dtype=torch.int32)):  # fmt: skip
        with pytest.raises(RuntimeError, match="make_image_input: expected"):
            runners.make_image_input(wrong)
    with pytest.raises(TypeError):
        runners.make_audio_input("sound")


def test_pieces_say_what_they_are() -> None:
    pixels = runners.make_image_input(np.full((2, 5, 1), 7, dtype=np.uint8))
    found = pixels.get_image()
    assert (found.width, found.height, found.channels) == (5, 2, 1)
    assert found.uint8_data == [7] * 10
    with pytest.raises(RuntimeError, match="has bytes"):
        _ = found.float_data
    assert pixels.is_image()
    assert pixels.get_text() is None
    copied = runners.MultimodalInput(runners.Image([0.5, 1.5], 2, 1, 1))
    assert copied.get_image().float_data == [0.5, 1.5]
    assert runners.MultimodalInput("a").get_text() == "a"
    assert runners.make_token_input([3]).get_tokens() == [3]
    config = runners.GenerationConfig(seq_len=10)
    assert config.resolve_max_new_tokens(100, 4) == 6


def test_values_show_what_they_hold() -> None:
    config = repr(runners.GenerationConfig(max_new_tokens=5, temperature=0.7, echo=False))
    assert config.startswith("GenerationConfig(max_new_tokens=5, seq_len=-1, temperature=0.7, ")
    assert "echo=False" in config
    image = runners.Image([1, 2], 2, 1, 1)
    assert repr(image) == "Image(width=2, height=1, channels=1, is_float=False)"
    assert repr(runners.MultimodalInput(image)) == f"MultimodalInput(image={image!r})"
    assert repr(runners.make_text_input("a'b")) == """MultimodalInput(text="a'b")"""
    assert repr(runners.make_token_input([3, 4])) == "MultimodalInput(tokens=[3, 4])"
    sound = runners.make_raw_audio_input(torch.zeros(1, 2, 5))
    assert repr(sound.get_raw_audio()) == "RawAudio(batch_size=1, n_channels=2, n_samples=5)"
    assert repr(runners.Stats()).startswith("Stats(num_prompt_tokens=0, num_generated_tokens=0")
