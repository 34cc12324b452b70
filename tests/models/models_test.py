"""Exported and run, every model of the zoo gives what eager PyTorch gives.

The suite is written once; a way of lowering joins it as a row of LOWERINGS.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from executorch.runtime import Runtime
from tests.models import zoo
from tests.models.export import export

Lowering = Callable[[dict[str, zoo.Method], Path], None]
LOWERINGS: dict[str, Lowering] = {"portable": export}


def check(method: zoo.Method, found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        if not isinstance(want, torch.Tensor):
            assert got == want and type(got) is type(want)
            continue
        rtol, atol = zoo.tolerance(method.roundings, want)
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, check_stride=False)


@pytest.fixture(
    scope="module", params=[(lo, n) for lo in LOWERINGS for n in zoo.CASES], ids="-".join
)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    lowering, name = request.param
    methods = zoo.build(name)
    path = tmp_path_factory.mktemp(name) / f"{name}.pte"
    LOWERINGS[lowering](methods, path)
    return methods, path, LOWERINGS[lowering]


def test_every_run_agrees_with_eager(exported) -> None:
    methods, path, _ = exported
    program = Runtime.get().load_program(path)
    assert program.method_names == set(methods)
    for name, method in methods.items():
        loaded = program.load_method(name)
        for inputs, expected in method.expected():
            check(method, list(loaded.execute(inputs.flat())), expected)


def test_outputs_stay_as_they_are_when_the_method_runs_again(exported) -> None:
    methods, path, _ = exported
    program = Runtime.get().load_program(path)
    for name, method in methods.items():
        loaded = program.load_method(name)
        runs = method.expected()
        outputs = [loaded.execute(inputs.flat()) for inputs, _ in runs]
        for found, (_, expected) in zip(outputs, runs, strict=True):
            check(method, list(found), expected)


def test_metadata_states_shapes_and_dtypes_of_the_example(exported) -> None:
    methods, path, _ = exported
    program = Runtime.get().load_program(path)
    for name, method in methods.items():
        meta = program.metadata(name)
        inputs = method.example.flat()
        assert meta.name() == name and meta.num_inputs() == len(inputs)
        for i, value in enumerate(inputs):
            if isinstance(value, torch.Tensor):
                info = meta.input_tensor_meta(i)
                assert len(info.sizes()) == value.dim()
                assert all(a >= b for a, b in zip(info.sizes(), value.shape, strict=True))
            else:
                with pytest.raises(IndexError):
                    meta.input_tensor_meta(i)


def test_exporting_twice_gives_the_same_bytes(exported, tmp_path: Path) -> None:
    _, path, lowering = exported
    again = tmp_path / path.name
    lowering(zoo.build(path.stem), again)
    assert again.read_bytes() == path.read_bytes()


def test_every_operator_agrees_with_eager_on_its_own_arguments(exported) -> None:
    from executorch.devtools.parity.replay import Replay

    methods, path, _ = exported
    program = Runtime.get().load_program(path)
    for name, method in methods.items():
        replay = Replay.of(path.read_bytes(), name)
        runner = program.load_method(name)._method
        found = list(replay.suspects(runner, method.example.flat()))
        assert not found, [str(s) for s in found]
        assert not replay.unchecked
