"""Where code runs: data and environments, workspace, sandbox, limits, worker, scorer."""
