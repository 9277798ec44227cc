"""The one logger of a function. Nobody else builds one.

Metrics go through the `Meter` port. Traces come from Lambda's and Step Functions' own active tracing: Powertools'
tracer would more than double the time that a function needs to start.
"""

from aws_lambda_powertools import Logger

logger = Logger()
