"""What an installation that only runs programs says of the packages that make them."""

from __future__ import annotations

import importlib.util
import sys


def need_torch(package: str) -> None:
    """Raises ModuleNotFoundError, which says what to install, where there is no PyTorch."""
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError(
            f"{package} needs PyTorch, which {sys.executable} does not have: "
            "pip install 'executorch-compact[export]'",
            name="torch",
        )
