"""From sound to the log-mel spectrogram that Whisper, Voxtral and their kin read, as a program.

    python -m executorch.extension.audio.mel_spectrogram --feature_size 80 --output_file mel.pte

The program's input are samples, float32 [n], n from call to call; its result is what
`transformers.WhisperFeatureExtractor` computes.
"""

from __future__ import annotations

import argparse
import math
import os

import torch
from torch.export import Dim

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

# The mel scale of Slaney's Auditory Toolbox: linear below 1000 Hz, above it 27 to a factor of 6.4.
_HZ_PER_MEL = 200 / 3
_LOG_BEGINS_HZ = 1000.0
_LOG_BEGINS_MEL = _LOG_BEGINS_HZ / _HZ_PER_MEL
_MEL_PER_LOG = 27 / math.log(6.4)

# While streaming, a step has a fraction of a second: memory is planned for this.
_STREAMING_SECONDS = 2


class WhisperAudioProcessor(torch.nn.Module):
    """log10 of the energy in `feature_size` bands of frequency, of windows of `n_fft` samples every
    `hop_length`, cut at 8 below the largest and scaled: (max(x, x_max - 8) + 4) / 4.

    Sound is filled up with `padding_value` to whole chunks of `chunk_length` seconds, unless
    `streaming`. Results, with f = n / hop_length frames after filling up:

        [1, feature_size, f]
        [chunks, feature_size, frames of a chunk]   with `stack_output`

    `max_audio_len` is the length in seconds that the exported program takes at most.
    """

    def __init__(
        self,
        feature_size: int = 80,
        sampling_rate: int = 16000,
        hop_length: int = 160,
        chunk_length: int = 30,
        n_fft: int = 400,
        padding_value: float = 0.0,
        max_audio_len: int = 600,
        stack_output: bool = False,
        streaming: bool = False,
    ) -> None:
        super().__init__()
        if streaming and stack_output:
            raise ValueError("stack_output stacks whole chunks, which streaming does not make")
        self.feature_size = feature_size
        self.sampling_rate = sampling_rate
        self.hop_length = hop_length
        self.chunk_length = chunk_length
        self.n_fft = n_fft
        self.padding_value = padding_value
        self.max_audio_len = max_audio_len
        self.stack_output = stack_output
        self.streaming = streaming
        self.n_samples = chunk_length * sampling_rate
        self.nb_max_frames = self.n_samples // hop_length
        filters = self.get_mel_filters(sampling_rate, n_fft, feature_size)
        self.register_buffer("mel_filters", filters, persistent=False)
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)

    def get_mel_filters(
        self, sr: int, n_fft: int, n_mels: int = 128, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """[n_mels, n_fft // 2 + 1]: triangles over the frequencies, their centers equally far apart
        on the mel scale, each of area 1 (in Hz)."""
        mels = torch.linspace(0, _mel(sr / 2), n_mels + 2, dtype=torch.float64)
        linear = mels * _HZ_PER_MEL
        logarithmic = _LOG_BEGINS_HZ * torch.exp((mels - _LOG_BEGINS_MEL) / _MEL_PER_LOG)
        corners = torch.where(mels < _LOG_BEGINS_MEL, linear, logarithmic)[:, None]
        hz = torch.fft.rfftfreq(n_fft, 1 / sr, dtype=torch.float64)
        low, center, high = corners[:-2], corners[1:-1], corners[2:]
        rising, falling = (hz - low) / (center - low), (high - hz) / (high - center)
        triangles = torch.minimum(rising, falling).clamp(min=0)
        return (triangles * 2 / (high - low)).to(dtype)

    def forward(self, waveform: torch.Tensor) -> torch.Tensor:
        if not self.streaming:
            chunks = (waveform.shape[0] - 1) // self.n_samples + 1
            missing = self.n_samples * chunks - waveform.shape[0]
            waveform = torch.nn.functional.pad(waveform, (0, missing), value=self.padding_value)
        spectrum = torch.stft(
            waveform, self.n_fft, self.hop_length, window=self.window, return_complex=True
        )
        # The last window is centered at the end.
        energy = torch.abs(spectrum)[..., :-1] ** 2
        bands = torch.log10(torch.clamp(self.mel_filters @ energy, min=1e-10))
        bands = (torch.maximum(bands, bands.max() - 8.0) + 4.0) / 4.0
        if not self.stack_output:
            return bands.unsqueeze(0)
        return bands.reshape(self.feature_size, -1, self.nb_max_frames).transpose(0, 1)


def _mel(hz: float) -> float:
    if hz < _LOG_BEGINS_HZ:
        return hz / _HZ_PER_MEL
    return _LOG_BEGINS_MEL + _MEL_PER_LOG * math.log(hz / _LOG_BEGINS_HZ)


def export_processor(
    output_file: str = "whisper_preprocess.pte", backend: str = "xnnpack", **model_kwargs: object
) -> None:
    """Write a WhisperAudioProcessor of these arguments as a program. `backend` is "xnnpack" or
    "portable"."""
    partitioners = {"xnnpack": [XnnpackPartitioner()], "portable": []}
    if backend not in partitioners:
        raise ValueError(f"backend: found {backend!r}, expected one of {sorted(partitioners)}")
    model = WhisperAudioProcessor(**model_kwargs).eval()  # type: ignore[arg-type]
    seconds = _STREAMING_SECONDS if model.streaming else model.max_audio_len
    most = seconds * model.sampling_rate
    # A length that is no multiple of anything, and of more than one chunk where there is room.
    sound = torch.randn(min(most, model.n_samples + 1234))
    with torch.no_grad():
        program = torch.export.export(
            model, (sound,), dynamic_shapes=({0: Dim.DYNAMIC(max=most)},), strict=True
        )
    lowered = to_edge_transform_and_lower(
        program,
        partitioner=partitioners[backend],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    os.makedirs(os.path.dirname(output_file) or ".", exist_ok=True)
    with open(output_file, "wb") as file:
        lowered.to_executorch().write_to_file(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--feature_size", type=int, default=80, help="bands of frequency; 128 for newer models")
    add("--sampling_rate", type=int, default=16000, help="samples of a second")
    add("--hop_length", type=int, default=160, help="samples from one window to the next")
    add("--chunk_length", type=int, default=30, help="seconds that sound is filled up to")
    add("--n_fft", type=int, default=400, help="samples of a window")
    add("--output_file", default="whisper_preprocess.pte", help="the program")
    add("--max_audio_len", type=int, default=600, help="seconds of sound at most")
    add("--stack_output", action="store_true", help="chunks along the first dimension (Voxtral)")
    add("--streaming", action="store_true", help="as many frames as there is sound, no chunks")
    add("--backend", default="xnnpack", choices=["portable", "xnnpack"])
    export_processor(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
