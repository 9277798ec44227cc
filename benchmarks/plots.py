"""Where a benchmark draws its picture, checked before the long part begins."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from taskgov_cli.extras import command_for


def picture(text: str) -> Path:
    """Return the file of a picture. Raises `ArgumentTypeError` if it cannot be drawn: no matplotlib, another ending."""
    if find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError(f"drawing needs matplotlib: {command_for('plots')}")
    from taskgov_cli.replay_plot import FORMS  # noqa: PLC0415 - imports matplotlib

    file = Path(text)
    if file.suffix.removeprefix(".").lower() not in FORMS:
        raise argparse.ArgumentTypeError(f"{file}: the file must end in .{', '.join(FORMS)}")
    return file
