"""RAM as a cost that a search and a training see: an estimate in a fraction of a second, or the answer of a run."""

DOOR = "cost"
