"""Who starts when? A fast replay of jobs through Kueue's queues, for thousands of starts at a time.

The same decisions as `taskgov.scheduling` and `taskgov_explain.simulation`, on numbers instead of objects. `accepts`
gives the reasons why a setting or a job needs the exact model; where there is none, `replay` gives the same starts,
preemptions and ends, at the same moments (`tests/futures`).
"""

from taskgov.futures.accepting import accepts
from taskgov.futures.jobs import Held, Job, Jobs
from taskgov.futures.of_model import jobs_of, obstacles, setting_of
from taskgov.futures.replaying import replay
from taskgov.futures.setting import Change, Setting
from taskgov.futures.starts import Starts, Stay

__all__ = [
    "Change",
    "Held",
    "Job",
    "Jobs",
    "Setting",
    "Starts",
    "Stay",
    "accepts",
    "jobs_of",
    "obstacles",
    "replay",
    "setting_of",
]
