"""The part of SageMaker that moto lacks: HyperPod's task governance, and clusters as HyperPod has them."""
