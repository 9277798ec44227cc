"""Futures of a flat queue on plain numbers: one cohort or lone queue, one flavor and resource, fair sharing.

The decisions of `taskgov.futures`, in functions on lists of numbers. Only what starts is drawn, and only as far as it
takes: a future of a queue with hundreds of waiting jobs takes milliseconds. All functions but those of `tabling` are
written so that Numba compiles them as they are (`benchmarks.compiled`); nothing here needs it.
"""
