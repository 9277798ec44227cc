"""`taskgov doctor`: what governing a cluster takes, whether it is there, and which command mends what is not.

`reading*` modules read the world into `facts`; `checks_*` modules are pure decisions on them; `command` shows them.
"""
