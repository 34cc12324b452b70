"""Commands of selective builds: python -m executorch.codegen.tools.NAME --help"""
