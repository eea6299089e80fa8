"""Pictures of a report: charts, the page that holds them, and files for papers and READMEs."""
