"""A model as a program of several models in one arena, and input that arrives row by row."""
