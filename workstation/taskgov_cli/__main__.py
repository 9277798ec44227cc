"""The way in (`taskgov`, `python -m taskgov_cli`): also while it imports, Ctrl-C ends it without a traceback."""

import os
import sys

INTERRUPTED = 130
"""The exit code of a shell for SIGINT."""


def main() -> None:
    """Run the command line."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # for none it would read all that is installed
    try:
        from taskgov_cli.main import main as run  # noqa: PLC0415 - see above

        run()
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
