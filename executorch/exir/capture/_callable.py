"""Any callable as a module, which is what torch.export takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch


class CallableModule(torch.nn.Module):
    """Runs a function; its parameters keep their names in exported graphs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        owner = getattr(function, "__self__", None)
        if isinstance(owner, torch.nn.Module):
            self.owner = owner  # its weights stay weights
        try:
            inspect.signature(function)
            self.forward = function  # type: ignore[method-assign]
        except ValueError:  # a builtin does not tell its parameters
            self.forward = lambda *args: function(*args)  # type: ignore[method-assign]


def as_module(function: Callable[..., Any]) -> torch.nn.Module:
    """`function` itself if it is a module, a module around it otherwise."""
    if isinstance(function, torch.nn.Module):
        return function
    if not callable(function):
        raise TypeError(f"export: expected a module or a function, got {type(function)}")
    return CallableModule(function)
