"""Roles name items of the table by the keys under which the code keeps them."""

from taskgov import keys
from tests.template.conftest import Properties, load, statements

CONDITIONS = ("ForAllValues:StringLike", "ForAnyValue:StringLike")


def leading_keys(statement: Properties) -> set[str]:
    condition = statement.get("Condition", {})
    return {key for test in CONDITIONS for key in condition.get(test, {}).get("dynamodb:LeadingKeys", ())}


def test_every_partition_of_the_table_is_named_by_a_role_and_no_other() -> None:
    roles = load().resources_of("AWS::IAM::Role").values()
    people = load().resources_of("AWS::IAM::ManagedPolicy").values()
    of_people = [each for policy in people for each in policy["PolicyDocument"]["Statement"]]
    named = {key for role in roles for each in statements(role) for key in leading_keys(each)}
    expected = {f"{key}*" if key.endswith("#") else key for key in keys.PARTITIONS}
    assert named == expected
    assert {key for each in of_people for key in leading_keys(each)} <= expected
