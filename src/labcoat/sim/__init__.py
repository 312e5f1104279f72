"""Strategies on simulated landscapes: a grid of runs in a pool of processes, and what it says about the strategies."""

from __future__ import annotations

from labcoat.sim.grid import Cell, Grid
from labcoat.sim.pool import Failure, run_all
from labcoat.sim.report import markdown, results, write
from labcoat.sim.rows import Row, run_cell

__all__ = ["Cell", "Failure", "Grid", "Row", "markdown", "results", "run_all", "run_cell", "write"]
