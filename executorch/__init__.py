"""PyTorch models on devices: `executorch.exir` exports them, `executorch.runtime` runs them."""

__version__ = "1.5.1"
