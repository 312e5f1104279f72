"""Scoring: pure functions on numbers. They know no run folder, no strategy and no task."""
