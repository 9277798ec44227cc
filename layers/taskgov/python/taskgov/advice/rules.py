"""How can quotas follow from what teams used? The rules that are tried."""

from enum import StrEnum


class Rule(StrEnum):
    """From what a team used to its part of the quotas: stable tokens."""

    TODAY = "today"
    """As it is."""
    USE = "use"
    """In proportion to the GPU-hours."""
    PEAK = "peak"
    """In proportion to the 95 % peak of the hours."""
    ROOT = "root"
    """In proportion to the square root of the GPU-hours: nearer to equal."""
    WATER = "water"
    """Everybody the same, up to the own 95 % peak; what is left by peak."""
    EQUAL = "equal"
