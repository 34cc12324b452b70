"""Does the written program compute what the model computes? `check_parity`, and a command line.

python -m executorch.devtools.parity model.pte model.py:example
"""

from executorch.devtools.parity.check import Case, ParityReport, check_parity
from executorch.devtools.parity.replay import Suspect

__all__ = ["Case", "ParityReport", "Suspect", "check_parity"]
