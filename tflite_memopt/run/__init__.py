"""A run from bytes to bytes: candidates, attempts, checks; a step, a hop, and several parts of a model."""
