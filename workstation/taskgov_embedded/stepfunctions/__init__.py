"""State machines: what moto's Step Functions lacks or gets wrong."""
