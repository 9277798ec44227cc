"""The simulated EKS cluster: nodes, jobs, pods, queues, and their API over HTTP.

Its scheduler is `taskgov.scheduling`, the engine that the product itself decides with.
"""
