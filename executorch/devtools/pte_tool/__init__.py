"""What differs between two programs: `diff_pte`."""
