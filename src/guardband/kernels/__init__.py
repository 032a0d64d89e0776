"""The numbers: compiled kernels and their types; no I/O, no randomness, no exceptions."""
