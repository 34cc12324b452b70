"""The edge dialect: core ATen with explicit types and dim orders."""
