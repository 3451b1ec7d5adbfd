"""`tallystick policy`: lint a proposal offline; propose, read, approve. Thin clients of the API."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli_terminal import EXIT_NO, AsJson, InputUnusable, columns, group, tell

if TYPE_CHECKING:
    from domain.policy_lint import Report

app = group(
    "Policy: proposals, their lint, and the versions they lead to.",
    "tallystick policy lint proposal.toml --json",
)

FILE_BYTES_MAX = 1_000_000

File = Annotated[Path, typer.Argument(metavar="FILE", help="A proposal: TOML, or JSON as .json.")]


@app.command("lint", epilog="Example: tallystick policy lint proposal.toml --json")
def lint_file(file: File, as_json: AsJson = False) -> None:
    """Judge a proposal by the rules that need nothing but the file. Exit 1 when it fails."""
    from domain.policy_lint import lint

    report = lint(document_of(file))
    told = told_of(report)
    lines = columns(told["findings"], ("severity", "rule", "field", "message"))
    end = f"{'passes' if report.passes else 'fails'}: {report.errors} errors"
    end += f", {report.warnings} warnings"
    tell(told, [*(lines if report.findings else ()), end], as_json=as_json)
    if not report.passes:
        raise typer.Exit(EXIT_NO)


def told_of(report: Report) -> dict[str, Any]:
    """The result of a lint as `--json` prints it."""
    return {
        "passes": report.passes,
        "errors": report.errors,
        "warnings": report.warnings,
        "findings": [asdict(one) for one in report.findings],
        "findings_sha256": report.sha256,
    }


def document_of(file: Path) -> Any:
    """A file as its TOML or JSON reader leaves it. Raises InputUnusable."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(FILE_BYTES_MAX + 1)
        if len(raw) > FILE_BYTES_MAX:
            raise InputUnusable(f"{file}: more than {FILE_BYTES_MAX} bytes")
        text = raw.decode()
        return json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputUnusable(f"{file}: {error}") from None
