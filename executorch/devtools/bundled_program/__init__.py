"""Programs bundled with test cases."""
