"""A training program, reduced to its constants."""

C1 = 1000.0
C2 = 1000.0
C3 = 1000.0
