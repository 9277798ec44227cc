"""The effects of a plan on workloads: which start, are preempted or wait, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskgov.allocation.plan import AT_RISK, WorkloadEffect
from taskgov.hyperpod.instance_types import mig_slices
from taskgov.hyperpod.names import team_of_cluster_queue, team_of_namespace
from taskgov.kueue.named import named
from taskgov.quantities import is_accelerator, is_mig
from taskgov.scheduling.unmodelled import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskgov.allocation.projection import Projection
    from taskgov.scheduling import Admission
    from taskgov.scheduling.doubts import Doubts


@dataclass(frozen=True, slots=True)
class Loss:
    """A workload that is preempted because of a wave, and what it held."""

    workload: str
    wave: int
    reason: str
    preemptor: str
    held: Admission


Losses = dict[str, Loss]
"""Workload -> its first preemption on the way."""


def effects_of(
    calm: Projection, ends: Sequence[Projection], losses: Losses, at_risk: Doubts
) -> Iterator[WorkloadEffect]:
    """Give what differs for each workload from the cluster that is left alone (`calm`), by name.

    `ends` are what the plan may come to, the likeliest first; `at_risk` may be preempted besides.
    """
    model, *others = (cluster.model for cluster in ends)
    doubts = {key: features for cluster in ends for key, features in cluster.model.doubts.items()}

    def shown(key: str) -> str:
        return named(calm.model.workload(key)).shown

    for key in sorted(calm.model.workloads()):
        before, after = calm.model.admission(key), model.admission(key)
        waits = after is None or any(other.admission(key) is None for other in others)
        loss, uncertain = losses.get(key), doubts.get(key, ())
        if loss is not None:
            because = f"{loss.reason}, by {shown(loss.preemptor)}" + (", and starts again" if after else "")
            yield _effect(key, shown(key), "preempted", loss.held, because, uncertain, loss.wave)
        elif before is None and after is not None:
            yield _effect(
                key, shown(key), "starts", after, f"there is quota for it in {after.cluster_queue}", uncertain
            )
        elif before is not None and waits:
            yield _effect(
                key, shown(key), "waits", before, f"it would have had quota in {before.cluster_queue}", uncertain
            )
        elif before is not None and key in at_risk:
            yield _effect(key, shown(key), AT_RISK, before, "work that waits may take its quota", at_risk[key])


def _effect(
    key: str, task: str, effect: str, held: Admission, because: str, uncertain: tuple[str, ...], wave: int = 0
) -> WorkloadEffect:
    namespace, _, name = key.rpartition("/")
    team = team_of_cluster_queue(held.cluster_queue) or team_of_namespace(namespace) or held.cluster_queue
    said = f"{because}; not certain: {words_of(uncertain)}" if uncertain else because
    return WorkloadEffect(namespace, name, team, effect, gpus_of(held), said, wave, uncertain, task)


def gpus_of(held: Admission) -> int:
    """Return the accelerators a workload holds; partitions of a GPU count by their sevenths, rounded up."""
    sevenths = 0
    for pod_set in held.pod_sets:
        for resource, amount in pod_set.usage.items():
            if is_accelerator(resource):
                whole = mig_slices(resource.removeprefix("nvidia.com/")) if is_mig(resource) else 7
                sevenths += amount * whole
    return -(-sevenths // 7)
