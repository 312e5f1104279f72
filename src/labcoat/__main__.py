"""``python -m labcoat`` is ``labcoat``."""

from __future__ import annotations

from labcoat.cli import main

if __name__ == "__main__":
    main()
