"""The storm: thousands of node events, shuffled and repeated, in the midst of other people's edits.

Nothing may be lost, doubled or overwritten, however many messages say the same; and only few runs may write.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.aws_api.faults import Fault
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import NodeEvent, Walkthrough
from taskgov_embedded.walkthrough.world import World
from tests.faults.evidence import Evidence, Witness
from tests.faults.sites import MACHINE

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE: Final = "ml.g5.8xlarge"
NODES: Final = 40
FAILING: Final = 10
GOVERNED: Final = 8
"""Teams whose quotas follow the plan; as many again are edited by people, whose word the policy keeps."""
EDITS: Final = 50
BURST_SECONDS: Final = 60
WAVES: Final = 6
STEP_SECONDS: Final = 5.0
"""How long a step of the state machine takes; in no time at all, each message would have a run of its own."""
START_SECONDS: Final = 0.2
SEED: Final = 20261120
PEOPLE: Final = ("ana", "bo", "chi")


@dataclass(frozen=True, slots=True)
class Weather:
    """What a storm was like, and what it left."""

    events: int
    messages: int
    edits: int
    executions: int
    writing: int
    """Executions that wrote."""
    changed: int
    """Quotas that the automation changed from first to last."""
    written: int
    """Writes of quotas by the automation."""
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"storm: {self.events} events in {self.messages} messages, {self.edits} edits: "
            f"{self.executions} executions, {self.writing} wrote; "
            f"{self.changed} quotas changed in {self.written} writes; {len(self.problems)} problems"
        )


def storm_world() -> World:
    """Return a world for a storm, not opened yet."""
    return World(
        Walkthrough.model_validate(
            {
                "name": "storm",
                "source": "the mission",
                "about": "many events, few writes",
                "mode": "apply",
                "starts": "2026-11-20T09:00:00Z",
                "cluster": {"groups": [{"instanceType": TYPE, "count": NODES}]},
                "steps": [{"title": "a storm"}],
            }
        )
    )


def rage(world: World, events: int, edits: int = EDITS, seed: int = SEED) -> Weather:
    """Govern the cluster, let nodes fail, deliver `events` one to three times each, and let people edit meanwhile."""
    actor = Actor(world)
    actor._policy(_document())
    world.stack.run_until_quiet(600)
    witness, calls = Witness(world), len(world.stack.calls)
    chance = random.Random(seed)  # noqa: S311 a storm that can be repeated
    for _ in range(FAILING):
        actor._nodes(NodeEvent.model_validate({"happens": "fails", "count": 1}))
    world.stack.faults.chooser = _taking_time
    messages = _deliver(world, chance, events)
    edited = _edit_meanwhile(world, chance, edits)
    world.stack.run_until_quiet(3600)
    world.stack.advance(3600, schedules=["ResyncAllSchedule"])
    world.stack.run_until_quiet(3600)
    return _judge(world, witness, calls, events, messages, edited)


def _deliver(world: World, chance: random.Random, events: int) -> int:
    """Put node health events on the bus at moments of the burst, each one to three times, in no order."""
    nodes = [node.instance_id for node in world.cluster.nodes()]
    failed = {node.instance_id for node in world.cluster.nodes() if node.message is not None}
    chosen = [nodes[number % len(nodes)] for number in range(events)]
    doubled = [node for node in chosen for _ in range(chance.randint(1, 3))]
    chance.shuffle(doubled)
    for node in doubled:
        wave = chance.randrange(WAVES) * BURST_SECONDS / WAVES
        world.clock.after(wave, _telling(world, node, healthy=node not in failed))
    return len(doubled)


def _taking_time(service: str, operation: str, _params: Mapping[str, Any], caller: str) -> Fault | None:
    """Let steps and starts take the time that they take in an account."""
    if (service, operation) == ("lambda", "Invoke") and MACHINE in caller:
        return Fault(service, operation, "delay", 1, seconds=STEP_SECONDS)
    if operation == "StartExecution":
        return Fault(service, operation, "delay", 1, seconds=START_SECONDS)
    return None


def _telling(world: World, node: str, *, healthy: bool) -> Any:
    def tell() -> None:
        world.stack.sagemaker.emit_node_health(world.registered, node, healthy=healthy, reason="")

    return tell


def _edit_meanwhile(world: World, chance: random.Random, edits: int) -> dict[str, int]:
    """Let people change the quotas of their teams at moments of the burst; returns what each wrote last, by quota."""
    last: dict[str, int] = {}
    teams = itertools.cycle(f"edited-{number}" for number in range(GOVERNED))
    moments = sorted(chance.uniform(0, BURST_SECONDS) for _ in range(edits))
    for moment, team in zip(moments, teams, strict=False):
        count = chance.choice((1, 2))
        world.clock.after(moment, _editing(world, team, count, chance.choice(PEOPLE), last))
    return last


def _editing(world: World, team: str, count: int, person: str, last: dict[str, int]) -> Any:
    def edit() -> None:
        found = world.quota_named(team)
        if found["Status"] not in {"Created", "Updated"}:
            world.clock.after(1, edit)  # the service refuses a second change while the first one settles
            return
        config = found["ComputeQuotaConfig"] | {"ComputeQuotaResources": [{"InstanceType": TYPE, "Count": count}]}
        world.stack.client("sagemaker", person=person).update_compute_quota(
            ComputeQuotaId=found["ComputeQuotaId"],
            TargetVersion=found["ComputeQuotaVersion"],
            ComputeQuotaConfig=config,
            ComputeQuotaTarget=found["ComputeQuotaTarget"],
        )
        last[found["Name"]] = count

    return edit


def _judge(
    world: World, witness: Witness, calls: int, events: int, messages: int, edited: Mapping[str, int]
) -> Weather:
    evidence = witness.evidence()
    own = [write for write in evidence.writes if write.by_automation]
    final = evidence.state()
    changed = [name for name, config in evidence.before.items() if name not in edited and final.get(name) != config]
    writing = [record for record in evidence.records if record.applied]
    return Weather(
        events=events,
        messages=messages,
        edits=sum(not write.by_automation for write in evidence.writes),
        executions=sum(call.operation == "StartExecution" and not call.error for call in world.stack.calls[calls:]),
        writing=len({record.run_id.rpartition("-")[0] for record in writing}),
        changed=len(changed),
        written=len(own),
        problems=tuple(_problems(evidence, edited, len(changed), len(own), len(writing))),
    )


def _problems(evidence: Evidence, edited: Mapping[str, int], changed: int, written: int, writing: int) -> list[str]:
    final, last = evidence.state(), evidence.records[-1]
    found = [
        f"{name} holds {final[name]['ComputeQuotaResources']}, and a person had written {count}"
        for name, count in edited.items()
        if final[name]["ComputeQuotaResources"] != [{"InstanceType": TYPE, "Count": count}]
    ]
    if writing > 3:
        found.append(f"{writing} runs wrote")
    if written != changed:
        found.append(f"{written} writes for {changed} quotas that changed")
    if last.outcome != "nothing-to-do":
        found.append(f"the last run finds {last.outcome}: the state is not what one plan of the last snapshot wants")
    if evidence.dead_letters or evidence.locked_until or evidence.running:
        found.append(f"left: {evidence.dead_letters} dead letters, a lock until {evidence.locked_until}, or a run")
    return found


def _document() -> dict[str, Any]:
    """Half of the teams share what is healthy; the other half is edited by people, and edits by hand are kept."""
    shares = [
        {"name": f"shared-{number}", "share": [{"instanceType": TYPE, "percent": 100 / GOVERNED / 2, "floor": 1}]}
        for number in range(GOVERNED)
    ]
    promised = [
        {"name": f"edited-{number}", "quota": {"ComputeQuotaResources": [{"InstanceType": TYPE, "Count": 2}]}}
        for number in range(GOVERNED)
    ]
    return {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
        "teams": shares + promised,
        "guardrails": {"maxDecreasePercent": 100, "maxPreemptedGpus": 100},
        "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
        "handEdits": "keep",
    }
