"""Ready search spaces as YAML files, found by name (see README.md in this folder)."""
