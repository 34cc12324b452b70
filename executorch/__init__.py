"""PyTorch models on devices: `executorch.exir` exports them, `executorch.runtime` runs them."""

import os as _os

__version__ = "1.5.1"


def _warn_beside_upstream(site: str) -> None:
    """Two distributions in one folder share the files of this package: whichever was installed last
    has overwritten the other's."""
    found = [name for name in _os.listdir(site) if name.endswith(".dist-info")]
    upstream = [name for name in found if name.startswith("executorch-")]
    if upstream and any(name.startswith("executorch_compact-") for name in found):
        import warnings

        warnings.warn(
            f"{site} holds both executorch-compact and {upstream[0].removesuffix('.dist-info')}, "
            "which overwrite each other's files. Keep one: pip uninstall executorch "
            "executorch-compact, then install it again",
            RuntimeWarning,
            stacklevel=3,
        )


_warn_beside_upstream(_os.path.dirname(_os.path.dirname(_os.path.abspath(__file__))))
