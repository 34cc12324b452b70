"""Operator dialects: `edge` (functional, typed) and `backend` (patterns known to one backend)."""
