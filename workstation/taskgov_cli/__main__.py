"""The way in (`taskgov`, `python -m taskgov_cli`): also while it imports, Ctrl-C ends it without a traceback.

What the libraries of the command line would fail with on import is put right first: streams that are closed, or cannot
write every character, and sizes of terminals that are not numbers.
"""

import gc
import os
import sys

from taskgov_cli import INTERRUPTED, NOT_READ

SIZES = ("COLUMNS", "LINES", "TERMINAL_WIDTH")
"""What rich and typer read as numbers."""


def main() -> None:
    """Run the command line."""
    try:
        _settle_environment()
        if not _settle_streams():
            sys.stderr.write("Error: cannot write the answer: standard output is closed\n")
            raise SystemExit(2)
        from taskgov.bootstrap import ALLOCATIONS  # noqa: PLC0415 - see above
        from taskgov_cli.keeping import end_at_once  # noqa: PLC0415 - see above
        from taskgov_cli.main import main as run  # noqa: PLC0415

        gc.set_threshold(ALLOCATIONS)
        try:
            run()
        except SystemExit as ended:
            end_at_once(ended.code)
            raise
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        raise SystemExit(INTERRUPTED) from None
    except OSError as error:  # of help and the version; commands have `taskgov_cli.failures`
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes what is left when it ends
        if isinstance(error, BrokenPipeError):
            raise SystemExit(NOT_READ) from None
        sys.stderr.write(f"Error: cannot write the answer: {error.strerror or error}\n")
        raise SystemExit(2) from None


def _settle_environment() -> None:
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # for none it would read all that is installed
    for name in SIZES:
        value = os.environ.get(name, "1")
        if not (value.isascii() and value.isdecimal() and int(value[:9]) > 0 and len(value) < 6):
            del os.environ[name]


def _settle_streams() -> bool:
    """Let every text be written somehow; say whether there is a standard output."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 - for the whole process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the whole process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names that are not in UTF-8, terminals that are not
    return sys.stdout is not None


if __name__ == "__main__":
    main()
