"""Groups of nodes that can run as one call each, found in linear time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence, Set

from torch.fx import Graph, Node


class DSJ:
    """Disjoint sets (union by size, path halving)."""

    def __init__(self) -> None:
        self._parent: dict[Node, Node] = {}
        self._size: dict[Node, int] = {}

    def contains(self, x: Node) -> bool:
        return x in self._parent

    def find(self, x: Node) -> Node:
        """The set's representative; a new node is a set by itself."""
        parent = self._parent
        if x not in parent:
            parent[x], self._size[x] = x, 1
        while parent[x] is not x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    def union(self, x: Node, y: Node) -> Node:
        x, y = self.find(x), self.find(y)
        if x is y:
            return x
        if self._size[x] < self._size[y]:
            x, y = y, x
        self._parent[y] = x
        self._size[x] += self._size[y]
        return x

    def gen_groups(self) -> list[set[Node]]:
        groups: dict[Node, set[Node]] = {}
        for x in self._parent:
            groups.setdefault(self.find(x), set()).add(x)
        return list(groups.values())


def acyclic_groups(
    graph: Graph,
    supported: Set[Node],
    together: Iterable[Sequence[Node]] = (),
    is_worth: Callable[[list[Node]], bool] = lambda nodes: True,
) -> list[list[Node]]:
    """Divide the supported nodes into the fewest groups that can each run as one call: no group
    reads results of other nodes that depend on its own. The nodes of a group are in graph order,
    the groups in the order of their first nodes.

    together  nodes that must be in one group; where that would make a cycle, they are in no group
    is_worth  whether connected nodes may be in a group at all

    Every node has a level: even for those that are not supported, odd for those that are, at least
    that of its operands and above them where the kind changes. A path that leaves a level passes a
    higher one, and no edge leads back down, so groups of what has one level cannot wait for each
    other in a circle; and one level needs the results of the one before, so fewer groups would not
    do. First every node has its lowest level; then what is connected rises, from the last on, to
    the level of its readers where that joins them.
    """
    return _Levels(graph, supported, together).groups(is_worth)


class _Levels:
    def __init__(
        self, graph: Graph, supported: Set[Node], together: Iterable[Sequence[Node]]
    ) -> None:
        self.nodes = [n for n in graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
        self.units = DSJ()
        joined = False
        for group in together:
            for node in group[1:]:
                self.units.union(group[0], node)
                joined = True
        self.supported = {n for n in self.nodes if n in supported}
        for node in self.nodes:  # a list is no value between programs
            if node.target is operator.getitem and node.args[0] in self.supported:
                self.supported.add(node)
                joined = self.units.union(node.args[0], node) is not None  # type: ignore[arg-type]
        self.members: dict[Node, list[Node]] = {}
        for node in self.nodes:
            self.members.setdefault(self.units.find(node), []).append(node)
        self.level: dict[Node, int] = {}
        order = self._order() if joined else self.nodes
        for unit in order:
            self._set_level(unit)

    def _order(self) -> list[Node]:
        """The units after all that they read (Kahn). Units in a circle are dissolved."""
        waits = {unit: set(self._sources(unit)) for unit in self.members}
        while True:
            found = _sorted(waits)
            torn = [u for u in waits.keys() - set(found) if len(self.members[u]) > 1]
            if not torn:
                return found
            for unit in torn:
                self._dissolve(unit)
            waits = {unit: set(self._sources(unit)) for unit in self.members}

    def _dissolve(self, unit: Node) -> None:
        members = self.members.pop(unit)
        for node in members:
            self.units._parent[node] = node
            self.supported.discard(node)
            self.members[node] = [node]

    def _sources(self, unit: Node) -> Iterable[Node]:
        for node in self.members[unit]:
            for source in node.all_input_nodes:
                if source.op not in ("placeholder", "get_attr"):
                    found = self.units.find(source)
                    if found is not unit:
                        yield found

    def _readers(self, unit: Node) -> Iterable[Node]:
        for node in self.members[unit]:
            for user in node.users:
                if user.op != "output":
                    yield self.units.find(user)

    def _set_level(self, unit: Node) -> None:
        lowest = max((self.level[source] for source in self._sources(unit)), default=0)
        odd = int(unit in self.supported)
        self.level[unit] = lowest + (lowest % 2 != odd)

    def groups(self, is_worth: Callable[[list[Node]], bool]) -> list[list[Node]]:
        units = [u for u in self.members if u in self.supported]
        merged = DSJ()
        for unit in units:
            merged.find(unit)
            for source in self._sources(unit):
                if source in self.supported and self.level[source] == self.level[unit]:
                    merged.union(source, unit)
        parts: dict[Node, list[Node]] = {}
        for unit in units:
            parts.setdefault(merged.find(unit), []).append(unit)
        level = {part: self.level[part] for part in parts}
        for part in sorted(parts, key=lambda p: -level[p]):
            self._raise(part, parts[part], merged, level)
        found: dict[int, list[Node]] = {}
        for part, nodes in self._listed(merged).items():
            if is_worth(nodes):
                found.setdefault(level[part], []).extend(nodes)
        place = {node: i for i, node in enumerate(self.nodes)}
        return [sorted(nodes, key=place.__getitem__) for nodes in found.values()]

    def _raise(self, part: Node, units: list[Node], merged: DSJ, level: dict[Node, int]) -> None:
        """Let a part join readers that wait for nothing else that it feeds."""
        own = level[part]
        readers = {r for unit in units for r in self._readers(unit) if merged.find(r) is not part}
        joins = {merged.find(r) for r in readers if r in self.supported}
        bound = min((level[j] for j in joins), default=own)
        for reader in readers - self.supported:
            bound = min(bound, self.level[reader] - 1)
        if bound > own:
            for join in joins:
                if level[join] == bound:
                    part = merged.union(part, join)
                    level[part] = bound

    def _listed(self, merged: DSJ) -> dict[Node, list[Node]]:
        """What is connected, by its representative."""
        found: dict[Node, list[Node]] = {}
        for node in self.nodes:
            if node in self.supported:
                found.setdefault(merged.find(self.units.find(node)), []).append(node)
        return found


def _sorted(waits: dict[Node, set[Node]]) -> list[Node]:
    readers: dict[Node, list[Node]] = {}
    for unit, sources in waits.items():
        for source in sources:
            readers.setdefault(source, []).append(unit)
    missing = {unit: len(sources) for unit, sources in waits.items()}
    found = [unit for unit, n in missing.items() if n == 0]
    for unit in found:  # grows
        for reader in readers.get(unit, ()):
            missing[reader] -= 1
            if missing[reader] == 0:
                found.append(reader)
    return found
