"""How is the first document written down? As YAML with comments that say what was found and what needs a decision."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

import yaml

from taskgov.hyperpod.model import Switch
from taskgov.kueue.record import FOREIGN
from taskgov_cli.onboarding.draft import GUARDRAILS
from taskgov_cli.schema import EDITOR_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.onboarding.draft import Draft, Supply

WIDTH: Final = 118
TEAM_KEYS: Final = ("ComputeQuotaResources", "ResourceSharingConfig", "PreemptTeamTasks")


def document_text(draft: Draft, snapshot: Snapshot) -> str:
    """Return the document; without its comments it is `draft.document`."""
    parts = (
        _heading(draft, snapshot),
        [f"apiVersion: {draft.document['apiVersion']}", f"cluster: {_flow(draft.document['cluster'])}"],
        _scheduler(draft, snapshot),
        _teams(draft),
        _pool(draft, snapshot),
        _capacity(draft),
        _guardrails(draft),
        *([_co_owned(draft, snapshot)] if "coOwned" in draft.document else []),
    )
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def undecided(draft: Draft, snapshot: Snapshot) -> list[str]:
    """Return what a person should decide, one sentence each."""
    found: list[str] = []
    if not draft.quotas and draft.wanted is None:
        found.append("No team has a quota that the document could guarantee: write your teams (an example is in it).")
    for supply in draft.supply:
        if supply.usable and supply.promised > supply.usable:
            found.append(
                f"Quotas guarantee {supply.promised:g} {supply.instance_type}, {supply.usable} count: lower quotas, or "
                "bring nodes back."
            )
        elif supply.promised and not supply.nodes:
            found.append(
                f"Quotas guarantee {supply.promised:g} {supply.instance_type}, but there are no nodes of that type."
            )
        elif supply.promised < supply.usable and not _pool_is_native(snapshot) and draft.wanted is None:
            left = supply.usable - supply.promised
            found.append(
                f"{left:g} of {supply.usable} {supply.instance_type} are not guaranteed to any team: add a sharedPool?"
            )
    found += [f"{team} is frozen, because a plan would change it ({why})." for team, why in draft.frozen.items()]
    found += [f"Quota {omitted.quota.name} is not in the document: {omitted.because}." for omitted in draft.left_out]
    if foreign := [quota.name for quota in draft.quotas if quota.status == FOREIGN]:
        found.append(
            f"Somebody else made {', '.join(foreign)}: no plan changes them until `taskgov adopt` takes them over."
        )
    if draft.scheduler_left_out:
        found.append(f"The cluster policy is not in the document: {draft.scheduler_left_out}.")
    if snapshot.scheduler_config is None and draft.wanted is None:
        found.append("The cluster has no cluster policy: tasks run first come, first served. Write schedulerConfig?")
    return found


def _heading(draft: Draft, snapshot: Snapshot) -> Iterator[str]:
    yield EDITOR_LINE
    yield from _comment(
        f"Governance policy of {snapshot.cluster.name}, as found on {snapshot.taken_at:%Y-%m-%d %H:%M} UTC by "
        f"`taskgov init`. {_begins(draft)} Grammar: docs/policy.md."
    )
    for supply in draft.supply:
        yield from _comment(f"Found: {_supply_words(supply)}.")
        for node in supply.left_out:
            yield from _comment(f"  not counted: {node}")
    for sentence in undecided(draft, snapshot):
        yield from _comment(f"Decide: {sentence}")


def _begins(draft: Draft) -> str:
    if draft.wanted is None:
        return "It guarantees today's quotas, so it changes nothing by itself."
    return f"No team has a quota yet: it begins with these, in the style {draft.wanted.style} (docs/choosing.md)."


def _supply_words(supply: Supply) -> str:
    where = f" in {', '.join(supply.groups)}" if supply.groups else ""
    return f"{supply.nodes} {supply.instance_type}{where}, {supply.usable} count now, {supply.promised:g} guaranteed"


def _scheduler(draft: Draft, snapshot: Snapshot) -> Iterator[str]:
    found, written = snapshot.scheduler_config, draft.document.get("schedulerConfig")
    if found is None and written is not None:
        yield from _comment("The cluster has no cluster policy; these lines create one, as in the published workshops.")
        yield from _block("schedulerConfig", written)
    elif found is None:
        yield from _comment("The cluster has no cluster policy; these lines create one:")
        example = {"FairShare": "Enabled", "PriorityClasses": [{"Name": "inference", "Weight": 90}]}
        yield from (f"# {line}" for line in _block("schedulerConfig", example))
    elif written is None:
        yield from _comment(f"The cluster policy {found.name} is left as it is. {draft.scheduler_left_out}:")
        yield from (f"# {line}" for line in _block("schedulerConfig", found.scheduler_config.to_api()))
    else:
        yield from _comment(f"The cluster policy {found.name}, version {found.cluster_scheduler_config_version}.")
        yield from _block("schedulerConfig", written)


def _teams(draft: Draft) -> Iterator[str]:
    if draft.wanted is not None:
        words = ", ".join(f"{team.name} {team.parts}" for team in draft.wanted.teams)
        yield from _comment(
            f"The capacity that counts now, divided by parts ({words}). Decide: is this what each team needs?"
        )
        yield "teams:"
        for team in draft.document["teams"]:
            yield f"  - name: {_flow(team['name'])}"
            yield from _team(team)
    elif not draft.quotas:
        yield "teams: []"
        yield from _example_teams(draft.supply)
    else:
        yield from _comment(
            "Fixed quotas: those of today. Decide: instead of `quota`, a team may have a `share` of the healthy "
            "capacity, e.g. share: [{instanceType: ml.g5.8xlarge, percent: 50, floor: 1}]; and a `tier`: which "
            "teams give first if nodes are missing (highest number first)."
        )
        yield "teams:"
        for quota, team in zip(draft.quotas, draft.document["teams"], strict=True):
            yield f"  - name: {_flow(team['name'])} # {quota.name}, version {quota.compute_quota_version}"
            yield from _team(team)
    for left_out in draft.left_out:
        name = f"{left_out.quota.name} of {left_out.quota.compute_quota_target.team_name}"
        yield from _comment(f"Left out: {name}: {left_out.because}. No plan changes it.", indent=2)


def _team(team: Mapping[str, Any]) -> Iterator[str]:
    quota = team["quota"]
    yield "    quota:"
    for key in TEAM_KEYS:
        if key == "ComputeQuotaResources" and quota.get(key):
            yield f"      {key}:"
            yield from (f"        - {_flow(row)}" for row in quota[key])
        elif key in quota:
            yield f"      {key}: {_flow(quota[key])}"
    if "fairShareWeight" in team:
        yield f"    fairShareWeight: {team['fairShareWeight']}"


def _example_teams(supply: Iterable[Supply]) -> Iterator[str]:
    """Show two teams that share what there is, as comments: what to write where nobody has a quota yet."""
    counted = [offer for offer in supply if offer.usable]
    if not counted:
        yield from _comment("No node counts now, so there is nothing to guarantee yet.")
        return
    yield from _comment("For example, two teams that have half of each instance type (instead of the line above):")
    yield "# teams:"
    for name, most in (("team-a", 1), ("team-b", 0)):
        rows = [{"InstanceType": supply.instance_type, "Count": (supply.usable + most) // 2} for supply in counted]
        yield f"#   - name: {name}"
        yield "#     quota:"
        yield "#       ComputeQuotaResources:"
        yield from (f"#         - {_flow(row)}" for row in rows if row["Count"])
        yield "#       ResourceSharingConfig: {Strategy: LendAndBorrow, BorrowLimit: 50}"
        yield "#     fairShareWeight: 0"


def _pool(draft: Draft, snapshot: Snapshot) -> Iterator[str]:
    if "sharedPool" in draft.document and not _pool_is_native(snapshot):
        yield from _comment("A separate quota holds the capacity outside all other quotas, for all teams to borrow.")
        yield f"sharedPool: {_flow(draft.document['sharedPool'])}"
        return
    if "sharedPool" in draft.document:
        yield from _comment(
            "HyperPod's IdleResourceSharing lends the capacity outside all quotas; taskgov creates no pool."
        )
        yield f"sharedPool: {_flow(draft.document['sharedPool'])}"
        return
    idle = "no cluster policy" if snapshot.scheduler_config is None else "IdleResourceSharing is not Enabled"
    yield from _comment(
        f"Capacity outside all quotas cannot be borrowed ({idle}). Decide: this line creates a quota that holds it, "
        "for all teams to borrow:"
    )
    yield "# sharedPool: {team: shared-pool, takes: remainder}"


def _capacity(draft: Draft) -> Iterator[str]:
    yield from _comment(
        "How long an unhealthy node still counts, and how long a new one does not count yet (the defaults)."
    )
    yield "capacity:"
    yield "  holdUnhealthyMinutes: 10"
    yield "  growAfterMinutes: 5"
    percent = draft.document.get("capacity", {}).get("overcommitPercent")
    if percent:
        yield from _comment(
            f"Declared because quotas exceed what counts today by up to {percent} %. Decide: without this line a plan "
            "lowers quotas until they fit.",
            indent=2,
        )
        yield f"  overcommitPercent: {percent}"


def _guardrails(draft: Draft) -> Iterator[str]:
    yield from _comment(
        "Limits of each plan: in one step a quota loses at most a quarter, or one instance if that is more. Decide: "
        "these are cautious initial values."
    )
    yield "guardrails:"
    for key, value in GUARDRAILS.items():
        yield f"  {key}: {_flow(value)}"
    for team, why in draft.frozen.items():
        yield from _comment(f"{team} is frozen, because a plan would change it: {why}", indent=2)
    if draft.frozen:
        yield f"  freeze: {_flow(sorted(draft.frozen))}"


def _co_owned(draft: Draft, snapshot: Snapshot) -> Iterator[str]:
    names = [f"{quota} ({tool})" for quota, tool in co_owners(snapshot).items()]
    found = f"Also managed by infrastructure as code: {', '.join(names)}. " if names else ""
    yield from _comment(
        f"{found}keep: plans leave such quotas to their tool. govern: plans change them, so let the tool ignore "
        "their configuration (docs/terraform.md)."
    )
    yield f"coOwned: {draft.document['coOwned']}"


def co_owners(snapshot: Snapshot) -> dict[str, str]:
    """Return the quotas that a tool of infrastructure as code changed last, by name, each with its tool."""
    tools = {edit.compute_quota_id: edit.tool for edit in snapshot.edits if edit.tool is not None}
    found = {quota.name: tools[quota.compute_quota_id] for quota in snapshot.quotas if quota.compute_quota_id in tools}
    return dict(sorted(found.items()))


def _pool_is_native(snapshot: Snapshot) -> bool:
    found = snapshot.scheduler_config
    return found is not None and found.scheduler_config.idle_resource_sharing is Switch.ENABLED


def _block(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a mapping, each member on a line, and each entry of a list on its own."""
    if not values:
        yield f"{name}: {{}}"
        return
    yield f"{name}:"
    for key, value in values.items():
        if isinstance(value, list) and value:
            yield f"  {key}:"
            yield from (f"    - {_flow(entry)}" for entry in value)
        else:
            yield f"  {key}: {_flow(value)}"


def _flow(value: Any) -> str:
    """Write a value on one line, quoted where YAML would take it for another."""
    text = yaml.safe_dump([value], default_flow_style=True, width=float("inf"), sort_keys=False, allow_unicode=True)
    return text.strip()[1:-1]


def _comment(text: str, *, indent: int = 0) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()) if not text.startswith("  ") else text,
        WIDTH,
        initial_indent=" " * indent + "# ",
        subsequent_indent=" " * indent + "#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
