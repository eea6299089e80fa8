"""What a run found, for machines (JSON) and for people (console)."""
