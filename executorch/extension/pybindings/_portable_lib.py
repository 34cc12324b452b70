"""The name of `portable_lib` in releases 0.2 to 0.7."""

from executorch.extension.pybindings.portable_lib import *  # noqa: F403
