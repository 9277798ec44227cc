"""What happens to a cluster within weeks: to machines, quotas, the document, work, and time."""

from dataclasses import replace
from datetime import datetime, timedelta
from inspect import signature
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from taskgov.hyperpod.model import ActivationState, ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget
from taskgov.snapshot.model import GroupInstanceType, InstanceGroup
from taskgov.snapshot.records import QuotaEdit
from tests.weeks import draws
from tests.weeks.cluster import LivingCluster
from tests.weeks.kinds import EVENTS, BrokenOff, Resting, event
from tests.weeks.machines import (
    BEGIN,
    G5,
    MIXES,
    POOL,
    SICKNESSES,
    STRANGER,
    TEAMS,
    TYPES,
    WELL,
    document_of,
    job,
    node,
)

TIMES: Final = tuple(timedelta(minutes=each) for each in (1, 5, 11, 61, 360, 1440, 4320, 11520))
FAILURES: Final = (
    "UpdateFailed",
    "UpdateRollbackFailed",
    "CreateFailed",
    "CreateRollbackFailed",
    "DeleteFailed",
    "Deleting",
)
MOST_NODES: Final = 8
Index = st.integers(0, 7)


class Events(RuleBasedStateMachine):
    """A cluster and what happens to it. Subclasses say what follows each event."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = LivingCluster(BEGIN)
        self.types: tuple[str, ...] = (G5,)
        self.submitted = 0
        self.next_look: datetime | None = None
        """`recheckAt` of the last plan."""
        self.broken_off: BrokenOff | None = None
        """Where the next run is broken off; None where it comes to its end."""
        self.resting: Resting | None = None
        """What the last run left to do, while nothing but time has changed since; None where it left something."""

    @initialize(
        types=st.sampled_from(MIXES),
        counts=st.tuples(*[st.sampled_from([4, 6, 3, 2, 8, 0])] * 2),
        single=st.sampled_from([False, False, False, True]),
        drawn=st.data(),
    )
    def a_cluster_is_built(
        self, types: tuple[str, ...], counts: tuple[int, ...], single: bool, drawn: st.DataObject
    ) -> None:
        self.types = types
        group = "single" if single else None
        if single:
            self.cluster.groups = (InstanceGroup("single", tuple(GroupInstanceType(each, 1) for each in types)),)
        for instance_type, count in zip(types, counts, strict=False):
            machines = (node(instance_type, number, group) for number in range(count))
            self.cluster.nodes |= {each.name: each for each in machines}
        for team in drawn.draw(st.lists(st.sampled_from((*TEAMS, POOL)), unique=True, max_size=2)):
            self._make(team, drawn.draw(draws.config(types)))
        told = drawn.draw(draws.document(types, BEGIN))
        plain = {name: each for name, each in told.items() if name in {"apiVersion", "cluster", "teams"}}
        self.cluster.told = told if document_of(told).document else plain
        self.cluster.written = 1

    @rule(drawn=st.data())
    def something_happens(self, drawn: st.DataObject) -> None:
        """Draw an event, the frequent ones more often, and let it happen."""
        names = [name for name, each in EVENTS.items() if each.possible(self) for _ in range(each.often)]
        name = drawn.draw(st.sampled_from(names), label="event")
        arguments = {key: drawn.draw(values, label=key) for key, values in EVENTS[name].arguments.items()}
        method = getattr(self, name)
        if "drawn" in signature(method).parameters:
            arguments["drawn"] = drawn
        method(**arguments)

    # Machines

    @event(
        number=Index,
        sickness=st.sampled_from(SICKNESSES),
        count=st.sampled_from([1, 1, 2]),
        possible=lambda self: bool(self.cluster.nodes),
        often=3,
    )
    def nodes_fail(self, number: int, sickness: dict[str, Any], count: int) -> None:
        names = sorted(self.cluster.nodes)
        for name in (names[number:] + names[:number])[:count]:
            self.cluster.nodes[name] = replace(self.cluster.nodes[name], **sickness)
        self._happened()

    @event(number=Index, all_of_them=st.booleans(), possible=lambda self: bool(self._sick()), often=3)
    def nodes_return(self, number: int, all_of_them: bool) -> None:
        sick = self._sick()
        for name in sick if all_of_them else [sick[number % len(sick)]]:
            self.cluster.nodes[name] = replace(self.cluster.nodes[name], **WELL)
        self._happened()

    def _sick(self) -> list[str]:
        return [name for name, each in sorted(self.cluster.nodes.items()) if replace(each, **WELL) != each]

    @event(instance_type=st.sampled_from(TYPES), count=st.integers(1, 3), often=2)
    def nodes_come(self, instance_type: str, count: int) -> None:
        if instance_type not in self.types:
            instance_type = self.types[0]
        group = self.cluster.groups[0].name if self.cluster.groups else None
        for number in range(MOST_NODES):
            made = node(instance_type, number, group)
            if made.name not in self.cluster.nodes and count > 0:
                self.cluster.nodes[made.name] = made
                count -= 1
        self._happened()

    @event(number=Index, count=st.sampled_from([1, 1, 2, 9]))
    def nodes_go(self, number: int, count: int) -> None:
        names = sorted(self.cluster.nodes)
        for name in (names[number:] + names[:number])[:count]:
            del self.cluster.nodes[name]
        self._happened()

    # The document

    @event(name=st.sampled_from(TEAMS), often=3)
    def a_team_is_promised_something_else(self, name: str, drawn: st.DataObject) -> None:
        others = [each for each in self.cluster.told["teams"] if each["name"] != name]
        teams = sorted([*others, drawn.draw(draws.team(name, self.types))], key=lambda each: str(each["name"]))
        self._write_document({**self.cluster.told, "teams": teams})

    @event(name=st.sampled_from(TEAMS))
    def a_team_is_taken_out(self, name: str) -> None:
        teams = [each for each in self.cluster.told["teams"] if each["name"] != name]
        self._write_document({**self.cluster.told, "teams": teams})

    @event(section=st.sampled_from(sorted(draws.SECTIONS)), often=4)
    def a_section_is_written(self, section: str, drawn: st.DataObject) -> None:
        content = drawn.draw(draws.SECTIONS[section](self.types, self.cluster.now))
        told = {name: each for name, each in self.cluster.told.items() if name != section}
        self._write_document(told if content is None else {**told, section: content})

    @event(possible=lambda self: bool(self.cluster.told.get("guardrails")))
    def limits_are_lifted(self) -> None:
        self._write_document({**self.cluster.told, "guardrails": {}})

    @event(possible=lambda self: bool(self.cluster.told.get("leases")))
    def leases_are_taken_out(self) -> None:
        self._write_document({**self.cluster.told, "leases": []})

    @event(possible=lambda self: bool(self.cluster.told.get("teams")), often=4)
    def a_lease_is_made(self, drawn: st.DataObject) -> None:
        told, teams = self.cluster.told.get("leases", []), [each["name"] for each in self.cluster.told["teams"]]
        made = drawn.draw(draws.lease(self.types, self.cluster.now, teams))
        self._write_document({**self.cluster.told, "leases": [*told, made][-3:]})

    @event()
    def a_mistake_is_written(self) -> None:
        """Nobody can use the document at the next run; after it the mistake is fixed."""
        self.cluster.mistaken = True

    def _write_document(self, told: dict[str, Any]) -> None:
        """Write a document that keeps the rules; any other is not written."""
        told = draws.fitting(told)
        if document_of(told).document is None:
            return
        self.cluster.told = told
        self.cluster.written += 1
        self._happened()

    # Quotas

    @event(number=Index, often=2)
    def a_person_edits_a_quota(self, number: int, drawn: st.DataObject) -> None:
        quota = self._any(number)
        if quota is not None and quota.status in {"Created", "Updated", "UpdateFailed"}:
            config = ComputeQuotaConfig.model_validate(drawn.draw(draws.config(self.types)))
            self._edit(quota, compute_quota_config=config, status="Updated")

    @event(number=Index, weight=st.sampled_from([0, 50]))
    def a_person_sets_a_weight(self, number: int, weight: int) -> None:
        quota = self._any(number)
        if quota is not None and quota.status in {"Created", "Updated"}:
            team = quota.compute_quota_target.team_name
            self._edit(quota, compute_quota_target=ComputeQuotaTarget(team_name=team, fair_share_weight=weight))

    @event(number=Index)
    def a_person_switches_a_quota(self, number: int) -> None:
        quota = self._any(number)
        if quota is not None and quota.status in {"Created", "Updated"}:
            on = quota.activation_state is ActivationState.ENABLED
            self._edit(quota, activation_state=ActivationState.DISABLED if on else ActivationState.ENABLED)

    @event(name=st.sampled_from((STRANGER, *TEAMS)))
    def a_person_creates_a_quota(self, name: str, drawn: st.DataObject) -> None:
        self._make(name, drawn.draw(draws.config(self.types)))
        self._happened()

    @event(number=Index)
    def a_person_deletes_a_quota(self, number: int) -> None:
        quota = self._any(number)
        if quota is not None:
            del self.cluster.quotas[quota.compute_quota_id]
            self.cluster.applied.pop(quota.compute_quota_id, None)
            self._happened()

    @event(number=Index, status=st.sampled_from(FAILURES), often=2)
    def a_quota_fails(self, number: int, status: str) -> None:
        quota = self._any(number)
        if quota is not None:
            self.cluster.quotas[quota.compute_quota_id] = quota.model_copy(update={"status": status})
            self._happened()

    @event(status=st.sampled_from(FAILURES[:-1]), possible=lambda self: self.cluster.scheduler is not None)
    def the_cluster_policy_fails(self, status: str) -> None:
        assert self.cluster.scheduler is not None
        self.cluster.scheduler = self.cluster.scheduler.model_copy(update={"status": status})
        self._happened()

    def _any(self, number: int) -> ComputeQuota | None:
        keys = sorted(self.cluster.quotas)
        return self.cluster.quotas[keys[number % len(keys)]] if keys else None

    def _make(self, team: str, config: dict[str, Any]) -> None:
        """Create a quota by hand; a name that is taken is not taken twice."""
        name = f"{team}-by-hand"
        if all(quota.name != name for quota in self.cluster.quotas.values()):
            self.cluster.quotas[f"id-{name}"] = ComputeQuota(
                compute_quota_id=f"id-{name}",
                name=name,
                compute_quota_version=1,
                status="Created",
                compute_quota_config=ComputeQuotaConfig.model_validate(config),
                compute_quota_target=ComputeQuotaTarget(team_name=team),
            )

    def _edit(self, quota: ComputeQuota, **update: Any) -> None:
        key, version = quota.compute_quota_id, quota.compute_quota_version + 1
        self.cluster.quotas[key] = quota.model_copy(update={"compute_quota_version": version, **update})
        self.cluster.edits[key] = QuotaEdit(key, "alice", self.cluster.now, "UpdateComputeQuota")
        self._happened()

    # Work, time, runs

    @event(team=st.sampled_from(TEAMS), jobs=draws.jobs(), often=4)
    def jobs_come(self, team: str, jobs: list[tuple[int, int, int]]) -> None:
        for pods, number, priority in jobs:
            self.submitted += 1
            instance_type = self.types[number % len(self.types)]
            made = job(team, self.submitted, instance_type, pods, priority, self.cluster.now)
            self.cluster.jobs[f"{made['metadata']['namespace']}/{made['metadata']['name']}"] = made
        self._happened()

    @event(number=Index, possible=lambda self: bool(self.cluster.jobs))
    def a_job_ends(self, number: int) -> None:
        keys = sorted(self.cluster.jobs)
        del self.cluster.jobs[keys[number % len(keys)]]
        self._happened()

    @event(waves=st.integers(0, 2), writes=st.integers(0, 1), lost=st.booleans(), often=2)
    def a_run_is_broken_off(self, waves: int, writes: int, lost: bool) -> None:
        self.broken_off = BrokenOff(waves, writes, lost)

    @event(possible=lambda self: self.next_look is not None and self.next_look > self.cluster.now, often=4)
    def the_next_moment_comes(self) -> None:
        """Let it be the moment at which the last plan wanted to be made again."""
        if self.next_look is not None:
            self._pass(self.next_look - self.cluster.now)

    @event(time=st.sampled_from(TIMES), often=6)
    def time_passes(self, time: timedelta) -> None:
        self._pass(time)

    def _happened(self) -> None:
        """Say that something other than time has changed; a minute has gone by."""
        self.resting = None
        self.cluster.now += timedelta(minutes=1)

    def _pass(self, time: timedelta) -> None:
        self.cluster.pass_time(time)
