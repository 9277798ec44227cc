"""Play walkthroughs, and keep which permissions were needed by whom, and where."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import boto3

from taskgov.adapters.dynamodb import Table
from taskgov.adapters.kubernetes.paging import PAGE
from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.plan import ChangeKind, Reason
from taskgov_embedded.iam import actions, evaluation
from taskgov_embedded.iam.conditions import conditions
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Action, all_files, load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.step_result import StepResult
from taskgov_embedded.walkthrough.world import World
from tests.deployment.releases import older_release
from tests.support.ec2_machines import buy_block, launch_in_ec2, lose_nodes
from tests.support.plans import creation, deletion, plan_of, policy, policy_change
from tests.support.refusals import refused_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov_embedded.stack import Stack

ROOM = "beside the walkthroughs"
EVENTS = Path(__file__).parents[2] / "events"
OWNER, TOKEN = "a-person", 99


@dataclass(frozen=True, slots=True)
class Need:
    """One action that a role had to be allowed, on any of the resources."""

    role: str
    action: str
    resources: tuple[str, ...]
    context: str

    def allowed_by(self, policy: tuple[evaluation.Statement, ...]) -> bool:
        context: dict[str, Any] = json.loads(self.context)
        return any(evaluation.evaluate(policy, self.action, one, context).allowed for one in self.resources)


@dataclass(slots=True)
class Recorded:
    """What all worlds that were played have in common: the template's roles; and what they needed of them."""

    policies: dict[str, tuple[evaluation.Statement, ...]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Physical ids, longest first, and the logical ids that tables show instead."""
    needs: dict[Need, str] = field(default_factory=dict)
    """Each need, and where it came up first."""
    used: dict[evaluation.Grant, str] = field(default_factory=dict)
    """Each permission that was used, and where first."""
    denied: list[str] = field(default_factory=list)
    unknown_condition_keys: set[str] = field(default_factory=set)

    def granted(self) -> list[evaluation.Grant]:
        return [grant for role in sorted(self.policies) for grant in evaluation.grants_of(self.policies[role])]

    def role_name(self, arn: str) -> str:
        return self.shown(arn.rpartition("/")[2])

    def shown(self, text: str) -> str:
        """Return an ARN as a person reads it: logical ids, without partition, Region and account."""
        for physical, logical in self.names.items():
            text = text.replace(physical, logical)
        return text.rpartition(":::")[2] if ":::" in text else text.rpartition("111122223333:")[2]

    def add(self, other: Recorded) -> None:
        """Add what another record has, after one's own."""
        self.know(other.policies)
        self.names = self.names or other.names
        self.needs = other.needs | self.needs
        self.used = other.used | self.used
        self.denied += other.denied
        self.unknown_condition_keys |= other.unknown_condition_keys

    def know(self, policies: Mapping[str, tuple[evaluation.Statement, ...]]) -> None:
        """Add policies; some statements are there on condition, so that not every stack has them."""
        for role, statements in policies.items():
            known = self.policies.get(role, ())
            self.policies[role] = (*known, *(each for each in statements if each not in known))

    def take(self, stack: Stack, where: str, asked: list[Need]) -> None:
        """Add what one stack has seen."""
        self.denied += [f"{where}: {moment.what}" for moment in stack.timeline.of("denied")]
        self.unknown_condition_keys |= stack.requests.unknown_condition_keys
        for need in (*asked, *_needs(stack)):
            self.needs.setdefault(need, where)
        for grant in stack.requests.grants_used:
            self.used.setdefault(grant, where)


@contextmanager
def recording(recorded: Recorded, world: World, where: str) -> Iterator[World]:
    """Open a world, and take what it has seen when the body ends."""
    with world:
        stack, asked = world.stack, list[Need]()
        requests = stack.account.requests
        allows = requests.allows

        def asking(role: str, action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
            known = {"aws:PrincipalArn": role, **(context or {})}
            asked.append(Need(role, action, (resource,), json.dumps(known)))
            return allows(role, action, resource, context)

        requests.allows = asking  # type: ignore[method-assign]  # what services do in a role's name is no call
        _know(recorded, stack)
        for machine in stack.translated.resources_of("AWS::StepFunctions::StateMachine"):
            _needs_of_creation(stack, machine, asking)
        yield world
        recorded.take(stack, where, asked)


def play_beside(recorded: Recorded) -> None:
    """Do what no walkthrough does: fix what failed, forget owners, fail to publish and to tell, look again twice."""
    lease = load(next(file for file in all_files() if "lease" in file.stem))
    with recording(recorded, World(lease), ROOM) as world:
        next(Runner(lease, world).run())
        actor = Actor(world)
        _do(actor, {"reconcile": True})
        _do(actor, {"reconcile": True})
        document = dict(lease.steps[0].do[0].policy or {})
        for number in (1, 2):
            _do(actor, {"policy": document | _changed(number)})
            _do(actor, {"waitMinutes": 2})
        _change_by_hand_what_nobody_remembers(world)
        _give_orders(world, document | _changed(3))
        world.stack.fire("ResyncAllSchedule")
        world.stack.run_until_quiet()
        _lose_the_identity_of_the_table(world)
        _leave_a_lock(world)
        _ask_as_schedules_of_the_release_before(world)
        _fail_to_publish(world)
        _settle_as_failed(world, document)
        _mend_what_failed(world)
        _fail_to_tell(world)
        _fail_to_audit(world)
        _deploy_another_release(world)
    plain = load(next(file for file in all_files() if "without-hyperpod" in file.stem))
    with recording(recorded, World(plain, more={"MaxSeries": "500"}), ROOM) as world:
        machines = launch_in_ec2(world)
        buy_block(world, list(machines.values())[:1], world.clock.now + timedelta(days=1))
        next(Runner(plain, world).run())
        lose_nodes(world, 3)
        _do(Actor(world), {"reconcile": True})
        _fill_more_than_a_page(world)
        _add_more_teams_than_have_series(world)
        for schedule in ("PublishUsageSchedule", "AuditAllSchedule"):
            world.stack.fire(schedule)
            world.stack.run_until_quiet(120)


def _fill_more_than_a_page(world: World) -> None:
    """Let there be so many workloads, all finished, that publishing keeps a memory of them, and owners."""
    finished = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "lastTransitionTime": "2026-11-20T08:00:00Z",
    }
    for number in range(PAGE + 1):
        labels = {"taskgov/submitted-by": "ana"}  # which the record of work keeps as a hash
        metadata = {"name": f"finished-{number}", "namespace": "default", "labels": labels}
        world.cluster.store.apply(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Workload",
                "metadata": metadata,
                "spec": {"podSets": []},
                "status": {"conditions": [finished]},
            }
        )


def _add_more_teams_than_have_series(world: World) -> None:
    """Let there be so many queues that publishing keeps a memory of their metric series."""
    made = world.cluster.store.list("clusterqueues")[0]
    for number in range(10):
        world.cluster.store.apply(
            {
                "apiVersion": made["apiVersion"],
                "kind": made["kind"],
                "metadata": {"name": f"guest-{number}"},
                "spec": {"resourceGroups": made["spec"]["resourceGroups"]},
            }
        )


def _lose_the_identity_of_the_table(world: World) -> None:
    """Let the next run recover the records from the last snapshot."""
    key = {"pk": {"S": f"CLUSTER#{world.cluster_arn}"}, "sk": {"S": "LINEAGE"}}
    world.stack.client("dynamodb").delete_item(TableName=world.stack.physical("GovernanceTable"), Key=key)
    world.stack.fire("ResyncAllSchedule")
    world.stack.run_until_quiet()


def _leave_a_lock(world: World) -> None:
    """Let a run that is over still hold the lock, as one that was stopped does: the next hint clears up after it."""
    machine = world.stack.outputs["ReconcileStateMachineArn"]
    over = world.stack.client("stepfunctions").list_executions(stateMachineArn=machine)["executions"][0]
    _set_lock(world, expires=0, owner=over["executionArn"])
    _do(Actor(world), {"reconcile": True})


def _give_orders(world: World, document: Mapping[str, Any]) -> None:
    """Let a person put a document into force in place of another one, turn the switch, and write by hand."""
    key = {"Bucket": world.stack.physical("GovernanceBucket"), "Key": f"policies/{world.cluster_name}.yaml"}
    cluster = {"name": world.cluster_name, "arn": world.cluster_arn}
    stands = world.stack.client("s3").head_object(**key)["ETag"]
    orders = (
        {
            "action": "put-document",
            "clusterArn": world.cluster_arn,
            "clusterName": world.cluster_name,
            "text": json.dumps(dict(document) | {"cluster": cluster}),
            "replaces": stands,
        },
        {"action": "stop"},
        {"action": "resume"},
        {"action": "rollback", "clusterArn": world.cluster_arn, "planId": "plan-0123456789abcdef"},
        {"action": "reconcile", "clusterArn": world.cluster_arn, "retryRefused": True},
        {
            "action": "unlock",
            "clusterArn": world.cluster_arn,
            "owner": OWNER,
            "fencingToken": TOKEN,
            "expires": 0,
            "reason": "a person is gone",
        },
    )
    _set_lock(world, expires=0)  # which the last order frees
    _refuse_a_write(world)  # which the order before it forgets
    for order in orders:
        status, answer = world.stack.entry.order(order, "ana")
        assert status == 200, answer
    world.stack.run_until_quiet()


def _refuse_a_write(world: World) -> None:
    quota = world.quota_named("team-a")
    refused = refused_for(quota, world.clock.now)
    table = boto3.resource("dynamodb").Table(world.stack.physical("GovernanceTable"))
    Table(table).record_refusal(world.cluster_arn, refused)


def _fail_to_tell(world: World) -> None:
    """Let an audit find its topic gone: what it was about to tell is not counted as told."""
    world.stack.client("sns").delete_topic(TopicArn=world.stack.physical("NoticeTopic"))
    world.stack.fire("AuditAllSchedule")
    world.stack.run_until_quiet(120)


def _changed(number: int) -> dict[str, Any]:
    """Return a document's parts that are different for each number: a cluster policy, and a quota."""
    classes = [{"Name": "training", "Weight": 70 + number}]
    quota = {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": number}]}
    return {
        "schedulerConfig": {"FairShare": "Enabled", "PriorityClasses": classes},
        "teams": [{"name": "team-a", "quota": quota}],
    }


def _do(actor: Actor, action: Mapping[str, Any]) -> None:
    actor.do(Action.model_validate(action), StepResult("", {}))


def _change_by_hand_what_nobody_remembers(world: World) -> None:
    quota, config = world.quota_named("team-a"), world.scheduler_config()
    table, sagemaker = world.stack.client("dynamodb"), world.stack.client("sagemaker")
    for one in (quota["ComputeQuotaId"], config["ClusterSchedulerConfigId"]):
        key = {"pk": {"S": f"QUOTA#{one}"}, "sk": {"S": "CLUSTER"}}
        table.delete_item(TableName=world.stack.physical("GovernanceTable"), Key=key)
    sagemaker.update_compute_quota(
        ComputeQuotaId=quota["ComputeQuotaId"], TargetVersion=quota["ComputeQuotaVersion"], Description="by hand"
    )
    sagemaker.update_cluster_scheduler_config(
        ClusterSchedulerConfigId=config["ClusterSchedulerConfigId"],
        TargetVersion=config["ClusterSchedulerConfigVersion"],
        Description="by hand",
    )
    world.stack.run_until_quiet()


def _mend_what_failed(world: World) -> None:
    """Delete a quota and the cluster policy that failed, as plans do; let a write be refused, and then be made."""
    _set_lock(world, expires=4102444800)
    person = world.stack.client("sagemaker", person="ana")
    quota, config = world.quota_named("team-a"), world.scheduler_config()
    for kind, one in (("ComputeQuota", quota), ("ClusterSchedulerConfig", config)):
        world.stack.sagemaker.governance.fail_next(f"Delete{kind}", "in use")
        getattr(person, "delete_compute_quota" if kind == "ComputeQuota" else "delete_cluster_scheduler_config")(
            **{f"{kind}Id": one[f"{kind}Id"]}
        )
    world.stack.run_until_quiet()
    stuck = deletion(0, "team-a", quota["ComputeQuotaId"], 1, quota["ComputeQuotaVersion"])
    gone = replace(
        policy_change(1, policy(), policy(), config["ClusterSchedulerConfigVersion"]),
        kind=ChangeKind.DELETE_SCHEDULER_CONFIG,
        resource_id=config["ClusterSchedulerConfigId"],
        reason=Reason.RECOVERY,
    )
    made = creation(2, "team-b", 1)
    plan = replace(plan_of(replace(stuck, name=quota["Name"]), gone, made), cluster_arn=world.cluster_arn)
    body, key, bucket = plan_to_json(plan), "plans/ml-cluster/by-hand.json", world.stack.outputs["BucketName"]
    world.stack.client("s3").put_object(Bucket=bucket, Key=key, Body=body)
    pointer = {"bucket": bucket, "key": key, "sha256": sha256(body).hexdigest()}
    request = {"clusterArn": world.cluster_arn, "plan": pointer, "count": 25}
    request |= {"lockOwner": OWNER, "fencingToken": TOKEN}
    refuses = "ResourceLimitExceeded"
    world.stack.faults.fail("sagemaker", "CreateComputeQuota", code=refuses, message="no more")
    for _ in range(3):  # refused, made, and found to be made
        world.stack.invoke("ApplyChangeFunction", request | {"index": 0})
        world.stack.run_until_quiet()
    _set_lock(world, expires=0)


def _set_lock(world: World, *, expires: int, owner: str = OWNER) -> None:
    """Hold the cluster's lock until then, so that no run comes in between."""
    world.stack.client("dynamodb").update_item(
        TableName=world.stack.physical("GovernanceTable"),
        Key={"pk": {"S": f"CLUSTER#{world.cluster_arn}"}, "sk": {"S": "STATE"}},
        UpdateExpression="SET lockOwner = :owner, fencingToken = :token, lockExpires = :expires",
        ExpressionAttributeValues={
            ":owner": {"S": owner},
            ":token": {"N": str(TOKEN)},
            ":expires": {"N": str(expires)},
        },
    )


def _settle_as_failed(world: World, document: Mapping[str, Any]) -> None:
    """Let a write settle as failed, which is recorded."""
    world.stack.sagemaker.governance.fail_next("UpdateComputeQuota", "no answer")
    _do(Actor(world), {"policy": dict(document) | _changed(4)})
    world.stack.run_until_quiet(3600)
    world.stack.sagemaker.governance.forget_faults()


def _fail_to_publish(world: World) -> None:
    """Let the list of clusters fail, then the measurement of one."""
    for service, operation, code in (
        ("sagemaker", "ListClusters", "ThrottlingException"),
        ("lambda", "Invoke", "TooManyRequestsException"),
    ):
        world.stack.faults.fail(service, operation, code=code, times=100)
        world.stack.fire("PublishUsageSchedule")
        world.stack.run_until_quiet()
        world.stack.faults.clear()


def _ask_as_schedules_of_the_release_before(world: World) -> None:
    """Ask for all clusters at once, as schedules do until the deployment has replaced them."""
    world.stack.invoke("PublishUsageFunction", {})
    event = json.loads((EVENTS / "schedule_resync_due.json").read_text())
    world.stack.client("sqs").send_message(QueueUrl=world.stack.physical("IntakeQueue"), MessageBody=json.dumps(event))
    world.stack.run_until_quiet()


def _fail_to_audit(world: World) -> None:
    world.stack.faults.fail("stepfunctions", "StartExecution", code="ThrottlingException", times=100)
    world.stack.fire("AuditAllSchedule")
    world.stack.run_until_quiet()
    world.stack.faults.clear()


def _deploy_another_release(world: World) -> None:
    with TemporaryDirectory() as scratch:
        assert world.stack.update(older_release(Path(scratch)), world.stack.parameters) is None


def _know(recorded: Recorded, stack: Stack) -> None:
    policies = stack.account.policies
    recorded.know({arn: policies.of_role(arn) for arn in policies.role_arns()})
    logical = {stack.physical(name): name for name in stack.translated.cfn["Resources"] if _is_named(stack, name)}
    logical = recorded.names | logical
    recorded.names = {key: logical[key] for key in sorted(logical, key=len, reverse=True)}


def _is_named(stack: Stack, logical_id: str) -> bool:
    """Say whether the physical id is a name that cannot be mistaken: the bus is called like the stack."""
    known = stack.account.resources.resolved.get(logical_id)
    return known is not None and known.kind != "AWS::Events::EventBus" and len(known.physical_id) > 12


def _needs_of_creation(stack: Stack, machine: str, asking: Any) -> None:
    """Ask for what Step Functions wants when a machine is created, which was before anybody listened."""
    from taskgov_embedded.stepfunctions.machine_roles import needs_of_creation

    properties = stack.resolved(machine).properties
    for action, resource, context in needs_of_creation(properties, stack.place):
        asking(properties["RoleArn"], action, resource, context)


def _needs(stack: Stack) -> Iterator[Need]:
    for call in stack.calls:
        role = call.principal.role_arn
        if role is None or (call.service, call.operation) == ("sts", "GetCallerIdentity"):
            continue
        context = conditions(call.service, call.operation, call.params, stack.place)
        context |= {"aws:PrincipalArn": role, "aws:PrincipalAccount": stack.place.account}
        for need in actions.needs(call.service, call.operation, call.params, stack.place):
            known = json.dumps(context | dict(need.known), sort_keys=True)
            yield Need(role, need.action, need.resources, known)
