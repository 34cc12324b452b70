"""The version of the schema that programs are written in. Runtimes refuse later ones."""

EXECUTORCH_SCHEMA_VERSION = 0
