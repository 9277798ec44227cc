"""Fast futures of a flat queue: one cohort or single queue, one flavor and resource, fair sharing.

Implements the decisions of `taskgov.futures` on lists of numbers. Run times are drawn when a job starts, and arrivals
in blocks of six hours, so a future costs only as much as is simulated: milliseconds with hundreds of waiting jobs.
"""
