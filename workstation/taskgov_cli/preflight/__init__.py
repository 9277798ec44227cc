"""`taskgov preflight`: will this account and Region take the stack? Asked before the first deployment, reading only.

`template` and `needs` say what the stack is and needs, from `template.yaml` alone; `regions`, `partitions` and `built`
know places and builds; `reading` reads the account; `checks` are pure decisions on all of it; `command` shows them.
"""
