"""What schedulers and planners share: integers only, no model."""
