"""The JSON Schemas of the events that taskgov sends, made from the models: `events/schemas/` has them."""

from typing import Any

from taskgov.contracts.task_events import DETAIL_TYPES as TASK_EVENTS
from taskgov.contracts.task_events import SOURCE
from taskgov.services.run_events import DETAIL_TYPES as OUTCOMES
from taskgov.services.run_events import RunEnded

Schema = dict[str, Any]
RUN_ENDED = "run-ended.json"


def event_schemas() -> dict[str, Schema]:
    """Return file name -> schema of a whole event: one for all ends of a run, one for each event of tasks and teams."""
    return {RUN_ENDED: run_ended()} | {task_file(name): of_task(name) for name in TASK_EVENTS}


def task_file(detail_type: str) -> str:
    return detail_type.lower().replace(" ", "-") + ".json"


def run_ended() -> Schema:
    """Return the schema of the event that ends a run; its detail type says which outcomes it may have."""
    detail = RunEnded.model_json_schema(by_alias=True)
    definitions = detail.pop("$defs")
    schema = _envelope("The end of a run", {}, {"$ref": "#/$defs/RunEnded"})
    schema["oneOf"] = [
        _one(name, {"properties": {"outcome": {"enum": list(allowed)}}}) for name, allowed in OUTCOMES.items()
    ]
    return schema | {"$defs": {"RunEnded": detail, **definitions}}


def _one(detail_type: str, detail: Schema) -> Schema:
    return {"properties": {"detail-type": {"const": detail_type}, "detail": detail}}


def of_task(detail_type: str) -> Schema:
    return _envelope(detail_type, {"const": detail_type}, TASK_EVENTS[detail_type].model_json_schema(by_alias=True))


def _envelope(title: str, detail_type: Schema, detail: Schema) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": {"source": {"const": SOURCE}, "detail-type": detail_type, "detail": detail},
        "required": ["source", "detail-type", "detail"],
    }
