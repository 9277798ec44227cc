"""Find what is deployed (template, functions, state machines, events): in the checkout, or beside the package.

The wheel carries them as `taskgov_deployable` (pyproject.toml), so that the embedded stack runs outside a checkout too.
"""

from pathlib import Path
from typing import Final

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_INSTALLED: Final = Path(__file__).resolve().parents[1] / "taskgov_deployable"

ROOT: Final = _CHECKOUT if (_CHECKOUT / "template.yaml").exists() else _INSTALLED
TEMPLATE: Final = ROOT / "template.yaml"
RBAC: Final = ROOT / "docs" / "rbac.yaml"
EVENTS: Final = ROOT / "events"
SAMPLE: Final = ROOT / "examples" / "snapshot.json"
"""The cluster of the demo's story, to ask about: `tests/cli/test_demo_story.py` writes it."""
