"""What schedulers, planners and analyses share: integers only, no model."""
