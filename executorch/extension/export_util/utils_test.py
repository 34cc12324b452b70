import logging

import pytest
import torch

from executorch.exir import ExecutorchBackendConfig
from executorch.extension import export_util
from executorch.extension.export_util.utils import (
    export_to_edge,
    export_to_exec_prog,
    save_pte_program,
)
from executorch.runtime import Runtime


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x, *, by):
        return self.linear(x) * by


X = torch.randn(4, 3)


def test_a_module_becomes_an_edge_program(caplog) -> None:
    dynamic = {"x": {0: torch.export.Dim("n", max=9)}, "by": None}
    with caplog.at_level(logging.INFO):
        edge = export_to_edge(
            Scaled(),
            (X,),
            example_kwarg_inputs={"by": torch.ones(1)},
            dynamic_shapes=dynamic,
            edge_constant_methods={"answer": 42},
            generate_etrecord=True,
        )
    assert "Exported graph" in caplog.text and "Edge graph" in caplog.text
    assert edge.config_methods == {"answer"} and edge._etrecord is not None
    assert edge.compile_config._skip_dim_order


def test_a_program_is_saved_with_its_weights_and_runs(tmp_path) -> None:
    model = Scaled()
    by = torch.tensor([2.0])
    program = export_to_exec_prog(
        model,
        (X,),
        example_kwarg_inputs={"by": by},
        backend_config=ExecutorchBackendConfig(external_constants=lambda node: "weights"),
    )
    path = save_pte_program(program, "scaled", str(tmp_path))
    assert path == str(tmp_path / "scaled.pte")
    assert save_pte_program(program, "scaled.pte", str(tmp_path)) == path
    loaded = Runtime.get().load_program(path, data_path=tmp_path / "weights.ptd")
    (y,) = loaded.load_method("forward").execute([X, by])
    torch.testing.assert_close(y, model(X, by=by))
    with pytest.raises(OSError, match="missing"):
        save_pte_program(program, "scaled", str(tmp_path / "missing"))


def test_the_package_has_the_functions_too() -> None:
    assert export_util.export_to_edge is export_to_edge
    assert export_util.export_to_exec_prog is export_to_exec_prog
    assert export_util.save_pte_program is save_pte_program
