"""Benchmarks: CPU time, best of seven, beside plain NumPy in the same run."""
