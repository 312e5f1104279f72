"""A training program, reduced to its constants."""

C1 = 1000.0
C2 = 1000.0
C3 = 1000.0
C4 = 1000.0
C5 = 1000.0
C6 = 1000.0
