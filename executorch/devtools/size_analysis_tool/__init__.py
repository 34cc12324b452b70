"""What the bytes of a program are for: `size_analysis_tool`."""
