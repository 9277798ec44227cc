"""What every part of a walkthrough file is: names in camelCase, and nothing that is not known."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Amounts = dict[str, str | int]
"""Resource name to Kubernetes quantity."""


class Part(BaseModel):
    """A part of the file: camelCase outside, unknown keys refused."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid")
