"""A release, as far as one machine goes: scripts/release."""
