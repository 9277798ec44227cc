"""The HyperPod side: API model and its limits, instance types, ratio completion, names."""
