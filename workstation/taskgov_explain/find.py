"""Which workload is meant? By the names that people know: the job's, the workload's, with or without the team."""

from collections.abc import Iterable
from difflib import get_close_matches

from taskgov.kueue.named import Named, job_of, named
from taskgov.snapshot.derived import once
from taskgov.snapshot.model import KubernetesObject, KueueObjects


class UnknownNameError(LookupError):
    """Nothing, or more than one thing, has this name; the message says which names there are."""


@once
def workloads_in(kueue: KueueObjects) -> tuple[Named, ...]:
    """Return all workloads with their names."""
    return tuple(map(named, kueue.workloads))


def find_workload(workloads: Iterable[KubernetesObject], name: str) -> Named:
    """Return the workload of this name. Raises `UnknownNameError` that names the nearest, or all that it may be."""
    everyone = tuple(workloads)
    # Each of its names ends with that of the workload or of the job.
    some = (item for item in everyone if name.endswith((item["metadata"]["name"], job_of(item))))
    found = [workload for workload in map(named, some) if name in workload.names]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownNameError(f"{name} may be {_listed(_apart(found))}: choose one")
    raise UnknownNameError(f"there is no workload named {name}; {_nearest(name, [named(item) for item in everyone])}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to say when a name is not known: the nearest names, or some of those that there are.

    Example:
        >>> nearest("team-aa", ["team-a", "team-b", "pool"])
        'did you mean team-a or team-b?'
        >>> nearest("x", [])
        'there are none'

    """
    names = sorted(set(known))
    if close := get_close_matches(name, names, n=3, cutoff=0.6):
        return f"did you mean {' or '.join(close)}?"
    if not names:
        return "there are none"
    return f"there {'is' if len(names) == 1 else 'are'} {_listed(names)}"


def _nearest(name: str, everyone: list[Named]) -> str:
    by_name = {alias: workload.shown for workload in everyone for alias in sorted(workload.names)}
    close = list(dict.fromkeys(by_name[alias] for alias in get_close_matches(name, by_name, n=8, cutoff=0.6)))
    if close:
        return f"did you mean {' or '.join(close[:3])}?"
    return nearest(name, (workload.shown for workload in everyone))


def _apart(found: list[Named]) -> list[str]:
    """Return a name of each that no other has: Kueue's where two jobs of a team share theirs."""
    shown = [workload.shown for workload in found]
    return [workload.shown if shown.count(workload.shown) == 1 else workload.key for workload in found]


def _listed(names: Iterable[str], most: int = 8) -> str:
    some = list(names)
    more = f" and {len(some) - most} more" if len(some) > most else ""
    return ", ".join(some[:most]) + more
