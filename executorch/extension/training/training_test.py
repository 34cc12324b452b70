"""Training in the runtime goes step by step where torch.optim.SGD goes in eager PyTorch."""

from __future__ import annotations

import copy
import gc
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, export
from torch.export.experimental import _export_forward_backward

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.schema import Tensor
from executorch.extension.pybindings.portable_lib import _load_for_executorch
from executorch.extension.training import (
    TrainingModule,
    _load_for_executorch_for_training,
    _load_for_executorch_for_training_from_buffer,
    get_sgd_optimizer,
    save_ptd,
)

Batch = tuple[torch.Tensor, torch.Tensor]


class WithLoss(nn.Module):
    """The loss of `net`, and the classes that it finds."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x, y):
        logits = self.net(x)
        return nn.functional.cross_entropy(logits, y), logits.detach().argmax(dim=1)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))


def convnet() -> nn.Module:
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, 3))


XOR: Batch = (torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), torch.tensor([0, 1, 1, 0]))


def batches(net: Callable[[], nn.Module], n: int) -> list[Batch]:
    if net is mlp:
        return [XOR] * n
    torch.manual_seed(1)
    return [(torch.randn(6, 1, 8, 8), torch.randint(3, (6,))) for _ in range(n)]


def trained(model: nn.Module, example: Batch, **config: Any):
    joint = _export_forward_backward(export(model, example, strict=True))
    return to_edge(joint).to_executorch(ExecutorchBackendConfig(**config))


def load(model: nn.Module, example: Batch) -> TrainingModule:
    return _load_for_executorch_for_training_from_buffer(trained(model, example).buffer)


OPTIONS = [
    {},
    {"momentum": 0.9},
    {"momentum": 0.9, "dampening": 0.5},
    {"momentum": 0.9, "weight_decay": 0.01},
    {"momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    {"weight_decay": 0.1},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o) or "plain")
@pytest.mark.parametrize("net", [mlp, convnet])
def test_each_step_is_that_of_eager(net: Callable[[], nn.Module], options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = WithLoss(net())
    steps = batches(net, 12)
    module = load(model, steps[0])
    eager = torch.optim.SGD(model.parameters(), lr=0.2, **options)
    optimizer = None
    losses = []
    for x, y in steps:
        eager.zero_grad()
        expected, classes = model(x, y)
        expected.backward()
        loss, found = module.forward_backward("forward", [x, y])
        torch.testing.assert_close(loss, expected.detach())
        torch.testing.assert_close(found, classes)
        weights = dict(model.named_parameters())
        assert list(module.named_gradients()) == list(weights)
        for name, gradient in module.named_gradients().items():
            torch.testing.assert_close(gradient, weights[name].grad, atol=2e-6, rtol=1e-4)
        if optimizer is None:
            optimizer = get_sgd_optimizer(module.named_parameters(), 0.2, **options)
        eager.step()
        optimizer.step(module.named_gradients())
        for name, parameter in module.named_parameters().items():
            torch.testing.assert_close(parameter, weights[name].detach(), atol=2e-6, rtol=1e-4)
        losses.append(float(loss))
    assert len(set(losses)) == len(losses)  # each is a copy


def test_the_loss_of_xor_falls_until_it_is_learnt() -> None:
    torch.manual_seed(0)
    module = load(WithLoss(mlp()), XOR)
    first, _ = module.forward_backward("forward", XOR)
    optimizer = get_sgd_optimizer(module.named_parameters(), 0.5, 0.9)
    for _ in range(100):
        optimizer.step(module.named_gradients())
        loss, classes = module.forward_backward("forward", XOR)
    assert loss < 0.05 * first
    assert classes.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_other_dtypes_step_as_eager_does(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    options = {"momentum": 0.5, "weight_decay": 0.01, "nesterov": True}
    start = {"w": torch.randn(4, 3, dtype=dtype), "b": torch.randn(3, dtype=dtype)}
    ours = {name: value.clone() for name, value in start.items()}
    weights = {name: nn.Parameter(value) for name, value in start.items()}
    eager = torch.optim.SGD(weights.values(), lr=0.1, **options)
    optimizer = get_sgd_optimizer(ours, 0.1, **options)
    n_steps = 8
    for _ in range(n_steps):
        for weight in weights.values():
            weight.grad = torch.randn_like(weight)
        optimizer.step({name: weight.grad for name, weight in weights.items()})
        eager.step()
    # Eager rounds each of the five products and sums of a step, of values up to about 4.
    error = 4 * 5 * n_steps * torch.finfo(dtype).eps
    for name, weight in weights.items():
        torch.testing.assert_close(ours[name], weight.detach(), atol=error, rtol=0)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"lr": -1}, "lr: .*found -1"),
        ({"lr": math.nan}, "lr: .*found nan"),
        ({"momentum": -0.5}, "momentum: .*found -0.5"),
        ({"weight_decay": -1}, "weight_decay: .*found -1"),
        ({"nesterov": True}, "nesterov: expected momentum"),
        ({"nesterov": True, "momentum": 0.5, "dampening": 0.1}, "no dampening"),
    ],
)
def test_options_that_eager_refuses_are_refused(options: dict[str, Any], found: str) -> None:
    with pytest.raises(ValueError, match=found):
        get_sgd_optimizer({"w": torch.ones(2)}, **options)


def test_dynamic_batches_train() -> None:
    torch.manual_seed(0)
    model = WithLoss(mlp())
    shapes = ({0: Dim("batch", min=2, max=8)},) * 2
    exported = export(model, (XOR[0], XOR[1]), dynamic_shapes=shapes, strict=True)
    program = to_edge(_export_forward_backward(exported)).to_executorch()
    module = _load_for_executorch_for_training_from_buffer(program.buffer)
    for n in (4, 2, 8):
        x, y = torch.randn(n, 2), torch.randint(2, (n,))
        (loss, classes) = module.forward_backward("forward", [x, y])
        expected = model(x, y)[0]
        torch.testing.assert_close(loss, expected.detach())
        gradients = torch.autograd.grad(expected, list(model.parameters()))
        torch.testing.assert_close(list(module.named_gradients().values()), list(gradients))
        assert classes.shape == (n,)


def test_channels_last_weights_train() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 9, 2))
    model = WithLoss(net).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last)
    y = torch.tensor([0, 1])
    module = load(model, (x, y))
    module.forward_backward("forward", [x, y])
    get_sgd_optimizer(module.named_parameters(), 0.1).step(module.named_gradients())
    model(x, y)[0].backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    for name, weight in model.named_parameters():
        torch.testing.assert_close(module.named_parameters()[name], weight.detach())


def test_trained_weights_are_saved_and_loaded(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = WithLoss(mlp())
    program = trained(model, XOR, external_mutable_weights=True)
    program.save(str(tmp_path / "xor.pte"))
    program.write_tensor_data_to_file(str(tmp_path))
    path, data = str(tmp_path / "xor.pte"), str(tmp_path / "_default_external_constant.ptd")
    bytes_before = Path(data).read_bytes()
    module = TrainingModule(_load_for_executorch(path, data))
    module.forward_backward("forward", XOR)
    optimizer = get_sgd_optimizer(module.named_parameters(), 0.5)
    for _ in range(3):
        optimizer.step(module.named_gradients())
        module.forward_backward("forward", XOR)
    save_ptd(str(tmp_path / "trained.ptd"), module.named_parameters())
    assert Path(data).read_bytes() == bytes_before

    again = TrainingModule(_load_for_executorch(path, str(tmp_path / "trained.ptd")))
    again.forward_backward("forward", XOR)
    for name, parameter in module.named_parameters().items():
        assert torch.equal(again.named_parameters()[name], parameter), name
    # The program without gradients, of the same weights by the same names.
    inference = to_edge(export(model.eval(), XOR, strict=True)).to_executorch(
        ExecutorchBackendConfig(external_constants=True)
    )
    inference.save(str(tmp_path / "eval.pte"))
    found = _load_for_executorch(str(tmp_path / "eval.pte"), str(tmp_path / "trained.ptd"))
    loss, _ = module.forward_backward("forward", XOR)
    torch.testing.assert_close(found.forward(XOR)[0], loss)


def test_a_program_in_a_file_is_not_written(tmp_path: Path) -> None:
    torch.manual_seed(0)
    path = tmp_path / "xor.pte"
    trained(WithLoss(mlp()), XOR).save(str(path))
    before = path.read_bytes()
    module = _load_for_executorch_for_training(str(path))
    module.forward_backward("forward", XOR)
    get_sgd_optimizer(module.named_parameters(), 1.0).step(module.named_gradients())
    assert path.read_bytes() == before
    other = _load_for_executorch_for_training(str(path))
    other.forward_backward("forward", XOR)
    for name, parameter in other.named_parameters().items():
        assert not torch.equal(parameter, module.named_parameters()[name]), name


def test_parameters_outlive_the_module() -> None:
    torch.manual_seed(0)
    model = WithLoss(mlp())
    module = load(model, XOR)
    module.forward_backward("forward", [x.clone() for x in XOR])
    parameters, gradients = module.named_parameters(), module.named_gradients()
    optimizer = get_sgd_optimizer(parameters)
    del module
    gc.collect()
    optimizer.step(gradients)
    assert not torch.equal(parameters["net.0.weight"], model.net[0].weight)


def test_numpy_arrays_are_trained_in_place() -> None:
    parameter, gradient = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    get_sgd_optimizer({"p": parameter}, lr=0.25).step({"p": gradient})
    np.testing.assert_array_equal(parameter, np.full((2, 3), 0.5, np.float32))


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import numpy as np
from executorch.extension.training import _load_for_executorch_for_training, get_sgd_optimizer
module = _load_for_executorch_for_training("xor.pte")
x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
y = np.array([0, 1, 1, 0])
first, _ = module.forward_backward("forward", [x, y])
optimizer = get_sgd_optimizer(module.named_parameters(), 0.5, 0.9)
for _ in range(100):
    optimizer.step(module.named_gradients())
    loss, classes = module.forward_backward("forward", [x, y])
assert type(loss) is np.ndarray and loss < 0.05 * first
assert (classes == y).all()
"""


def test_numpy_is_enough(tmp_path: Path) -> None:
    torch.manual_seed(0)
    trained(WithLoss(mlp()), XOR).save(str(tmp_path / "xor.pte"))
    command = [sys.executable, "-c", WITHOUT_TORCH]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_gradients_need_a_call_that_succeeded() -> None:
    module = load(WithLoss(mlp()), XOR)
    for get in (module.named_gradients, module.named_parameters):
        with pytest.raises(RuntimeError, match="call forward_backward before"):
            get()
    module.forward_backward("forward", XOR)
    with pytest.raises(RuntimeError, match="input 0"):
        module.forward_backward("forward", [XOR[0].double(), XOR[1]])
    with pytest.raises(RuntimeError, match="call forward_backward before named_gradients"):
        module.named_gradients()
    assert len(module.named_parameters()) == 4


def test_methods_for_something_else_are_refused() -> None:
    module = load(WithLoss(mlp()), XOR)
    with pytest.raises(RuntimeError, match="no method 'backward' to train"):
        module.forward_backward("backward", XOR)
    with pytest.raises(RuntimeError, match="'__et_training_fqn_forward' is no method for training"):
        module.forward_backward("__et_training_fqn_forward", [])
    program = to_edge(export(mlp().eval(), XOR[:1], strict=True)).to_executorch()
    inference = _load_for_executorch_for_training_from_buffer(program.buffer)
    with pytest.raises(RuntimeError, match="'forward' is no method for training"):
        inference.forward_backward("forward", XOR[:1])


def changed(program: Any, method: str, edit: Callable[[Any], None]) -> bytes:
    """The program with something else in one of its methods."""
    from executorch.exir._serialize._program import (
        PTEFile,
        deserialize_pte_binary,
        serialize_pte_binary,
    )

    file: PTEFile = deserialize_pte_binary(bytes(program.buffer))
    (plan,) = (p for p in file.program.execution_plan if p.name == method)
    edit(plan)
    return bytes(serialize_pte_binary(file))


def integer(value: int) -> Callable[[Any], None]:
    def edit(plan: Any) -> None:
        plan.values[0].val.int_val = value

    return edit


def rename(plan: Any) -> None:
    plan.values[0].val.string_val = plan.values[1].val.string_val


def drop_a_name(plan: Any) -> None:
    plan.outputs.pop()


LIES = {
    "negative": ("gradients_index", integer(-1), "is -1; expected 0 to 10"),
    "huge": ("gradients_index", integer(2**62), "is 4611686018427387904; expected 0 to 10"),
    "beyond": ("parameters_index", integer(11), "is 11; expected 0 to 10"),
    "shifted": ("parameters_index", integer(5), "gradients from 2 on and parameters from 5 on"),
    "same name": ("fqn", rename, "two parameters are called 'net.0.bias'"),
    "too few names": ("fqn", drop_a_name, "and 3 names of parameters"),
}


@pytest.mark.parametrize(("method", "edit", "message"), LIES.values(), ids=LIES.keys())
def test_programs_that_lie_are_refused(
    method: str, edit: Callable[[Any], None], message: str
) -> None:
    program = trained(WithLoss(mlp()), XOR)
    bad = changed(program, f"__et_training_{method}_forward", edit)
    module = _load_for_executorch_for_training_from_buffer(bad)
    with pytest.raises(RuntimeError, match=message):
        module.forward_backward("forward", XOR)


def test_parameters_that_are_constants_are_refused() -> None:
    """Nothing of the program is written, which may be mapped for reading only."""

    def make_constant(plan: Any) -> None:
        tensors = [v.val for v in plan.values if isinstance(v.val, Tensor)]
        frozen = [t for t in tensors if t.allocation_info is None and t.sizes == [8]]
        trained = plan.values[plan.outputs[-2]].val
        trained.allocation_info = None
        trained.data_buffer_idx = frozen[0].data_buffer_idx

    net = nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 8), nn.Linear(8, 2, bias=False))
    net[0].requires_grad_(False)
    program = trained(WithLoss(net), XOR)
    bad = changed(program, "forward", make_constant)
    module = _load_for_executorch_for_training_from_buffer(bad)
    with pytest.raises(RuntimeError, match="parameter 'net.1.bias' cannot be trained"):
        module.forward_backward("forward", XOR)


ONE = torch.ones(2)
WRONG: dict[str, tuple[Any, str]] = {
    "shape": (torch.ones(3), r"gradient of 'p' is Float \(3\); expected Float \(2\)"),
    "type": (torch.ones(2, dtype=torch.float64), r"'p' is Double \(2\); expected Float"),
    "gaps": (torch.ones(4)[::2], "gradient of 'p' has gaps"),
    "no array": ("1", "gradient of 'p': cannot read the memory of a str"),
    "broadcast": (torch.ones(1).expand(2), "gradient of 'p' has gaps"),
}


@pytest.mark.parametrize(("gradient", "message"), WRONG.values(), ids=WRONG.keys())
def test_gradients_that_do_not_fit_are_refused(gradient: Any, message: str) -> None:
    parameter = copy.deepcopy(ONE)
    optimizer = get_sgd_optimizer({"p": parameter})
    with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
        optimizer.step({"p": gradient})
    assert torch.equal(parameter, ONE)


def test_parameters_that_cannot_be_written_are_refused() -> None:
    array = np.ones(2, np.float32)
    array.setflags(write=False)
    with pytest.raises(ValueError, match="parameter 'p' may only be read"):
        get_sgd_optimizer({"p": array})
    with pytest.raises(TypeError, match="a key is no str"):
        get_sgd_optimizer({1: torch.ones(2)})
    integers = torch.ones(2, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="'p' has elements of type Int; expected floating"):
        get_sgd_optimizer({"p": integers}).step({"p": integers})


def test_saving_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not a power of two"):
        save_ptd(str(tmp_path / "a.ptd"), {"p": ONE}, 3)
    with pytest.raises(RuntimeError, match="cannot write"):
        save_ptd(str(tmp_path / "none" / "a.ptd"), {"p": ONE})
    with pytest.raises(TypeError, match="tensor 'p': cannot read"):
        save_ptd(str(tmp_path / "a.ptd"), {"p": None})
    assert list(tmp_path.iterdir()) == []
