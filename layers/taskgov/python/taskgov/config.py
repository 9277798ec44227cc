"""The functions' environment, read once and checked at once.

Which function has which variable is in `template.yaml`; a test holds the two together.
"""

import os
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_snake

from taskgov.errors import AppEnvError


class Settings(BaseModel):
    """A set of environment variables: the field `table_name` is the variable `TABLE_NAME`."""

    model_config = ConfigDict(frozen=True, alias_generator=lambda name: to_snake(name).upper(), populate_by_name=True)

    @classmethod
    def from_env(cls) -> Self:
        """Read the settings. Raises AppEnvError that names every variable that is missing or wrong."""
        names = (str(field.alias) for field in cls.model_fields.values())
        try:
            return cls.model_validate({name: os.environ[name] for name in names if name in os.environ})
        except ValidationError as error:
            wrong = "; ".join(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors())
            raise AppEnvError(f"the function's environment is incomplete: {wrong}") from error
