"""The operators that are lowered: one function each, and why a call of it is not. Importing this
fills `rules.RULES`."""

from executorch.backends.xnnpack.operators import elementwise, images, movement, pools, products

__all__ = ["elementwise", "images", "movement", "pools", "products"]
