"""The command line: what a person asks of taskgov on the own machine."""
