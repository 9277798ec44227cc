"""Errors that no command handles by itself: the exit code and the sentence that each ends a command with."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import typer
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from typer.core import TyperGroup

from taskgov.errors import GovernanceError
from taskgov.printable import printable
from taskgov_cli.output import NOT_UNDERSTOOD, UNREACHABLE, print_error

HANDLED: Final = (OSError, BotoCoreError, ClientError, GovernanceError)
"""What `ending_of` knows. Everything else is a defect of ours, and keeps its traceback."""

_SETTINGS: Final = {
    NoRegionError: "no Region is set: set AWS_DEFAULT_REGION, or `region` in the profile",
    InvalidRegionError: "{error}: correct AWS_DEFAULT_REGION, or `region` in the profile",
    ProfileNotFound: "{error}: correct AWS_PROFILE, or see `aws configure list-profiles`",
}
_CREDENTIALS: Final = (NoCredentialsError, PartialCredentialsError)


def ending_of(error: Exception) -> tuple[int, str]:
    """Return the exit code and the sentence for one of `HANDLED`."""
    match error:
        case OSError(filename=str() | bytes() as name, strerror=str() as reason):
            return NOT_UNDERSTOOD, f"{os.fsdecode(name)}: {reason}"
        case OSError():
            return NOT_UNDERSTOOD, f"cannot write the answer: {error.strerror or error}"
        case _ if type(error) in _SETTINGS:
            return NOT_UNDERSTOOD, _SETTINGS[type(error)].format(error=str(error).rstrip("."))
        case _ if isinstance(error, _CREDENTIALS):
            return UNREACHABLE, f"{error}: log in first, for example with `aws sso login`"
        case _:
            return UNREACHABLE, str(error)


class SafeGroup(TyperGroup):
    """The commands; whatever one fails with, a person reads a sentence, without control characters of others."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except typer.BadParameter as error:
            error.message = printable(error.message, keep="\n")
            raise
        except BrokenPipeError:
            raise  # click ends quietly: nobody reads on
        except HANDLED as error:
            if isinstance(error, OSError) and error.filename is None:
                _leave_output()
            code, sentence = ending_of(error)
            print_error(type(error).__name__, printable(sentence))
            raise typer.Exit(code) from error


def _leave_output() -> None:
    """Drop what could not be written, so that Python does not try once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
