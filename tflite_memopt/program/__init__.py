"""Programs: several models in one arena, cuts, fed fronts, handover between parts, files."""
