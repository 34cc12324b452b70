"""What a backend is told about one delegated sub-graph."""

from dataclasses import dataclass


@dataclass
class CompileSpec:
    """A key and its value as bytes; both reach the backend's `init` at run time unchanged."""

    key: str
    value: bytes
