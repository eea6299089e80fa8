"""Serenity: dynamic programming, divide and conquer, soft budgets."""
