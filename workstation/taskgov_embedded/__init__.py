"""The embedded stack: an emulated AWS account, built from `template.yaml`, and a simulated cluster, in one process.

It runs on a person's machine only (the demo, the tests) and is never shipped in a layer. `stack.Stack` is the way in.
"""
