"""Composition: which adapter stands behind which port.

One module a function, so that none imports what it does not use.
"""

import gc
from typing import Final

ALLOCATIONS: Final = 50_000
"""Python looks for circles of garbage each time that so many more objects were made than freed, instead of each 700:
what a cluster is read into stays to the end, and was walked again and again. That took a third of the CPU time of a
plan for 200 teams (`make bench`); peaks of memory are 1 % higher."""

gc.set_threshold(ALLOCATIONS)
