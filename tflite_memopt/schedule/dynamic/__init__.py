"""What serenity and hmcos are made of: dynamic programming, cuts, the hierarchy of groups."""
