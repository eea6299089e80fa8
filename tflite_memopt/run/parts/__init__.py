"""Programs: several models in one arena, cuts, fed fronts, handover between parts, files."""

DOOR = "console files firmware fronts run sharing verifying ways"
"""Modules that other folders may import."""
