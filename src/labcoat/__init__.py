"""labcoat: controlled experiments on AI research agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "export_git", "open_run", "replay", "run"]

if TYPE_CHECKING:
    from labcoat.api import export_git, open_run, replay, run


def __getattr__(name: str) -> Any:
    """Load the API on first use, so that ``import labcoat`` stays fast."""
    if name in __all__:
        from labcoat import api

        return getattr(api, name)
    raise AttributeError(f"module 'labcoat' has no attribute {name!r}")
