"""Play many long weeks: `python -m tests.weeks --examples 400 --steps 25 --seed 1`, or `make weeks`.

The same seed plays the same weeks. The shortest events that break an invariant are printed as a program.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.weeks.test_weeks import Weeks


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and play the weeks; the first invariant that breaks is raised."""
    parser = ArgumentParser(prog="python -m tests.weeks", description="Play weeks of events, with a run after each.")
    parser.add_argument("--examples", type=int, default=400, help="how many clusters (400)")
    parser.add_argument("--steps", type=int, default=25, help="how many events each at most (25)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-shrink", action="store_true", help="print the first failure as it is found: much sooner")
    given = parser.parse_args(arguments)
    phases = [Phase.generate] if given.no_shrink else [Phase.generate, Phase.shrink]
    long = settings(
        max_examples=given.examples,
        stateful_step_count=given.steps,
        phases=phases,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(given.seed)(Weeks), settings=long)
    sys.stdout.write(f"{given.examples} clusters lived through up to {given.steps} events each\n")


if __name__ == "__main__":
    main()
