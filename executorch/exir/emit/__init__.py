"""From planned graphs to the schema Program."""

from executorch.exir.emit._emit_program import EmitterOutput as EmitterOutput
from executorch.exir.emit._emit_program import emit_program as emit_program

__all__ = ["EmitterOutput", "emit_program"]
