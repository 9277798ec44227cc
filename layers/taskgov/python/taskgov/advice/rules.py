"""The rules that compute quotas from what teams used."""

from enum import StrEnum


class Rule(StrEnum):
    """How a team's part of the quotas follows from its use. The values are stable tokens."""

    TODAY = "today"
    """No change."""
    USE = "use"
    """In proportion to the GPU-hours."""
    PEAK = "peak"
    """In proportion to the 95 % peak (`taskgov.advice.past.Use.peak`)."""
    ROOT = "root"
    """In proportion to the square root of the GPU-hours, which is closer to equal parts."""
    WATER = "water"
    """Equal parts, each up to the team's 95 % peak (max-min fairness); the rest in proportion to the peaks."""
    EQUAL = "equal"
