"""The command line: what a person runs of taskgov on the own machine."""

INTERRUPTED = 130
"""The exit code of a shell for SIGINT."""
NOT_READ = 141
"""The exit code of a shell for SIGPIPE: the program at the other end of the pipe stopped reading."""
