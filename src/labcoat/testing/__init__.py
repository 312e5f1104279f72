"""For those who write strategies: worlds to try one in, and the rules that every strategy keeps.

``contract.check(strategy)`` tries all rules; ``contract.CHECKS`` holds them one by one for a parametrised test. A
:class:`World` is a real lab, driver, editor and journal with trials whose outcome is given, for tests of one's own.
"""

from __future__ import annotations

from labcoat.testing.world import Decision, Search, World, failed, measured, traced, violation

__all__ = ["Decision", "Search", "World", "failed", "measured", "traced", "violation"]
