from __future__ import annotations

from torch.export import ExportedProgram

from executorch.exir.pass_base import ExportPass


class XNNPACKPass(ExportPass):
    """A pass that is made with the program it will run over."""

    def __init__(self, exported_program: ExportedProgram) -> None:
        super().__init__()
        self._exported_program = exported_program

    @property
    def exported_program(self) -> ExportedProgram:
        return self._exported_program
