"""The JSON Schemas of the events that go out: file name -> schema of the whole event, as `events/schemas/` has them."""

from typing import Any

from taskgov.contracts import task_events
from taskgov.services import run_events


def run_event_schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas of the ends of runs, one for each detail type."""
    schemas = {}
    for name, outcomes in run_events.DETAIL_TYPES.items():
        detail = run_events.RunEnded.model_json_schema(by_alias=True)
        definitions = detail.pop("$defs")
        detail["properties"]["outcome"] = {"enum": list(outcomes)}
        schemas[_file(name)] = {**_schema(name, task_events.SOURCE, detail), "$defs": definitions}
    return schemas


def task_event_schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas of what happens to tasks and teams, one for each detail type."""
    return {
        _file(name): _schema(name, task_events.SOURCE, model.model_json_schema(by_alias=True))
        for name, model in task_events.DETAIL_TYPES.items()
    }


def _file(detail_type: str) -> str:
    return detail_type.lower().replace(" ", "-") + ".json"


def _schema(detail_type: str, source: str, detail: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": detail_type,
        "type": "object",
        "properties": {"source": {"const": source}, "detail-type": {"const": detail_type}, "detail": detail},
        "required": ["source", "detail-type", "detail"],
    }
