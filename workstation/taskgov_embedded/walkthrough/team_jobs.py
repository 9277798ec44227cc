"""What people see of the jobs of teams in the cluster: their states, their workloads, and what they use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.hyperpod.names import namespace_of, team_of_cluster_queue
from taskgov_embedded.cluster.states import job_state

if TYPE_CHECKING:
    from taskgov_embedded.cluster.objects import KubeObject, ObjectStore

KINDS = ("pytorchjobs", "hyperpodpytorchjobs", "jobs", "pods")


def usage_of(store: ObjectStore) -> dict[str, dict[str, dict[str, tuple[str, str]]]]:
    """Return what each team uses: flavor -> resource -> total and borrowed, as the ClusterQueue's status says."""
    found: dict[str, dict[str, dict[str, tuple[str, str]]]] = {}
    for queue in store.list("clusterqueues"):
        team = team_of_cluster_queue(queue["metadata"]["name"])
        if team is not None:
            found[team] = {
                flavor["name"]: {
                    resource["name"]: (resource["total"], resource["borrowed"]) for resource in flavor["resources"]
                }
                for flavor in queue.get("status", {}).get("flavorsUsage", ())
            }
    return found


def states_of_jobs(store: ObjectStore) -> dict[str, str]:
    """Return the state of every job that somebody submitted, as `team/name`."""
    return {_team_and_name(job): job_state(store, job) for job in _submitted(store)}


def find_job(store: ObjectStore, team: str, name: str) -> KubeObject | None:
    """Return a job, or None when there is none such."""
    for job in _submitted(store):
        if job["metadata"]["name"] == name and job["metadata"]["namespace"] == namespace_of(team):
            return job
    return None


def job_of(store: ObjectStore, workload: str) -> str:
    """Return the job (`team/name`) whose workload this is (`namespace/name`), or the workload's own name."""
    namespace, _, name = workload.partition("/")
    found = store.find("workloads", name, namespace)
    owner = found["metadata"]["ownerReferences"][0]["name"] if found else name
    return f"{namespace.removeprefix('hyperpod-ns-')}/{owner}"


def _team_and_name(job: KubeObject) -> str:
    return f"{job['metadata']['namespace'].removeprefix('hyperpod-ns-')}/{job['metadata']['name']}"


def _submitted(store: ObjectStore) -> list[KubeObject]:
    """Return jobs, and pods that belong to none."""
    found = [job for plural in KINDS for job in store.list(plural)]
    return [job for job in found if not job["metadata"].get("ownerReferences")]
