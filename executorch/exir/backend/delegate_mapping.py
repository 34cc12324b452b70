from __future__ import annotations

from typing import Any

from torch.fx import Node


class DelegateMappingBuilder:
    """Collects which debug handles of the graph stand behind which identifier of a backend.

    generated_identifiers  the builder numbers the entries from 0, instead of the backend naming
                           them; all identifiers are int or all are str
    """

    def __init__(self, generated_identifiers: bool = False) -> None:
        self._generates = generated_identifiers
        self._entries: dict[Any, tuple[int, ...]] = {}

    def get_delegate_mapping(self) -> dict[int, tuple[int, ...]] | dict[str, tuple[int, ...]]:
        """For `PreprocessResult.debug_handle_map`."""
        return self._entries

    def insert_delegate_mapping_entry(
        self,
        nodes: Node | list[Node] | None = None,
        handles: int | list[int | None] | None = None,
        identifier: int | str | None = None,
    ) -> int | str:
        """Add an entry for nodes or for handles (one of the two); returns its identifier."""
        if (nodes is None) == (handles is None):
            raise ValueError("give either nodes or handles")
        if self._generates == (identifier is not None):
            raise ValueError(
                "the builder generates identifiers: give none"
                if self._generates
                else "the builder generates no identifiers: give one"
            )
        key: Any = len(self._entries) if self._generates else identifier
        if key in self._entries:
            raise ValueError(f"the identifier {key!r} has an entry already")
        if self._entries and type(key) is not type(next(iter(self._entries))):
            raise ValueError(f"identifiers are all int or all str; {key!r} differs")
        if nodes is not None:
            listed = nodes if isinstance(nodes, (list, tuple)) else [nodes]
            handles = [node.meta.get("debug_handle") for node in listed]
        elif isinstance(handles, int):
            handles = [handles]
        found = {handle for handle in handles or () if handle is not None}
        if not found:
            raise ValueError(f"the entry {key!r} has no debug handle")
        self._entries[key] = tuple(sorted(found))
        return key  # type: ignore[no-any-return]
