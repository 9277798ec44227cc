"""The stack's table as moto makes it, for tests of what is kept there."""

from typing import Any

import boto3


def governance_table(service: Any = None) -> Any:
    """Return an empty table `governance`; call it within `mock_aws`. `service`: a resource made there before."""
    return (service or boto3.resource("dynamodb")).create_table(
        TableName="governance",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
