"""What holds for a whole EC2 instance family, so that the table of types is stated by rule instead of by row.

Source: the public EC2 instance type pages (accelerated computing, general purpose, compute, memory and storage
optimised). `taskgov.hyperpod.instance_types` expands it. Families whose numbers are not certain (g7) are left out on
purpose: the policy document supplies them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final


@dataclass(frozen=True, slots=True)
class Family:
    """One family: memory by vCPU, its sizes, and the sizes that differ from the rule."""

    name: str
    gib_per_vcpu: Fraction | int
    sizes: str
    efa: Mapping[str, int] = field(default_factory=dict)
    """EFA interfaces by size; 0 where not named."""
    gpu: int = 0
    gpu_by_size: Mapping[str, int] = field(default_factory=dict)
    neuron: int = 0
    neuron_by_size: Mapping[str, int] = field(default_factory=dict)
    threads: int = 2
    """Threads that a core runs by default. EC2's guide names Graviton, and AMD of the seventh generation, as
    one thread that cannot be changed; that AMD of the eighth and Grace (also Arm) are alike is inferred."""
    vcpu: Mapping[str, int] = field(default_factory=dict)
    """vCPUs of the sizes that break the rule "xlarge is 4"."""
    memory_gib: Mapping[str, int] = field(default_factory=dict)
    """Memory of the sizes that break the family's ratio."""
    mig_memory: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)
    """GB of an eighth, a quarter, a half and the whole of one GPU, by size, where it can be partitioned (MIG)."""


_TO_8 = "large xlarge 2xlarge 4xlarge 8xlarge"
_TO_24 = f"{_TO_8} 12xlarge 16xlarge 24xlarge"
_G_SIZES = "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge"
_FOUR_GPUS: Final = {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
_INTEL_6: Final = f"{_TO_24} 32xlarge"
_INTEL_7: Final = f"{_TO_24} 48xlarge"
_AMD_6: Final = f"{_TO_24} 32xlarge 48xlarge"
_GRAVITON: Final = f"medium {_TO_8} 12xlarge 16xlarge"
_GRAVITON_4: Final = f"{_GRAVITON} 24xlarge 48xlarge"
_EFA_FROM_8: Final = {"8xlarge": 1, "12xlarge": 1, "16xlarge": 1, "24xlarge": 1, "48xlarge": 1}
_EFA_BY_GPU: Final = {"8xlarge": 1, "12xlarge": 1, "16xlarge": 1, "24xlarge": 2, "48xlarge": 4}
_H100 = (10, 20, 40, 80)
_H200 = (18, 35, 71, 141)

_ACCELERATED: Final = (
    Family(
        "g4dn",
        4,
        "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge",
        gpu=1,
        gpu_by_size={"12xlarge": 4},
        efa={"8xlarge": 1, "12xlarge": 1, "16xlarge": 1},
    ),
    Family("g5", 4, _G_SIZES, gpu=1, gpu_by_size=_FOUR_GPUS, efa=_EFA_FROM_8),
    Family("g6", 4, _G_SIZES, gpu=1, gpu_by_size=_FOUR_GPUS, efa=_EFA_FROM_8),
    Family("g6e", 8, _G_SIZES, gpu=1, gpu_by_size=_FOUR_GPUS, efa=_EFA_BY_GPU),
    Family("gr6", 8, "4xlarge 8xlarge", gpu=1, efa={"8xlarge": 1}),
    Family(
        "g7e",
        8,
        "2xlarge 4xlarge 8xlarge 12xlarge 24xlarge 48xlarge",
        gpu=1,
        gpu_by_size={"12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
        efa={"8xlarge": 1, "12xlarge": 1, "24xlarge": 2, "48xlarge": 4},
        memory_gib={"12xlarge": 512, "24xlarge": 1024, "48xlarge": 2048},
    ),
    Family("p4d", 12, "24xlarge", gpu=8, efa={"24xlarge": 4}, mig_memory={"24xlarge": (5, 10, 20, 40)}),
    Family("p4de", 12, "24xlarge", gpu=8, efa={"24xlarge": 4}, mig_memory={"24xlarge": _H100}),
    Family(
        "p5",
        Fraction(32, 3),
        "4xlarge 48xlarge",
        gpu=8,
        gpu_by_size={"4xlarge": 1},
        efa={"4xlarge": 1, "48xlarge": 32},
        memory_gib={"4xlarge": 256},
        mig_memory={"48xlarge": _H100},
    ),
    Family("p5e", Fraction(32, 3), "48xlarge", gpu=8, efa={"48xlarge": 32}, mig_memory={"48xlarge": _H200}),
    Family("p5en", Fraction(32, 3), "48xlarge", gpu=8, efa={"48xlarge": 16}, mig_memory={"48xlarge": _H200}),
    Family(
        "p6-b200", Fraction(32, 3), "48xlarge", gpu=8, efa={"48xlarge": 8}, mig_memory={"48xlarge": (23, 45, 90, 180)}
    ),
    # The API's MIGProfileType has none of this GPU's profiles yet (botocore 1.43.11): a quota on them is refused.
    Family(
        "p6-b300", Fraction(64, 3), "48xlarge", gpu=8, efa={"48xlarge": 16}, mig_memory={"48xlarge": (34, 67, 135, 269)}
    ),
    # Its EFA interfaces are not settled in public sources (HyperPod's own command line counts none): supply them.
    Family("p6e-gb200", Fraction(20, 3), "36xlarge", gpu=4, mig_memory={"36xlarge": (23, 47, 93, 186)}, threads=1),
    Family("trn1", 4, "32xlarge", neuron=16, efa={"32xlarge": 8}),
    Family("trn1n", 4, "32xlarge", neuron=16, efa={"32xlarge": 16}),
    Family(
        "trn2",
        Fraction(32, 3),
        "3xlarge 48xlarge",
        neuron=16,
        neuron_by_size={"3xlarge": 1},
        efa={"3xlarge": 1, "48xlarge": 16},
    ),
)

_GENERAL: Final = (
    Family("c5", 2, "large xlarge 2xlarge 4xlarge 9xlarge 12xlarge 18xlarge 24xlarge"),
    Family(
        "c5n",
        Fraction(21, 8),
        "large 2xlarge 4xlarge 9xlarge 18xlarge",
        memory_gib={"9xlarge": 96, "18xlarge": 192},
        efa={"9xlarge": 1, "18xlarge": 1},
    ),
    Family("c6a", 2, _AMD_6, efa={"48xlarge": 1}),
    Family("c6g", 2, _GRAVITON, threads=1),
    Family("c6i", 2, _INTEL_6, efa={"32xlarge": 1}),
    Family("c7g", 2, _GRAVITON, efa={"16xlarge": 1}, threads=1),
    Family("c8a", 2, "16xlarge", threads=1),
    Family("c8g", 2, _GRAVITON_4, efa={"24xlarge": 1, "48xlarge": 1}, threads=1),
    Family("i3en", 8, "large xlarge 2xlarge 3xlarge 6xlarge 12xlarge 24xlarge", efa={"12xlarge": 1, "24xlarge": 1}),
    Family("m5", 4, _TO_24),
    Family("m6a", 4, _AMD_6, efa={"48xlarge": 1}),
    Family("m6g", 4, _GRAVITON, threads=1),
    Family("m6i", 4, _INTEL_6, efa={"32xlarge": 1}),
    Family("m7g", 4, _GRAVITON, efa={"16xlarge": 1}, threads=1),
    Family("m7i", 4, _INTEL_7, efa={"48xlarge": 1}),
    Family("m8a", 4, "16xlarge", threads=1),
    Family("m8g", 4, _GRAVITON_4, efa={"24xlarge": 1, "48xlarge": 1}, threads=1),
    Family("r5d", 8, "16xlarge"),
    Family("r6i", 8, _INTEL_6, efa={"32xlarge": 1}),
    Family("r7i", 8, _INTEL_7, efa={"48xlarge": 1}),
    Family("t3", 4, "medium large xlarge 2xlarge", vcpu={"medium": 2}, memory_gib={"medium": 4}),
)

FAMILIES: Final[tuple[Family, ...]] = _ACCELERATED + _GENERAL
