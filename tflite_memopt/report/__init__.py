"""The results of a run, for machines (JSON) and for people (console)."""
