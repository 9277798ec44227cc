output "bucket_name" {
  description = "Where policy documents go: policies/<cluster name>.yaml."
  value       = aws_cloudformation_stack.taskgov.outputs["BucketName"]
}

output "kubernetes_role_arns" {
  description = "Roles that need an access entry in each EKS cluster (docs/deploy.md)."
  value       = split(",", aws_cloudformation_stack.taskgov.outputs["KubernetesRoleArns"])
}

output "notice_topic_arn" {
  description = "Topic of alarms, notices and requests for approval."
  value       = aws_cloudformation_stack.taskgov.outputs["NoticeTopicArn"]
}
