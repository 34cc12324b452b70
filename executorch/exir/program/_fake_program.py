"""Programs without the data of their weights, for callers that only look at graphs and shapes."""

from __future__ import annotations

import copy

from torch.export import ExportedProgram

from executorch.exir.backend.backend_details import copy_program
from executorch.exir.torch_internals import FakeTensorMode, set_parts


def get_fake_program(exported_program: ExportedProgram) -> ExportedProgram:
    """A copy whose parameters and buffers are fake tensors; constants, verifiers and example inputs
    are those of the given program."""
    found = copy_program(exported_program)
    set_parts(
        found,
        module_call_graph=copy.deepcopy(exported_program.module_call_graph),
        constants=exported_program.constants,
    )
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    set_parts(
        found,
        state_dict={
            name: mode.from_tensor(tensor, static_shapes=True)
            for name, tensor in exported_program.state_dict.items()
        },
    )
    return found


def update_to_real_program(
    fake_program: ExportedProgram, real_program: ExportedProgram
) -> ExportedProgram:
    """Give the program that `get_fake_program` made the data of another, in place."""
    set_parts(fake_program, state_dict=real_program.state_dict)
    return fake_program
