"""Walkthroughs: what people do on a governed cluster, step by step, with the expected results.

`model` is the form of a walkthrough file, `runner` runs it on a stack, `checks` compares what holds with what is
expected, and `scenarios/` has the files. `make verify` and the tests play the same files;
`make demo` plays `story.yaml`.
"""
