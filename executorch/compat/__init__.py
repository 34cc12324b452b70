"""Spellings of former PyTorch and ExecuTorch releases, on today's.

`import executorch.compat` before the old imports, or `python -m executorch.compat script.py`, or a
`.pth` file with that import. Costs next to nothing until an old name is used; see modules.map.
"""

from executorch.compat import hook

hook.install()
