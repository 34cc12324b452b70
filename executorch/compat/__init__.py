"""Spellings of former PyTorch releases, on today's, for scripts that ask for them.

`import executorch.compat` before the old imports, or `python -m executorch.compat script.py`.
Nothing else installs the hook. It costs next to nothing until an old name is used; see modules.map.
"""

from executorch.compat import hook

hook.install()
