"""FML-bench checked against itself: its figures from its own tables, and its claims with intervals."""

from labcoat.paper.report import TITLE, URL, Table, data, markdown, tables

__all__ = ["TITLE", "URL", "Table", "data", "markdown", "tables"]
