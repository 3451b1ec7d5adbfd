"""What is installed: the version, and which extra brings what a command misses.

    tallystick-node     the reporter         tallystick[audit]     `cli`, and whole exports
    tallystick[cli]     a server's clients   tallystick[server]    everything

Standard library only: this must work where no extra is installed.
"""

from __future__ import annotations

import sys

_OURS = {"api", "cli", "contracts", "domain", "ledger", "node_reporter", "projections"}
_EXTRA = {
    "httpx": "cli",
    "nacl": "cli",
    "pathspec": "cli",
    "rich": "cli",
    "tallystick_client": "cli",
    "typer": "cli",
    "msgspec": "audit",
    "pyarrow": "audit",
    "sha3": "audit",
    "pyiceberg": "iceberg",
}
"""The smallest extra that brings a module; `server` brings every other one."""


def version_line() -> str:
    """`tallystick 0.1.0`."""
    from importlib.metadata import version

    return f"tallystick {version('tallystick')}"


def what_to_install(missing: ModuleNotFoundError) -> str | None:
    """The line that names the extra to install; None when the module is ours: that is a bug."""
    name = (missing.name or "").partition(".")[0]
    if not name or name in _OURS or name in sys.stdlib_module_names:
        return None
    extra = _EXTRA.get(name, "server")
    return f"this needs {name}, which is not installed: pip install 'tallystick[{extra}]'"
