"""The command line: what a person runs of taskgov on the own machine."""

INTERRUPTED = 130
"""The exit code of a shell for SIGINT."""
