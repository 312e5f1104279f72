"""A training program, reduced to its constants."""

LEARNING_RATE = 0.1
WEIGHT_DECAY = 0.02
HIDDEN_UNITS = 32
DROPOUT = 0.5
EPOCHS = 5
