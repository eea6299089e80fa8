"""What changes a model: rewrites, stripes and tiles, and the memory that a model then needs."""
