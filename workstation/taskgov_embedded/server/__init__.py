"""The stack for other processes, in real time: `taskgov local` and its tests."""
