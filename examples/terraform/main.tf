# CloudFormation takes templates of this size from S3 only.
resource "aws_s3_object" "template" {
  bucket = var.artifacts_bucket
  key    = "${var.stack_name}/${filesha256(var.packaged_template)}.yaml"
  source = var.packaged_template
}

resource "aws_cloudformation_stack" "taskgov" {
  name         = var.stack_name
  template_url = "https://${var.artifacts_bucket}.s3.${data.aws_region.current.name}.${data.aws_partition.current.dns_suffix}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
  tags         = var.tags

  # Terraform sends every parameter with each apply, and the template's default for what is not named here. So name all
  # that you chose: a parameter that was given by `sam deploy` only would be taken back.
  parameters = merge(var.parameters, {
    ApplyMode  = var.apply_mode
    AlarmEmail = var.alarm_email
  })

  # CodeDeploy may move calls to a new version for minutes (parameter DeploymentPreference), function by function.
  timeouts {
    create = "30m"
    update = "120m"
    delete = "30m"
  }
}

data "aws_region" "current" {}

data "aws_partition" "current" {}
