"""Make a bearer token for an EKS cluster as `aws eks get-token` does, for an endpoint of one's choice."""

from __future__ import annotations

import base64

import boto3
from botocore.credentials import Credentials
from botocore.signers import RequestSigner


def token_for(eks_cluster: str, endpoint: str) -> str:
    """Sign as `aws eks get-token` does where AWS_ENDPOINT_URL is `endpoint`."""
    session = boto3.Session(region_name="us-east-1")
    model = session.client("sts").meta.service_model.service_id
    signer = RequestSigner(model, "us-east-1", "sts", "v4", Credentials("me", "any"), session.events)
    request = {
        "method": "GET",
        "url": f"{endpoint}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": eks_cluster},
        "context": {},
    }
    url = signer.generate_presigned_url(request, expires_in=60, operation_name="")
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
