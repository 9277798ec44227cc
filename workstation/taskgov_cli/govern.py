"""`taskgov govern`: show which stacks have tagged a cluster, and hand it over to this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from taskgov.snapshot.identity import CLAIM, claims_of, said_claim
from taskgov_cli.deployed import Cluster, RefusedError, StackName, deployed, told
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.output import AsJson  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from taskgov.snapshot.identity import Claim, StateStamp


def govern(
    cluster: Cluster,
    stack: StackName = DEFAULT_STACK,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Remove the tags of other stacks.")] = False,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show which stacks have tagged a cluster; with --yes, assign it to this one.

    First stop the other stack, or set its ApplyMode to plan; otherwise both undo each other's changes.

    Example: taskgov govern ml-cluster
    """
    with told():
        place = deployed(stack)
        arn = place.arn_of(cluster)
        stamp, claims = place.state.stamp(arn), claims_of(place.backends.tags(arn))
        if stamp is None:
            raise RefusedError(
                f"no run of this stack has read {cluster} yet; to start one: taskgov reconcile {cluster}"
            )
        others = [claim for claim in claims if claim.lineage != stamp.lineage]
        for claim in others if yes else ():
            place.backends.remove_tag(arn, CLAIM + claim.lineage)
    lines = [f"Stack lineage {stamp.lineage}, serial {stamp.serial}."]
    lines += [_sentence(claim, stamp, claims, taken=yes and claim in others) for claim in claims]
    if not claims:
        lines.append(f"No stack has tagged {cluster}. The first stack that writes will tag it.")
    elif others and not yes:
        lines.append(f"Nothing was changed. To assign the cluster to this stack: taskgov govern {cluster} --yes")
    elif others:
        lines.append(f"Done. To start a run: taskgov reconcile {cluster}")
    data = _data(arn, stamp, claims, others if yes else [])
    answer(lambda: data, map(Text, lines), form, as_json=as_json)


def _sentence(claim: Claim, stamp: StateStamp, claims: tuple[Claim, ...], *, taken: bool) -> str:
    mine = "this stack" if claim.lineage == stamp.lineage else said_claim(claim)
    if taken:
        return f"The tag of {mine} was removed."
    return f"The cluster has the tag of {mine}, which {'governs it' if claim == claims[0] else 'writes nothing'}."


def _data(arn: str, stamp: StateStamp, claims: tuple[Claim, ...], taken: list[Claim]) -> dict[str, Any]:
    return {
        "clusterArn": arn,
        "lineage": stamp.lineage,
        "serial": stamp.serial,
        "marks": [{"lineage": claim.lineage, "since": claim.since.isoformat()} for claim in claims],
        "takenAway": [claim.lineage for claim in taken],
    }
