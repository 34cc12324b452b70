from __future__ import annotations

from executorch.extension import pytree


def test_a_tree_is_flattened_and_put_together_again() -> None:
    tree = {"a": [1, (2, 3)], "b": 4}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4]
    assert pytree.tree_unflatten(leaves, spec) == tree
    assert pytree.tree_map(lambda x: x + 1, tree) == {"a": [2, (3, 4)], "b": 5}


def test_the_text_of_a_spec_gives_the_spec() -> None:
    _, spec = pytree.tree_flatten(([1, 2], {"k": 3}))
    assert pytree.from_str(spec.to_str()) == spec
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_one_value_is_given_to_all_leaves_below() -> None:
    _, spec = pytree.tree_flatten([[0, 0], 0])
    assert pytree.broadcast_to_and_flatten([1, 2], spec) == [1, 1, 2]
