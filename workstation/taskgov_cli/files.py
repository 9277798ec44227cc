"""Files that commands write: a reader finds the old one or the new one, and never a half."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def put(file: Path, body: bytes) -> None:
    """Write a file at once, with the rights of the one that was there; devices and pipes are written to directly.

    Raises OSError that names the file, and leaves what was there.
    """
    if file.exists() and not file.is_file():
        file.write_bytes(body)
        return
    target = file.resolve()
    beside = target.with_name(f".{target.name}.taskgov")
    try:
        beside.write_bytes(body)
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError) and error.filename is not None:
            error.filename, error.filename2 = str(file), None
        raise
