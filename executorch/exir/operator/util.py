from __future__ import annotations


def gen_out_variant_schema(func_op_schema: str) -> str:
    """The schema of the out variant that belongs to an operator, both as text.

    `ns::add_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)` has
    `ns::add.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)`; of an out
    variant it is the schema itself. RuntimeError for an operator without tensors to write into.
    """
    from torchgen.model import FunctionSchema, SchemaKind
    from torchgen.native_function_generation import (
        functional_to_out_signature,
        mutable_to_out_signature,
        self_to_out_signature,
    )

    namespace, separator, rest = func_op_schema.rpartition("::")
    schema = FunctionSchema.parse(rest)
    convert = {
        SchemaKind.functional: functional_to_out_signature,
        SchemaKind.inplace: self_to_out_signature,
        SchemaKind.mutable: mutable_to_out_signature,
        SchemaKind.out: lambda given: given,
    }.get(schema.kind())
    if convert is None:
        raise RuntimeError(
            f"{func_op_schema}: expected a functional operator, one that writes into arguments or "
            f"an out variant, found {schema.kind()}"
        )
    return f"{namespace}{separator}{convert(schema)}"
