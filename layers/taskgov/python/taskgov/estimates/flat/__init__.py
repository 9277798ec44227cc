"""Futures of a flat queue on plain numbers: one cohort or lone queue, one flavor and resource, fair sharing.

The decisions of `taskgov.futures`, in functions on lists of numbers. Run times are drawn when a job starts, arrivals
six hours at a time, so that a future costs only as much as it is played: milliseconds with hundreds of waiting jobs.
"""
