"""What was delegated, under its public home."""

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
