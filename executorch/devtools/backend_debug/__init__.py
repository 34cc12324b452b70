"""Which calls of a program backends run, and which are left."""

from executorch.devtools.backend_debug.delegation_info import (
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
