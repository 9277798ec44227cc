"""The events of tasks and teams are those that are published, and chat messages those that AWS documents."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from taskgov.contracts.task_events import (
    DETAIL_TYPE_OF,
    DETAIL_TYPES,
    SOURCE,
    TaskEvent,
    TaskWaiting,
    TeamStarved,
)
from taskgov.contracts.task_events import TaskPreempted as Preempted
from taskgov.services.told_memory import HELD, Held
from taskgov.services.told_notices import CHAT_LIMIT, chat, mail, subject
from tests.support.event_schemas import of_task, task_file
from tests.support.golden import assert_section
from tests.support.memory import CLUSTER_ARN, NOON

DOCUMENT = Path("docs/events-out.md")

TASK: dict[str, Any] = {
    "cluster_arn": CLUSTER_ARN,
    "cluster_name": "ml-cluster",
    "team": "research",
    "namespace": "hyperpod-ns-research",
    "task": "llama-7b",
    "kind": "PyTorchJob",
    "workload": "pytorchjob-llama-7b-3f5a1",
    "priority_class": "training-priority",
    "priority": 70,
    "asks": {"cpu": "96", "memory": "512Gi", "nvidia.com/gpu": "8"},
}
PREEMPTED = Preempted(
    id="preempted-6f1c7a52-8d0e-4c0e-9f0e-0f6d6e3c9a11#2026-11-20T11:55:00Z",
    **TASK,
    at=NOON - timedelta(minutes=5),
    reason="InCohortReclamation",
    preempting_team="serving",
    preempting_priority_class="inference-priority",
    ran_seconds=3600,
)
WAITING = TaskWaiting(id="waiting-u", **TASK, since=NOON - timedelta(hours=2), limit_minutes=60, evicted=False)
STARVED = TeamStarved(
    id="starved-x",
    cluster_arn=CLUSTER_ARN,
    cluster_name="ml-cluster",
    team="research",
    instance_type="ml.p5.48xlarge",
    resource="nvidia.com/gpu",
    guaranteed=16,
    used=8,
    waiting=8,
    borrowed=8,
    reclaimable=8,
    since=NOON - timedelta(minutes=5),
)
ALL = (PREEMPTED, WAITING, STARVED)

CUSTOM_NOTIFICATION = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "source", "content"],
    "properties": {
        "version": {"const": "1.0"},
        "source": {"const": "custom"},
        "id": {"type": "string"},
        "content": {
            "type": "object",
            "additionalProperties": False,
            "required": ["description"],
            "properties": {
                "textType": {"const": "client-markdown"},
                "title": {"type": "string"},
                "description": {"type": "string", "minLength": 1},
                "nextSteps": {"type": "array", "items": {"type": "string"}},
                "keywords": {"type": "array", "items": {"type": "string"}},
            },
        },
        "metadata": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "threadId": {"type": "string"},
                "summary": {"type": "string"},
                "eventType": {"type": "string"},
                "relatedResources": {"type": "array", "items": {"type": "string"}},
                "additionalContext": {"type": "object"},
            },
        },
    },
}
"""Written from the section "Event schema" of "Custom notifications" in the administrator guide of Amazon Q Developer in
chat applications, and from its samples. Which members are required is inferred from the smallest sample there (version,
source, description); unknown members are refused here so that none is made up."""


def as_delivered(event: TaskEvent) -> dict[str, Any]:
    return {"source": SOURCE, "detail-type": DETAIL_TYPE_OF[type(event)], "detail": event.to_json()}


def held(*events: TaskEvent) -> Held:
    found = Held()
    for event in events:
        found = found.and_(event)
    return found


@pytest.mark.parametrize("event", ALL, ids=lambda event: type(event).__name__)
def test_an_event_fits_its_schema(event: TaskEvent) -> None:
    jsonschema.validate(as_delivered(event), of_task(DETAIL_TYPE_OF[type(event)]))


def test_the_document_lists_the_detail_types_and_shows_a_real_event() -> None:
    rows = ["| detail type | one for | schema |", "| --- | --- | --- |"]
    about = {
        "Task Preempted": "each preemption of a task",
        "Task Waiting Too Long": "each wait that is longer than `notices.pendingMinutes`",
        "Team Starved": "each time that a team is starved while another borrows, for `notices.starvedMinutes`",
    }
    for name in DETAIL_TYPES:
        file = task_file(name)
        rows.append(f"| `{name}` | {about[name]} | [`{file}`](../events/schemas/{file}) |")
    assert_section(DOCUMENT, "task detail types", "\n".join(rows))
    assert_section(DOCUMENT, "task example", f"```json\n{json.dumps(as_delivered(PREEMPTED), indent=2)}\n```")


@pytest.mark.parametrize("events", [(PREEMPTED,), (WAITING,), (STARVED,), ALL, (PREEMPTED,) * 3_000])
def test_a_chat_message_has_the_documented_form(events: tuple[TaskEvent, ...]) -> None:
    message = chat(held(*events), "ml-cluster", CLUSTER_ARN, "research", lines=100)
    jsonschema.validate(message, CUSTOM_NOTIFICATION)
    assert len(message["content"]["description"]) <= CHAT_LIMIT + len("\nand 3,000 more")


def test_chat_cuts_between_lines_and_counts_what_it_leaves_out() -> None:
    message = chat(held(*(PREEMPTED,) * 3_000), "ml-cluster", CLUSTER_ARN, "research", lines=100)
    *lines, last = message["content"]["description"].splitlines()
    assert {line.endswith("(InCohortReclamation).") for line in lines} == {True}
    assert last == f"and {3_000 - len(lines):,} more"


def test_a_mail_says_all_kinds_in_one_text() -> None:
    found = held(*ALL)
    assert subject(found, "ml-cluster", "research") == (
        "taskgov: research on ml-cluster: 1 task preempted, 1 task waiting too long, starved while another borrows"
    )
    assert mail(found, "ml-cluster", "research", lines=20).splitlines()[2:5] == [
        (
            "llama-7b (PyTorchJob, class training-priority, requests 8 GPUs, 96 cpu, 512Gi memory) was preempted at "
            "2026-11-20 11:55 UTC for serving (class inference-priority): quota that it borrowed was reclaimed "
            "(InCohortReclamation)."
        ),
        (
            "llama-7b (PyTorchJob, class training-priority, requests 8 GPUs, 96 cpu, 512Gi memory) was waiting since "
            "2026-11-20 10:00 UTC: longer than 60 minutes."
        ),
        (
            "research was starved since 2026-11-20 11:55 UTC: it waited for 8 GPUs on ml.p5.48xlarge and used 8 of "
            "its 16, while others borrowed 8: 8 were reclaimable."
        ),
    ]


def test_a_reason_that_is_not_known_is_shown_as_it_is() -> None:
    odd = PREEMPTED.model_copy(update={"reason": "<b>New</b>", "preempting_team": None})
    assert "11:55 UTC (class inference-priority): <b>New</b>." in mail(held(odd), "c", "t", lines=1)
    message = chat(held(odd), "c", CLUSTER_ARN, "t", lines=1)
    assert "`&lt;b&gt;New&lt;/b&gt;`" in message["content"]["description"]


def test_what_is_held_is_bounded_and_counted() -> None:
    found = held(*(PREEMPTED,) * (HELD + 7))
    assert (len(found.events), sum(found.counts.values())) == (HELD, HELD + 7)
    assert mail(found, "c", "t", lines=5).splitlines()[7] == f"and {HELD + 2} more"
