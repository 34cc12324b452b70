"""Programs of which some methods cannot be loaded here."""

import pytest
import torch

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.all_node_partitioner import AllNodePartitioner
from executorch.extension.pybindings import portable_lib

X = torch.ones(2, 2)


class OfAnotherDevice(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(b"")


def test_the_others_run_and_all_can_be_asked_about():
    program = torch.export.export(torch.nn.ReLU(), (X,))
    lowered = to_edge({"here": program, "there": program}).to_backend(
        {"there": AllNodePartitioner("OfAnotherDevice", [])}
    )
    module = portable_lib._load_for_executorch_from_buffer(lowered.to_executorch().buffer)
    assert sorted(module.method_names()) == ["here", "there"]
    assert module.method_meta("there").num_inputs() == 1
    assert torch.equal(module.run_method("here", [X])[0], X)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"(?s)loading method 'there'.*OfAnotherDevice"):
            module.run_method("there", [X])


def test_data_that_was_not_given_is_missed_when_the_method_is_called():
    program = torch.export.export(torch.nn.Linear(2, 2), (X,))
    config = ExecutorchBackendConfig(external_constants=True)
    buffer = to_edge(program).to_executorch(config).buffer
    module = portable_lib._load_for_executorch_from_buffer(buffer)
    assert module.method_meta("forward").num_outputs() == 1
    with pytest.raises(RuntimeError, match=r"(?s)loading method 'forward'.*external file"):
        module.forward([X])
    with pytest.raises(RuntimeError, match="'backward'"):
        module.run_method("backward", [X])
