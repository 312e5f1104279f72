"""What runs are measured by: pure functions on arrays, and folds over journals."""
