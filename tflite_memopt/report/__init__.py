"""The report of a run: its data, sentences, console, plots, and pages."""
