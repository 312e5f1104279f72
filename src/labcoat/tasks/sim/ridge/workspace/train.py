"""A training program, reduced to its constants."""

LEARNING_RATE = 0.3
BATCH_SIZE = 32
WIDTH = 64
DEPTH = 2
NORMALISE = False
SCHEDULE = "constant"
