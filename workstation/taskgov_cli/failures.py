"""Errors that no command handles by itself: the exit code and the sentence that each ends a command with."""

from __future__ import annotations

import os
import sys
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup

from taskgov.printable import printable
from taskgov_cli import INTERRUPTED, NOT_READ

if TYPE_CHECKING:
    from taskgov.errors import GovernanceError

LOG_IN: Final = "log in first, for example with `aws sso login`"


def ending_of(error: Exception) -> tuple[int, str] | None:
    """Return the exit code and the sentence for an error that people cause or meet; None for a defect of taskgov."""
    from taskgov.errors import GovernanceError  # noqa: PLC0415 - only who failed needs these
    from taskgov_cli.output import NOT_UNDERSTOOD, UNREACHABLE  # noqa: PLC0415
    from taskgov_cli.settings import SettingsError  # noqa: PLC0415

    if isinstance(error, SettingsError):
        return NOT_UNDERSTOOD, str(error)
    if isinstance(error, ModuleNotFoundError):
        return _ending_of_extra(error)
    if isinstance(error, OSError):
        named = isinstance(error.filename, str | bytes) and isinstance(error.strerror, str)
        of_file = f"{os.fsdecode(error.filename)}: {error.strerror}" if named else ""
        return NOT_UNDERSTOOD, of_file or f"cannot write the answer: {error.strerror or error}"
    if not isinstance(error, GovernanceError):
        return _ending_of_sdk(error)
    return UNREACHABLE, sentence_of(error)


def sentence_of(error: GovernanceError) -> str:
    """Return what failed; for lack of AWS credentials, also how to get them."""
    return f"{error}: {LOG_IN}" if _has_no_credentials(error.__cause__) else str(error)


def _ending_of_extra(error: ModuleNotFoundError) -> tuple[int, str] | None:
    """Do the same for what an extra would bring."""
    from taskgov_cli.extras import EXTRAS, command_for  # noqa: PLC0415 - see `ending_of`
    from taskgov_cli.output import NOT_UNDERSTOOD  # noqa: PLC0415 - see `ending_of`

    extra = EXTRAS.get((error.name or "").split(".")[0])
    if extra is None:
        return None
    return NOT_UNDERSTOOD, f"this command needs {error.name}, of the extra `{extra}`: {command_for(extra)}"


def _ending_of_sdk(error: Exception) -> tuple[int, str] | None:
    """Do the same for what the AWS SDK says of its settings, and of answers."""
    from botocore import exceptions as aws  # noqa: PLC0415 - only who failed waits for it
    from botocore.parsers import ResponseParserError  # noqa: PLC0415

    from taskgov_cli.output import NOT_UNDERSTOOD, UNREACHABLE  # noqa: PLC0415

    settings = {
        aws.NoRegionError: "no Region is set: set AWS_DEFAULT_REGION, or `region` in the profile",
        aws.InvalidRegionError: "{error}: correct AWS_DEFAULT_REGION, or `region` in the profile",
        aws.ProfileNotFound: "{error}: correct AWS_PROFILE, or see `aws configure list-profiles`",
        aws.ConfigParseError: "{error}: correct the file, or AWS_CONFIG_FILE",
    }
    if type(error) in settings:
        return NOT_UNDERSTOOD, settings[type(error)].format(error=str(error).rstrip("."))
    if _has_no_credentials(error):
        return UNREACHABLE, f"{error}: {LOG_IN}"
    if isinstance(error, UnicodeDecodeError | ResponseParserError) and _is_of_sdk(error):
        return UNREACHABLE, f"this is not an answer from AWS ({error}): check proxies, and AWS_ENDPOINT_URL"
    if isinstance(error, ValueError) and _is_of_sdk(error):
        return NOT_UNDERSTOOD, f"{error}: correct AWS_ENDPOINT_URL, or the Region"
    return (UNREACHABLE, str(error)) if isinstance(error, aws.BotoCoreError | aws.ClientError) else None


def _has_no_credentials(error: BaseException | None) -> bool:
    from botocore import exceptions as aws  # noqa: PLC0415 - only who failed waits for it

    return isinstance(error, aws.NoCredentialsError | aws.PartialCredentialsError)


def _is_of_sdk(error: Exception) -> bool:
    """Return whether the AWS SDK raised it: about what it was set, or what it was answered."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("botocore.")


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
            error.message = printable(_refusal_of(error), keep="\n")
            raise
        except (KeyboardInterrupt, typer.Abort) as error:
            if isinstance(error, typer.Abort) and not isinstance(error.__context__, KeyboardInterrupt):
                raise  # the end of what a person types
            typer.echo("\nInterrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from error
        except typer.Exit:
            raise  # how commands end
        except BrokenPipeError as error:  # `taskgov ... | head`: not exit code 1, which is an answer
            _leave_output()
            raise typer.Exit(NOT_READ) from error
        except Exception as error:
            ending = ending_of(error)
            if ending is None:
                raise
            if isinstance(error, OSError) and error.filename is None:
                _leave_output()
            from taskgov_cli.output import print_error  # noqa: PLC0415 - see `ending_of`

            code, sentence = ending
            print_error(type(error).__name__, printable(sentence))
            raise typer.Exit(code) from error


def _refusal_of(error: typer.BadParameter) -> str:
    """Return why a value was refused; where Typer repeats only pydantic's sentence, the value and its rule."""
    said = error.message.removeprefix("Value error, ")
    if not said.startswith("Input should be"):
        return said
    from pydantic import ValidationError  # noqa: PLC0415 - see `ending_of`

    from taskgov.violations import violations_from  # noqa: PLC0415 - see `ending_of`

    if not isinstance(error.__cause__, ValidationError):
        return said
    return "; ".join(f"{violation.value} {violation.rule}" for _, violation in violations_from(error.__cause__))


def _leave_output() -> None:
    """Drop what could not be written, so that Python does not try once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
