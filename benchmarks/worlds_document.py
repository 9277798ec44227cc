"""The policy document of a world: what the teams are to have from now on, and the rules beside it."""

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.worlds_cluster import ARN, Machines
from benchmarks.worlds_draw import Draw
from benchmarks.worlds_measured import Share, draw_leases, draw_shares
from benchmarks.worlds_quotas import POOL, TEAMS, Row, Standing, draw_row, draw_rows, draw_sharing, room_of

ALWAYS_OPEN, HARDLY_OPEN = "* * * * *", "0 3 1 1 *"


def draw_document(draw: Draw, machines: Machines, standing: Standing) -> str:
    """Return the document as JSON; it may break a rule, then another one is drawn."""
    present = [team for team in TEAMS if standing.rows(team)]
    teams = sorted({*present, *draw.some(TEAMS, 1, 3)})
    with_pool = draw.chance(0.75)
    shares = draw_shares(draw, machines, teams)
    document: dict[str, Any] = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": ARN},
        "teams": [_team(draw, machines, standing.rows(team), shares, team) for team in teams],
        "capacity": dict(machines.capacity_rules),
        "instanceTypes": dict(machines.stated_types),
    }
    if with_pool:
        document["sharedPool"] = {"team": POOL}
    if draw.chance(0.5):
        document["schedulerConfig"] = _scheduler(draw)
    if draw.chance(draw.mix.edited):
        document["handEdits"] = draw.pick(["keep", "adopt", "putRight"])
    pool = [POOL] if with_pool else []
    if draw.chance(draw.mix.leases) and len([*teams, *pool]) > 1:
        document["leases"] = draw_leases(draw, machines, document["teams"], pool)
    if draw.chance(draw.mix.budgets):
        names = draw.some(teams, 1, 2)
        lower = {name: draw.chance(0.5) for name in names}
        document["budgets"] = [{"team": name, "gpuHours": 100, "lowerBorrowLimit": lower[name]} for name in names]
    if draw.chance(draw.mix.demand):
        moves = draw.pick([10, 25, 50])
        document["demand"] = {"enabled": True, "windowHours": 24, "maxMovePercent": moves}
    if draw.chance(draw.mix.limits):
        document["guardrails"] = _guardrails(draw, teams)
    return json.dumps(document)


def _team(
    draw: Draw, machines: Machines, held: list[Row], shares: Mapping[tuple[str, str], Share], team: str
) -> dict[str, Any]:
    """Promise what stands, something near it, something new, or shares."""
    told: dict[str, Any] = {"name": team}
    if draw.chance(0.4):
        told["tier"] = draw.number(1, 3)
    if draw.chance(0.3):
        told["fairShareWeight"] = draw.pick([0, 5, 20, 50])
    mine = {instance_type: share for (name, instance_type), share in shares.items() if name == team}
    rows = _promises(draw, machines, held, mine)
    if mine:
        told["share"] = list(mine.values())
    quota: dict[str, Any] = {"ComputeQuotaResources": rows} if rows else {}
    if draw.chance(draw.mix.settings):
        quota["ResourceSharingConfig"] = draw_sharing(draw, sorted({row["InstanceType"] for row in rows}))
    if draw.chance(draw.mix.settings / 3):
        quota["PreemptTeamTasks"] = draw.pick(["Never", "LowerPriority"])
    if quota:
        told["quota"] = quota
    return told


def _promises(draw: Draw, machines: Machines, held: list[Row], shares: Mapping[str, Share]) -> list[Row]:
    """Return fixed promises on the types of which the team has no share."""
    rows: list[Row] = []
    for instance_type in machines.types:
        today = [row for row in held if row["InstanceType"] == instance_type]
        way = draw.number(1, 10)
        if instance_type in shares:
            continue
        if today and way <= 3:
            rows += today
        elif today and way <= 7:
            rows += [_near(draw, row) for row in today]
        elif draw.chance(0.8):
            rows += _new(draw, machines, instance_type)
    if machines.capacity_rules.get("basis") == "allocatable":
        rows = [row for row in rows if "Count" not in row]
    return rows


def _new(draw: Draw, machines: Machines, instance_type: str) -> list[Row]:
    """Promise something new: mostly what would fit, sometimes more than there is."""
    count = max(machines.healthy(instance_type), 1)
    if draw.chance(0.3 / draw.mix.modest):
        return [draw_row(draw, instance_type, machines.table.require(instance_type), count + 1)]
    most = max(count // draw.mix.modest, 1)
    return draw_rows(draw, machines, instance_type, room_of(machines, instance_type, draw.number(1, most)))


def _near(draw: Draw, row: Row) -> Row:
    """Return the row with numbers moved up and down, each by itself; now and then a part comes or goes."""
    near = {name: value for name, value in row.items() if name == "InstanceType" or not draw.chance(0.1)}
    for name in sorted(near.keys() - {"InstanceType", "AcceleratorPartition"}):
        moved = near[name] + draw.number(-3, 3) * (1 if name in {"Count", "Accelerators"} else 4)
        near[name] = max(0, round(moved, 3))
    if "AcceleratorPartition" in near:
        partition = near["AcceleratorPartition"]
        near["AcceleratorPartition"] = {**partition, "Count": max(0, partition["Count"] + draw.number(-3, 3))}
    if "Accelerators" in near and "VCpu" not in near and draw.chance(0.2):
        near["VCpu"] = draw.number(1, 64)
    return near if len(near) > 1 else row


def _scheduler(draw: Draw) -> dict[str, Any]:
    config: dict[str, Any] = {"FairShare": draw.pick(["Enabled", "Disabled"])}
    if draw.chance(0.4):
        config["PriorityClasses"] = [
            {"Name": "training", "Weight": draw.pick([50, 60])},
            {"Name": "inference", "Weight": 90},
        ]
    return config


def _guardrails(draw: Draw, teams: list[str]) -> dict[str, Any]:
    """Draw guardrails of every kind; where plans go a part of the way, some step is always allowed."""
    rules: dict[str, Any] = {}
    if draw.chance(0.5):
        rules["maxDecreasePercent"] = draw.pick([0, 10, 25, 33.3, 50, 75])
        if draw.chance(0.6):
            rules["maxDecreaseInstances"] = draw.number(1, 2)
    if draw.chance(0.3):
        rules["maxDecreasePerPeriod"] = {"percent": draw.pick([25, 50, 80]), "hours": draw.pick([1, 24, 168])}
    if draw.chance(0.4):
        rules["maxIncreasePercent"] = draw.pick([50, 100, 200])
    if draw.chance(0.3):
        rules["maxIncreasePerPeriod"] = {"percent": draw.pick([100, 200]), "hours": draw.pick([1, 24])}
    if draw.chance(0.3):
        rules["onLimit"] = "partial"
    if draw.chance(0.3):
        rules["maxPreemptedGpus"] = draw.pick([0, 0, 2, 8])
    if draw.chance(0.3):
        rules["minimumQuota"] = {name: draw.number(1, 6) for name in draw.some(teams, 1, 2)}
    if draw.chance(0.4):
        rules["approveAbove"] = {
            "changedGpus": draw.pick([0, 2, 4, 8, 16]),
            **({"preemptedGpus": draw.pick([0, 4])} if draw.chance(0.5) else {}),
        }
    if draw.chance(0.1):
        rules["freeze"] = [draw.pick(teams)]
    if draw.chance(0.1):
        rules["changeWindows"] = [{"cron": draw.pick([ALWAYS_OPEN, HARDLY_OPEN]), "minutes": 5}]
    return rules
