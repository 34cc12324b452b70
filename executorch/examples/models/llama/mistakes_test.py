"""Mistakes in params.json, checkpoints and paths: errors that name them, and no file left."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from executorch.examples.models.llama import export_llama as command
from executorch.examples.models.llama.export_llama_lib import export_llama
from executorch.examples.models.llama.model import load_checkpoint
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.extension.llm.export.config.settings import load_config

PARAMS = {"dim": 32, "n_layers": 1, "n_heads": 2, "vocab_size": 64, "multiple_of": 16}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden_dim": 0}, "hidden_dim is 0; a number of at least 1"),
        ({"head_dim": "16"}, "head_dim is '16'; a number of at least 1"),
        ({"norm_eps": -1}, "norm_eps is -1; a finite number above 0"),
        ({"norm_eps": float("nan")}, "norm_eps is nan; a finite number above 0"),
        ({"rope_theta": 0}, "rope_theta is 0; a finite number above 0"),
        ({"rope_theta": "500000"}, "rope_theta is '500000'; a finite number above 0"),
        ({"rope_freq_base": True}, "rope_freq_base is True; a finite number above 0"),
        ({"act_fn": "relu"}, "act_fn is 'relu'; expected one of silu, gelu, gelu_approx"),
        ({"n_head_kv": 1}, None),  # no name that is meant
        ({"n_kv_head": 1}, r"there is no n_kv_head; did you mean n_kv_heads\?"),
        ({"rope_thetas": 1e6}, r"there is no rope_thetas; did you mean rope_theta\?"),
        ({"model_type": "llama", "n_kv_heads": 1, "n_kv_head": 1}, None),
    ],
)
def test_params_that_cannot_be_meant_are_named(
    changed: dict[str, Any], message: str | None
) -> None:
    if message is None:
        ModelArgs.from_params({**PARAMS, **changed})
        return
    with pytest.raises(ValueError, match=f"params: {message}"):
        ModelArgs.from_params({**PARAMS, **changed})


def settings(folder: Path, *more: str) -> Any:
    (folder / "params.json").write_text(json.dumps(PARAMS))
    return load_config(
        None,
        [f"base.params={folder / 'params.json'}", f"export.output_dir={folder / 'out'}", *more],
    )


@pytest.mark.parametrize("content", [b"", b"{}", b"PK\x03\x04 no archive", b"\x80\x02]q\x00."])
def test_what_is_no_checkpoint_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.pth: a .*state dict of.* was expected"):
        export_llama(settings(tmp_path, f"base.checkpoint={tmp_path / 'a.pth'}"))
    assert not (tmp_path / "out").exists()


def test_checkpoints_of_torchs_older_form_are_read(tmp_path: Path) -> None:
    state = {"a": torch.arange(3.0)}
    torch.save(state, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert torch.equal(load_checkpoint(tmp_path / "old.pth")["a"], state["a"])


def test_a_tokenizer_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(tmp_path)
    options = ["-p", str(tmp_path / "params.json"), "-t", "nofile", "-o", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["export_llama", *options])
    with pytest.raises(SystemExit):
        command.main()
    assert "base.tokenizer_path: there is no file nofile" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_exported_program_goes_into_a_new_folder(tmp_path: Path) -> None:
    name = export_llama(settings(tmp_path, "export.export_only=True"))
    assert (tmp_path / "out" / name).stat().st_size > 0
