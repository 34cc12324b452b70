"""Choose operators and register kernels by yaml; what `tools/cmake/Codegen.cmake` runs."""
