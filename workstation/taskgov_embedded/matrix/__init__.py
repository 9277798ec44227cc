"""The fault matrix: everything that reconciling calls, times everything that can go wrong with a call.

`scenario` says what happens, `sites` where a fault can strike, `injector` lets it strike, `evidence` and `invariants`
judge what came of it, `cells` plays one cell after another in forked processes. `storm` is the other proof: thousands
of events in the midst of other people's edits. `tests/faults` runs both; `docs/faults.md` explains them.
"""
