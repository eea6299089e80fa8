"""Files of the project that are made: schemas, the demo model, the table of the README."""
