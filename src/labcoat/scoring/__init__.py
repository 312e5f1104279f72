"""What runs are measured by: pure functions on arrays, and on the facts that journals tell."""
