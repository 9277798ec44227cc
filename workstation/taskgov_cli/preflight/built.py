"""For which processor are the built layers? Their compiled modules say it themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

MACHINES: Final = {62: "x86_64", 183: "arm64"}
"""`e_machine` of an ELF header (EM_X86_64, EM_AARCH64), in the words of Lambda."""


@dataclass(frozen=True, slots=True)
class Built:
    """What `sam build` left: layers by logical id, with the architectures of their compiled modules, and all bytes."""

    layers: dict[str, frozenset[str]]
    size: int
    """Bytes of all functions and layers, before they are packed."""


def read_built(folder: Path) -> Built | None:
    """Return what was built into a folder; None where nothing was."""
    if not (folder / "template.yaml").exists():
        return None
    layers = {path.name: path for path in sorted(folder.iterdir()) if path.is_dir() and path.name.endswith("Layer")}
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Built(
        {name: frozenset(filter(None, map(machine_of, path.rglob("*.so")))) for name, path in layers.items()}, size
    )


def machine_of(module: Path) -> str | None:
    """Return the architecture of a compiled module, None for what is not an ELF file."""
    with module.open("rb") as file:
        header = file.read(20)
    if header[:4] != b"\x7fELF":
        return None
    number = int.from_bytes(header[18:20], "little")
    return MACHINES.get(number, f"machine {number}")
