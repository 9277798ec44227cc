"""The command line: what a person runs of taskgov on the own machine."""
