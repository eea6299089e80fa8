"""What is known of each kind of operator: one table, which whatever cuts or turns operators asks."""
