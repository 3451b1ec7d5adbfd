"""The entry point of `tallystick`, which answers even where no extra is installed.

tallystick --version        always the version
tallystick --help           the commands, or the line that says what to install
"""

from __future__ import annotations

import sys

from cli.extras import version_line, what_to_install

EXIT_USAGE = 2


def main() -> int:
    """The exit code."""
    if sys.argv[1:2] == ["--version"]:
        sys.stdout.write(f"{version_line()}\n")
        return 0
    try:
        from cli import main as cli
    except ModuleNotFoundError as missing:
        return _incomplete(missing)
    return cli.main()


def _incomplete(missing: ModuleNotFoundError) -> int:
    """Say what to install: on standard output to a reader of the help, else as a failure."""
    advice = what_to_install(missing)
    if advice is None:
        raise missing
    asks_for_help = sys.argv[1:] in ([], ["--help"])
    (sys.stdout if asks_for_help else sys.stderr).write(f"tallystick: {advice}\n")
    return 0 if asks_for_help else EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
