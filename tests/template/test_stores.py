"""What is kept is encrypted, private, versioned where it must be, and outlives the stack."""

import pytest

from taskgov_embedded.cloudformation.template import Translated
from tests.template.conftest import Properties, listed, load, references

QUEUES = load().resources_of("AWS::SQS::Queue")


def policy_for(stack: Translated, kind: str, key: str, target: str) -> list[Properties]:
    (policy,) = [one for one in stack.resources_of(kind).values() if target in references(one[key])]
    statements: list[Properties] = policy["PolicyDocument"]["Statement"]
    return statements


def assert_only_by_tls(statements: list[Properties], target: str) -> None:
    (deny,) = [one for one in statements if one["Effect"] == "Deny"]
    assert deny["Principal"] == "*"
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert references(deny["Resource"]) == {target}


@pytest.mark.parametrize("name", ["GovernanceTable", "GovernanceBucket"])
def test_what_people_decided_outlives_the_stack(stack: Translated, name: str) -> None:
    resource = stack.cfn["Resources"][name]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_table_is_encrypted_recoverable_and_forgets_what_has_expired(stack: Translated) -> None:
    (table,) = stack.resources_of("AWS::DynamoDB::Table").values()
    assert table["SSESpecification"] == {"SSEEnabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expiresAt", "Enabled": True}
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]


def test_the_bucket_is_private_versioned_encrypted_and_sends_to_eventbridge(stack: Translated) -> None:
    (bucket,) = stack.resources_of("AWS::S3::Bucket").values()
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    assert bucket["NotificationConfiguration"] == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    assert_only_by_tls(policy_for(stack, "AWS::S3::BucketPolicy", "Bucket", "GovernanceBucket"), "GovernanceBucket")


def test_what_travels_between_steps_expires_and_what_people_wrote_does_not(stack: Translated) -> None:
    (bucket,) = stack.resources_of("AWS::S3::Bucket").values()
    rules = {rule["Prefix"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"] if "Prefix" in rule}
    expiring = {prefix for prefix, rule in rules.items() if "ExpirationInDays" in rule}
    assert expiring == {"snapshots/", "plans/", "reports/", "work/", "starts/"}
    assert rules["work/"]["ExpirationInDays"] == rules["starts/"]["ExpirationInDays"] == {"Ref": "HistoryDays"}
    assert set(rules) - expiring == {"policies/", "memory/"}
    assert {rule["Status"] for rule in rules.values()} == {"Enabled"}


@pytest.mark.parametrize("name", sorted(QUEUES))
def test_every_queue_is_encrypted_and_accepts_tls_only(stack: Translated, name: str) -> None:
    assert QUEUES[name]["SqsManagedSseEnabled"] is True
    assert_only_by_tls(policy_for(stack, "AWS::SQS::QueuePolicy", "Queues", name), name)


def test_an_event_is_tried_five_times_six_minutes_apart() -> None:
    queue = QUEUES["IntakeQueue"]
    assert (queue["VisibilityTimeout"], queue["RedrivePolicy"]["maxReceiveCount"]) == (360, 5)


@pytest.mark.parametrize("name", sorted(name for name in QUEUES if "DeadLetter" in name))
def test_a_dead_letter_is_kept_for_two_weeks(name: str) -> None:
    assert QUEUES[name]["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_notices_are_encrypted_under_a_key_that_alarms_of_this_account_may_use(stack: Translated) -> None:
    (topic,) = stack.resources_of("AWS::SNS::Topic").values()
    assert references(topic["KmsMasterKeyId"]) == {"NoticeKey"}
    key = stack.resources_of("AWS::KMS::Key")["NoticeKey"]
    assert key["EnableKeyRotation"] is True
    services = [one for one in key["KeyPolicy"]["Statement"] if "Service" in one["Principal"]]
    assert [one["Principal"]["Service"] for one in services] == ["cloudwatch.amazonaws.com"]
    assert services[0]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


MACHINES = load().resources_of("AWS::StepFunctions::StateMachine")
LOGS_OF_THIS_ACCOUNT = {"Fn::Sub": "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:*"}


WITH_HISTORY = {name for name, one in MACHINES.items() if one.get("StateMachineType") != "EXPRESS"}


@pytest.mark.parametrize("name", sorted(WITH_HISTORY))
def test_what_executions_are_given_and_their_histories_are_encrypted_under_a_key_of_the_stack(name: str) -> None:
    encryption = MACHINES[name]["EncryptionConfiguration"]
    assert encryption["Type"] == "CUSTOMER_MANAGED_KMS_KEY"
    assert encryption["KmsKeyId"] == {"Ref": "ExecutionKey"}
    assert 60 <= encryption["KmsDataKeyReusePeriodSeconds"] <= 900


def test_the_key_of_executions_is_used_by_this_account_and_by_the_delivery_of_its_logs(stack: Translated) -> None:
    key = stack.resources_of("AWS::KMS::Key")["ExecutionKey"]
    assert key["EnableKeyRotation"] is True
    account, logs = key["KeyPolicy"]["Statement"]
    assert account["Principal"] == {"AWS": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}}
    assert logs["Principal"] == {"Service": "delivery.logs.amazonaws.com"}
    assert listed(logs["Action"]) == ["kms:Decrypt"]
    assert logs["Condition"] == {"StringEquals": {"kms:EncryptionContext:SourceArn": LOGS_OF_THIS_ACCOUNT}}


def test_only_alarms_of_this_account_publish_notices_from_outside_and_only_by_tls(stack: Translated) -> None:
    statements = policy_for(stack, "AWS::SNS::TopicPolicy", "Topics", "NoticeTopic")
    assert_only_by_tls(statements, "NoticeTopic")
    (allow,) = [one for one in statements if one["Effect"] == "Allow"]
    assert allow["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert listed(allow["Action"]) == ["sns:Publish"]
    assert allow["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_an_address_is_subscribed_only_when_one_is_given(stack: Translated) -> None:
    (subscription,) = [one for one in stack.cfn["Resources"].values() if one["Type"] == "AWS::SNS::Subscription"]
    assert subscription["Condition"] == "TellsByEmail"
    assert stack.cfn["Parameters"]["AlarmEmail"]["Default"] == ""
