"""What is run in another environment is no test."""

collect_ignore = ["check.py"]  # --doctest-modules would import it
