"""The one logger, tracer and set of metrics of a function. Nobody else builds them."""

from aws_lambda_powertools import Logger, Metrics, Tracer

logger = Logger()
tracer = Tracer(auto_patch=True)
metrics = Metrics()
