"""Log groups are made with their retention, and named as CloudFormation names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Lines:
    Type: AWS::Logs::LogGroup
    Properties: {RetentionInDays: 14}
Outputs:
  Arn: {Value: !GetAtt Lines.Arn}
"""


def test_a_log_group_has_its_retention_and_an_arn_for_its_streams(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    with Stack(tmp_path / "template.yaml") as stack:
        (group,) = stack.client("logs").describe_log_groups()["logGroups"]
        assert group["retentionInDays"] == 14
        # moto's own GetAtt leaves out the `:*` under which roles are granted the streams.
        assert stack.outputs["Arn"] == f"arn:aws:logs:us-east-1:111122223333:log-group:{group['logGroupName']}:*"
