"""Claims of published papers, rerun."""
