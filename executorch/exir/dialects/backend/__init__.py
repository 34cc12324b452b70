"""The backend dialect: operators that stand for a pattern of edge operators."""
