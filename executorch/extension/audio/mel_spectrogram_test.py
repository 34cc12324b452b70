"""The spectrogram against that of transformers, and the program against the module."""

import math
import subprocess
import sys

import pytest
import torch

from executorch.extension.audio.mel_spectrogram import WhisperAudioProcessor, export_processor
from executorch.runtime import Runtime

RATE = 16000
# A frequency's amplitude is wrong by some eps of the largest, and the smallest that count are 1e-4
# of that; the result is the logarithm of its square, divided by 4.
TOLERANCE = 2 * torch.finfo(torch.float32).eps * 1e4 / math.log(10) / 4


def sound(samples):
    """Two tones, one of them fading, and noise."""
    t = torch.arange(samples) / RATE
    tones = torch.sin(2 * torch.pi * 440 * t) + torch.sin(2 * torch.pi * 2500 * t) * torch.exp(-t)
    return 0.3 * tones + 0.01 * torch.randn(samples, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("bands", [80, 128])
def test_it_is_the_spectrogram_of_whisper(bands):
    transformers = pytest.importorskip("transformers")
    extract = transformers.WhisperFeatureExtractor(feature_size=bands)
    samples = sound(3 * RATE + 17)
    expected = extract(samples.numpy(), sampling_rate=RATE, return_tensors="pt").input_features
    found = WhisperAudioProcessor(feature_size=bands)(samples)
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("options", "lengths", "shapes"),
    [
        ({}, [RATE, 3 * RATE + 17], [(1, 80, 200), (1, 80, 400)]),
        ({"stack_output": True}, [RATE, 3 * RATE], [(1, 80, 200), (2, 80, 200)]),
        ({"max_audio_len": 2}, [400, 2 * RATE], [(1, 80, 200), (1, 80, 200)]),
        ({"streaming": True}, [1280, RATE], [(1, 80, 8), (1, 80, 100)]),
    ],
)
@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
def test_the_program_takes_any_length(tmp_path, backend, options, lengths, shapes):
    options = {"chunk_length": 2, "max_audio_len": 5} | options
    path = tmp_path / "new folder" / "mel.pte"
    export_processor(str(path), backend, **options)
    method = Runtime.get().load_program(path).load_method("forward")
    for length, shape in zip(lengths, shapes, strict=True):
        samples = sound(length)
        (found,) = method.execute([samples])
        assert tuple(found.shape) == shape
        expected = WhisperAudioProcessor(**options)(samples)
        torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


def test_what_does_not_go_together_is_refused(tmp_path):
    with pytest.raises(ValueError, match="streaming"):
        WhisperAudioProcessor(streaming=True, stack_output=True)
    with pytest.raises(ValueError, match=r"backend: found 'mlx', expected .*'xnnpack'"):
        export_processor(str(tmp_path / "mel.pte"), "mlx")


def test_it_is_a_command(tmp_path):
    path = tmp_path / "mel.pte"
    subprocess.run(
        [
            *(sys.executable, "-m", "executorch.extension.audio.mel_spectrogram"),
            *("--feature_size", "128", "--stack_output", "--max_audio_len", "60"),
            *("--output_file", str(path)),
        ],
        check=True,
    )
    method = Runtime.get().load_program(path).load_method("forward")
    assert tuple(method.execute([sound(RATE)])[0].shape) == (1, 128, 3000)
