variable "packaged_template" {
  description = "What `sam package --output-template-file` wrote: the template with its code in S3."
  type        = string
  default     = "packaged.yaml"
}

variable "artifacts_bucket" {
  description = "Bucket for the packaged template, in the Region of the stack; the one given to `sam package` will do."
  type        = string
}

variable "stack_name" {
  description = "Name of the CloudFormation stack; commands take it as --stack."
  type        = string
  default     = "taskgov"
}

variable "apply_mode" {
  description = "plan computes, reports and measures; apply also writes quotas. Begin with plan."
  type        = string
  default     = "plan"

  validation {
    condition     = contains(["plan", "apply"], var.apply_mode)
    error_message = "apply_mode must be plan or apply."
  }
}

variable "alarm_email" {
  description = "Who gets alarms, notices and requests for approval; empty for nobody."
  type        = string
  default     = ""
}

variable "parameters" {
  description = "Other parameters of the template (docs/deploy.md), by name."
  type        = map(string)
  default     = {}
}

variable "tags" {
  description = "Tags of the stack and of what it makes."
  type        = map(string)
  default     = {}
}
