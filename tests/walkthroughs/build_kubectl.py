"""Build kubectl from its Go module where none is installed: `python -m tests.walkthroughs.build_kubectl FOLDER`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "kubectl"


def main(folder: Path) -> int:
    """Build `folder/kubectl` unless kubectl is installed or built already; return the exit code."""
    go = shutil.which("go")
    if shutil.which("kubectl") is not None or (folder / "kubectl").exists():
        return 0
    if go is None:
        print("SKIPPED: neither kubectl nor Go (to build it with) is installed")
        return 0
    print("building kubectl (some minutes, once)", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / "kubectl.building"
    command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", "-s -w", "-o", str(unfinished.resolve()), "."]
    done = subprocess.run(command, cwd=SOURCE, env={**os.environ, "CGO_ENABLED": "0"}, check=False)  # noqa: S603 - fixed words
    if done.returncode == 0:
        unfinished.rename(folder / "kubectl")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
