"""A training program, reduced to its constants."""

C1 = 1000.0
C2 = 1000.0
C3 = 1000.0
C4 = 1000.0
C5 = 1000.0
C6 = 1000.0
C7 = 1000.0
C8 = 1000.0
C9 = 1000.0
C10 = 1000.0
C11 = 1000.0
C12 = 1000.0
