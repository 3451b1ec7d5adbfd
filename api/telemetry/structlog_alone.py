"""structlog without rich, which it loads where that is installed, to draw tracebacks in colour.

Our lines have no colours, and typer brings rich to every server: 3.7 MiB of an idle one, and 0.05 s
of its start. What loads rich later, as the help of commands does, finds it.
"""

from __future__ import annotations

import sys

__all__ = ["EventDict", "Processor", "ProcessorFormatter", "structlog"]

_IS_LOADED = "rich" in sys.modules
if not _IS_LOADED:
    sys.modules["rich"] = None  # type: ignore[assignment]
try:
    import structlog
    from structlog.stdlib import ProcessorFormatter
    from structlog.typing import EventDict, Processor
finally:
    if not _IS_LOADED:
        del sys.modules["rich"]
