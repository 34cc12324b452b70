"""Training programs run in this project's runtime: loss, gradients and weights are PyTorch's."""

import pytest
import torch
from torch import nn
from torch.export import export
from torch.export.experimental import _export_forward_backward
from torch.export.graph_signature import OutputKind

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.runtime import Runtime


class Loss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.frozen = nn.Linear(4, 3).requires_grad_(False)
        self.register_buffer("calls", torch.zeros(1))
        self.counts = False

    def forward(self, x, y):
        if self.counts:
            self.calls.add_(1)
        return nn.functional.cross_entropy(self.frozen(self.first(x).sigmoid()), y)


X, Y = torch.ones(2, 3), torch.tensor([2, 0])


@pytest.fixture
def model() -> Loss:
    torch.manual_seed(0)
    return Loss()


def joint(model):
    return to_edge(_export_forward_backward(export(model, (X, Y), strict=True)))


def expected(model):
    loss = model(X, Y)
    weight, bias = model.first.weight, model.first.bias
    gradients = torch.autograd.grad(loss, [weight, bias])
    return [loss, *gradients, weight, bias]


def test_a_training_program_returns_loss_gradients_and_weights(model):
    edge = joint(model)
    n_before = len(edge.exported_program().graph_signature.output_specs)
    program = edge.to_executorch()
    specs = program.exported_program().graph_signature.output_specs
    assert [s.kind for s in specs[n_before:]] == [OutputKind.TOKEN] * 2
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    for _ in range(2):
        torch.testing.assert_close(list(method.execute([X, Y])), expected(model))


def test_a_trainer_learns_where_gradients_and_weights_are(model):
    model.counts = True  # the counter's new value is no output of a call
    program = joint(model).to_executorch()
    plans = [p.name for p in program.executorch_program.execution_plan]
    loaded = Runtime.get().load_program(program.buffer)
    found = {name: loaded.load_method(name).execute([]) for name in plans[1:]}
    assert found == {
        "__et_training_gradients_index_forward": [1],
        "__et_training_fqn_forward": ["first.weight", "first.bias"],
        "__et_training_parameters_index_forward": [3],
    }


def test_weights_that_are_updated_are_no_constants(model):
    program = joint(model).to_executorch()
    values = program.executorch_program.execution_plan[0].values
    assert all(values[i].val.allocation_info is not None for i in (0, 1))
    assert values[0].val.data_buffer_idx > 0
    assert len(program._emitter_output.mutable_data) == 3


def test_external_weights_are_read_into_memory_that_can_be_written(model, tmp_path):
    config = ExecutorchBackendConfig(external_mutable_weights=True)
    program = joint(model).to_executorch(config)
    names = program._emitter_output.external_constant_map["_default_external_constant"]
    assert names == {"first.weight": 0, "first.bias": 1}
    program.write_tensor_data_to_file(tmp_path)
    loaded = Runtime.get().load_program(
        program.buffer, data_path=tmp_path / "_default_external_constant.ptd"
    )
    method = loaded.load_method("forward")
    torch.testing.assert_close(list(method.execute([X, Y])), expected(model))


def test_a_program_without_gradients_is_left(model):
    program = to_edge(export(model.eval(), (X, Y), strict=True)).to_executorch()
    assert [p.name for p in program.executorch_program.execution_plan] == ["forward"]
    assert len(program.exported_program().graph_signature.output_specs) == 1


def test_a_gradient_nobody_asked_for_is_no_result():
    """Of the first convolution's backward, that for the image is None."""
    torch.manual_seed(0)

    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.linear = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)

        def forward(self, x, y):
            return nn.functional.cross_entropy(self.linear(self.conv(x).flatten(1)), y)

    images, inputs = Images(), (torch.randn(2, 3, 3, 3), Y)
    edge = to_edge(_export_forward_backward(export(images, inputs, strict=True)))
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    loss = images(*inputs)
    weights = list(images.parameters())
    truth = [loss, *torch.autograd.grad(loss, weights), *weights]
    torch.testing.assert_close(list(method.execute(list(inputs))), truth)
