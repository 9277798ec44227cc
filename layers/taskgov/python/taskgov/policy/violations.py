"""A rule that a policy document breaks: the same value as for a request to the API, whose limits it shares."""

from taskgov.hyperpod.violations import Location, Violation, path_of, value_of, violations_from

__all__ = ["Location", "Violation", "path_of", "value_of", "violations_from"]
