import operator

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx import Graph

from executorch.exir.backend.canonical_partitioners.acyclic_groups import acyclic_groups


def graph_of(edges):
    """edges[i]: indices of the nodes that node i reads; even nodes are supported."""
    graph, nodes = Graph(), []
    x = graph.placeholder("x")
    for sources in edges:
        nodes.append(graph.call_function(operator.add, tuple(nodes[s] for s in sources) or (x,)))
    graph.output(nodes[-1])
    return graph, nodes


def waits_in_a_circle(nodes, groups):
    group_of = {n: i for i, group in enumerate(groups) for n in group}
    ids = {n: group_of.get(n, -1 - i) for i, n in enumerate(nodes)}
    reads = {u: set() for u in ids.values()}
    for node in nodes:
        reads[ids[node]] |= {ids[s] for s in node.all_input_nodes if s in ids} - {ids[node]}
    left = dict(reads)
    while left:
        ready = [u for u, sources in left.items() if not sources & left.keys()]
        if not ready:
            return True
        for u in ready:
            del left[u]
    return False


def test_what_is_connected_is_one_group():
    graph, n = graph_of([(), (0,), (1,)])
    assert acyclic_groups(graph, set(n)) == [n]


def test_a_path_through_another_node_divides():
    graph, n = graph_of([(), (0,), (0, 1)])  # 2 reads 0, also by way of 1
    assert acyclic_groups(graph, {n[0], n[2]}) == [[n[0]], [n[2]]]


def test_a_node_that_feeds_a_later_group_only_joins_it():
    graph, n = graph_of([(), (0,), (), (1, 2)])  # 1 is not supported
    assert acyclic_groups(graph, {n[0], n[2], n[3]}) == [[n[0]], [n[2], n[3]]]


def test_nodes_that_belong_together_are_in_one_group():
    graph, n = graph_of([(), ()])
    assert acyclic_groups(graph, set(n), [n], lambda nodes: len(nodes) > 1) == [n]


def test_what_is_not_connected_is_one_group_too():
    graph, n = graph_of([(), (), (1,), (0,), (2, 3)])  # 2 is not supported
    assert acyclic_groups(graph, {n[0], n[1], n[3]}) == [[n[0], n[1], n[3]]]


def test_what_is_not_worth_a_group_joins_no_other():
    graph, n = graph_of([(), (0,), ()])
    assert acyclic_groups(graph, set(n), is_worth=lambda nodes: len(nodes) > 1) == [n[:2]]


def test_nodes_that_cannot_be_together_are_in_no_group():
    graph, n = graph_of([(), (0,), (1,)])
    assert acyclic_groups(graph, {n[0], n[2]}, [[n[0], n[2]]]) == []


def test_results_of_lists_stay_with_their_producer():
    graph = Graph()
    x = graph.placeholder("x")
    split = graph.call_function(torch.split, (x, 1))
    item = graph.call_function(operator.getitem, (split, 0))
    graph.output(item)
    assert acyclic_groups(graph, {split}) == [[split, item]]


def longest_alternation(edges, supported):
    """Groups that a path runs through, at most."""
    longest = {}
    for i, sources in enumerate(edges):
        mine = i in supported
        before = [longest[s] + (mine and s not in supported) for s in sources]
        longest[i] = max([*before, int(mine)])
    return max((longest[i] for i in supported), default=0)


@st.composite
def graphs(draw):
    count = draw(st.integers(2, 16))
    edges = [
        tuple(draw(st.sets(st.integers(0, i - 1), max_size=3))) if i else () for i in range(count)
    ]
    supported = draw(st.sets(st.integers(0, count - 1)))
    groups = st.sets(st.sampled_from(sorted(supported) or [0]), min_size=2)
    together = draw(st.lists(groups, max_size=2)) if len(supported) > 1 else []
    return edges, supported, together


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_groups_never_wait_for_each_other_in_a_circle(drawn):
    edges, supported, together = drawn
    graph, n = graph_of(edges)
    wanted = [[n[i] for i in sorted(group)] for group in together]
    groups = acyclic_groups(graph, {n[i] for i in supported}, wanted)
    assert not waits_in_a_circle(n, groups)
    found = [node for group in groups for node in group]
    assert len(found) == len(set(found)) and set(found) <= {n[i] for i in supported}
    if not together:
        assert len(groups) == longest_alternation(edges, supported)
        assert set(found) == {n[i] for i in supported}
    for group in wanted:
        homes = {next((k for k, g in enumerate(groups) if node in g), None) for node in group}
        assert len(homes) == 1 or None in homes
