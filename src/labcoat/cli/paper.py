"""``labcoat paper-check``."""

from __future__ import annotations

from typing import Annotated

import typer

from labcoat.cli.output import JsonFlag, print_json, say
from labcoat.cli.table import print_table


def paper_check(
    json: JsonFlag = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables for a page.")] = False,
) -> None:
    """Check the figures and claims of FML-bench by its own tables."""
    from labcoat import paper

    if json:
        print_json(paper.data())
        return
    if markdown:
        print(paper.markdown())
        return
    say(f"{paper.TITLE}\n{paper.URL}")
    for table in paper.tables():
        print()
        say(table.title)
        print_table(table.head, table.rows, keys=table.keys)
