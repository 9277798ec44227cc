"""`taskgov doctor`: what governing a cluster takes, whether it is there, and which command fixes what is missing.

`reading*` modules read the world into `facts`; `checks_*` modules are pure decisions on them; `command` shows them.
"""
