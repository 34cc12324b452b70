"""Upstream's module of `executorch.exir.backend.delegation_info`."""

from executorch.exir.backend.delegation_info import (
    DelegationBreakdown,
    DelegationInfo,
    get_delegation_info,
    print_delegation_info,
)

__all__ = [
    "DelegationBreakdown",
    "DelegationInfo",
    "get_delegation_info",
    "print_delegation_info",
]
