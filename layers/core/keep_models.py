"""Keep, of the models of all services (25 MiB), those of models.txt, each in its newest version.

Run as `keep_models.py FOLDER` by the Makefile of the layers.
"""

import shutil
import sys
from pathlib import Path

KEPT = set(Path(__file__).with_name("models.txt").read_text(encoding="utf-8").split())

for data in Path(sys.argv[1]).glob("boto*/data"):
    for service in (path for path in data.iterdir() if path.is_dir()):
        versions = sorted(path for path in service.iterdir() if path.is_dir())
        for folder in versions[:-1] if service.name in KEPT else [service]:
            shutil.rmtree(folder)
    for examples in data.rglob("examples-1.json"):
        examples.unlink()
