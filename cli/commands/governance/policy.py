"""`tallystick policy`: lint a proposal offline; propose, read, approve; rehearse it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.checking.executors import ExecutorOption, chosen
from cli.commands.governance import terms
from cli.remote import BY_NUMBER, IN_ORDER, Remote, lists, reads, records
from cli.settings import ConfigFile, DataDir, in_force
from cli.signing import KeyFile, vote_on
from cli.terminal import (
    EXIT_NO,
    AsJson,
    InputUnusable,
    amount,
    columns,
    facts,
    group,
    progress,
    tell,
)
from domain.governance import told_terms

if TYPE_CHECKING:
    from domain.governance.lint import Report
    from tallystick_client.forms import PolicyProposalRequest, PolicySchedulingRequest, VoteRequest

app = group(
    "policy",
    "Policy: proposals, their lint, and published versions.",
    "tallystick policy lint proposal.toml --json",
)

FILE_BYTES_MAX = 1_000_000
NAMED = 10

File = Annotated[Path, typer.Argument(metavar="FILE", help="A proposal: TOML, or JSON as .json.")]


@app.command("lint", epilog="Example: tallystick policy lint proposal.toml --json")
def lint_file(file: File, as_json: AsJson = False) -> None:
    """Judge a proposal by the rules that need only the file. Exit 1 when it fails."""
    from domain.governance.lint import lint

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


Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The proposal's number.")]
Seen = Annotated[
    int | None,
    typer.Option(
        "--seen", help="`changes` of the version you read; a vote on a later one is refused."
    ),
]
Reason = Annotated[str, typer.Option(help="Why.")]
_SHOWN = (
    "number",
    "title",
    "category",
    "created",
    "status",
    "revision",
    "changes",
    "proposed_by",
    "policy_version",
    "effective_from_epoch",
)


@app.command("propose", epilog="Example: tallystick policy propose proposal.toml")
@records
def propose(remote: Remote, file: File) -> None:
    """Propose a policy document. Governors approve it: `policy approve`."""
    body: PolicyProposalRequest = {"document": document_of(file)}
    told = remote.ask(lambda c: c.propose_policy(body, idempotency_key=remote.key))
    remote.tell(told, _lines(told))


@app.command("revise", epilog="Example: tallystick policy revise proposal.toml")
@records
def revise(remote: Remote, file: File, seen: Seen = None) -> None:
    """Revise your own proposal with another document. Votes begin again."""
    document = document_of(file)
    body: PolicyProposalRequest = {"document": document}
    try:
        number = int(document["proposal"]["number"])
    except (TypeError, KeyError, ValueError):
        raise InputUnusable(f"{file}: [proposal] has no number") from None
    tag = _tag(remote, number, seen)
    told = remote.ask(
        lambda c: c.revise_policy_proposal(number, body, if_match=tag, idempotency_key=remote.key)
    )
    remote.tell(told, _lines(told))


@app.command("versions", epilog="Example: tallystick policy versions --json")
@lists(BY_NUMBER)
def versions(remote: Remote) -> None:
    """List every version of the policy, and which one is in force."""
    found = remote.list(lambda c, page: c.list_policies(**page))
    names = (
        "version",
        "in_force",
        "effective_from_epoch",
        "proposal",
        "compute_ppm",
        "availability_ppm",
        "treasury_ppm",
        "published_at",
    )
    remote.tell(found, columns(found["data"], names))


@app.command("list", epilog="Example: tallystick policy list --json")
@lists(IN_ORDER)
def list_proposals(remote: Remote) -> None:
    """List every proposal."""
    found = remote.list(lambda c, page: c.list_policy_proposals(**page))
    names = ("number", "status", "title", "category", "created", "policy_version")
    remote.tell(found, columns(found["data"], names))


@app.command("show", epilog="Example: tallystick policy show 5")
@reads
def show(remote: Remote, number: Number) -> None:
    """Show one proposal: what it changes, the findings of its lint, and its votes."""
    told = remote.ask(lambda c: c.read_policy_proposal(number))
    version = _compared_with(remote, told)
    differences = None
    lines = _lines(told)
    proposed = told["document"].get("terms")
    if version is not None and proposed is not None:
        differences = told_terms.changes(told_terms.terms_of(version), proposed)
        lines += ["", f"what it changes of version {version['version']}:"]
        rows = [terms.shown(one) for one in differences]
        lines += columns(rows, ("term", "in_force", "proposed")) if rows else ["nothing"]
    elif proposed is None:
        lines += ["", "it has no terms: it proposes no version of the policy"]
    if told["findings"]:
        lines += ["", *columns(told["findings"], ("severity", "rule", "field", "message"))]
    compared = None if version is None else version["version"]
    remote.tell({**told, "compared_with": compared, "differences": differences}, lines)


def _compared_with(remote: Remote, told: Mapping[str, Any]) -> dict[str, Any] | None:
    """The version in force; of a proposal that was published, the one before it."""
    published = remote.list(lambda c, page: c.list_policies(**page), 1_000)["data"]
    own = told.get("policy_version")
    if own is not None:
        return next((one for one in published if one["version"] == own - 1), None)
    return next((one for one in published if one["in_force"]), None)


@app.command("start", epilog="Example: tallystick policy start next.toml --title 'Longer epochs'")
@reads
def start(
    remote: Remote,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, like next.toml.")],
    title: Annotated[str | None, typer.Option(help="Title of the proposal.")] = None,
) -> None:
    """Write a proposal to begin with: the policy in force, under the next number. Needs no key."""
    from datetime import UTC, datetime

    if file.exists():
        raise InputUnusable(f"{file} is there already: name a new file")
    published = remote.list(lambda c, page: c.list_policies(**page), 1_000)["data"]
    in_force = next((one for one in published if one["in_force"]), None)
    if in_force is None:
        raise InputUnusable("no version of the policy is in force yet")
    numbers = [
        int(one["number"])
        for one in remote.list(lambda c, page: c.list_policy_proposals(**page), 1_000)["data"]
    ]
    tariffs = remote.ask(lambda c: c.list_tariffs())["data"]
    document = terms.started(
        told_terms.terms_of(in_force),
        next((one for one in tariffs if one["in_force"]), None),
        number=max(numbers, default=0) + 1,
        created=datetime.now(UTC).strftime("%Y-%m-%d"),
        epoch=_earliest(remote, in_force),
    )
    document["proposal"] |= {} if title is None else {"title": title}
    comment = (
        f"Version {in_force['version']}, in force. Change it; then: policy lint, dry-run, propose."
    )
    is_json = file.suffix == ".json"
    text = json.dumps(document, indent=1) if is_json else terms.toml_of(document, comment)
    file.write_text(text, encoding="utf-8")
    told = {"written": str(file), "number": document["proposal"]["number"]}
    told |= {"from_version": in_force["version"], "next": f"tallystick policy lint {file}"}
    remote.tell(told, facts(told))


def _earliest(remote: Remote, in_force: Mapping[str, Any]) -> int:
    """The first epoch that keeps the notice, if the proposal were scheduled now."""
    found = remote.ask(lambda c: c.list_epochs(order="desc", limit=1))["data"]
    newest = int(found[0]["epoch"]) if found else 1
    return newest + 1 + int(in_force["notice_epochs"])


@app.command("review", epilog='Example: tallystick policy review 5 "In Render Team Review"')
@records
def review(
    remote: Remote,
    number: Number,
    stage: Annotated[
        str, typer.Argument(metavar="STAGE", help="Short name of the review's stage.")
    ],
    seen: Seen = None,
) -> None:
    """Open the review of a proposal."""
    tag = _tag(remote, number, seen)
    told = remote.ask(
        lambda c: c.open_policy_review(
            number, {"stage": stage}, if_match=tag, idempotency_key=remote.key
        )
    )
    remote.tell(told, _lines(told))


@app.command("approve", epilog="Example: tallystick policy approve 5 --key me.key")
@records
def approve(
    remote: Remote,
    number: Number,
    signer: KeyFile,
    seen: Seen = None,
    rehearsal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Result of `policy dry-run --json`; your vote signs its SHA-256 too.",
        ),
    ] = None,
) -> None:
    """Approve a proposal with your personal key; what changes is shown first."""
    tag, vote = _signed(remote, number, signer, "yes", seen, rehearsal)
    told = remote.ask(
        lambda c: c.approve_policy_proposal(
            number, {"vote": vote}, if_match=tag, idempotency_key=remote.key
        )
    )
    remote.tell(told, _lines(told))


@app.command("cancel", epilog="Example: tallystick policy cancel 5 --key me.key")
@records
def cancel(remote: Remote, number: Number, signer: KeyFile, seen: Seen = None) -> None:
    """Vote to cancel a scheduled version before its first epoch."""
    tag, vote = _signed(remote, number, signer, "cancel", seen)
    told = remote.ask(
        lambda c: c.cancel_policy_proposal(
            number, {"vote": vote}, if_match=tag, idempotency_key=remote.key
        )
    )
    remote.tell(told, _lines(told))


@app.command("reject", epilog='Example: tallystick policy reject 5 --reason "It sums to 90 %"')
@records
def reject(
    remote: Remote, number: Number, reason: Reason, signer: KeyFile, seen: Seen = None
) -> None:
    """Reject a proposal with your personal key."""
    tag, vote = _signed(remote, number, signer, "no", seen)
    told = remote.ask(
        lambda c: c.reject_policy_proposal(
            number, {"reason": reason, "vote": vote}, if_match=tag, idempotency_key=remote.key
        )
    )
    remote.tell(told, _lines(told))


@app.command("withdraw", epilog='Example: tallystick policy withdraw 5 --reason "Another comes"')
@records
def withdraw(remote: Remote, number: Number, reason: Reason, seen: Seen = None) -> None:
    """Withdraw your own proposal, as long as it is not scheduled."""
    tag = _tag(remote, number, seen)
    told = remote.ask(
        lambda c: c.withdraw_policy_proposal(
            number, {"reason": reason}, if_match=tag, idempotency_key=remote.key
        )
    )
    remote.tell(told, _lines(told))


@app.command("schedule", epilog="Example: tallystick policy schedule 24 --from-epoch 60")
@records
def schedule(
    remote: Remote,
    number: Number,
    from_epoch: Annotated[
        int | None, typer.Option(min=1, help="Default: the earliest that is allowed.")
    ] = None,
    seen: Seen = None,
) -> None:
    """Publish an approved proposal as the next version."""
    tag = _tag(remote, number, seen)
    body: PolicySchedulingRequest = (
        {} if from_epoch is None else {"effective_from_epoch": from_epoch}
    )
    told = remote.ask(
        lambda c: c.schedule_policy_proposal(number, body, if_match=tag, idempotency_key=remote.key)
    )
    remote.tell(told, _lines(told))


def _tag(remote: Remote, number: int, seen: int | None) -> str:
    """The ETag of what was read, or of the proposal as it is now."""
    if seen is None:
        seen = remote.ask(lambda c: c.read_policy_proposal(number))["changes"]
    return f'"v{seen}"'


def _signed(
    remote: Remote,
    number: int,
    signer: Path,
    choice: str,
    seen: int | None,
    rehearsal: Path | None = None,
) -> tuple[str, VoteRequest]:
    """The ETag, and a vote on the document as it is; its terms beside those in force."""
    told = remote.ask(lambda c: c.read_policy_proposal(number))
    published = remote.list(lambda c, page: c.list_policies(**page), 1000)
    in_force = next((one for one in published["data"] if one["in_force"]), None)
    governors = None
    if choice == "cancel":
        governors = remote.ask(lambda c: c.list_governors())["version"]
    document = told["document"]
    before = None if in_force is None else {"terms": told_terms.terms_of(in_force)}
    vote = vote_on(
        told["ballot"],
        signer,
        choice,
        content=document,
        before=before,
        governors=governors,
        rehearsal=rehearsal,
    )
    return f'"v{told["changes"] if seen is None else seen}"', vote


def _lines(told: Mapping[str, Any]) -> list[str]:
    shown = {name: told.get(name) for name in _SHOWN}
    shown["authors"] = ", ".join(told["authors"])
    return facts(shown) + columns(told["history"], ("status", "by", "at", "note"))


# --- dry run ----------------------------------------------------------------------------------


@app.command("dry-run", epilog="Example: tallystick policy dry-run proposal.toml")
def dry_run(
    file: File,
    epochs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of epoch files, else of the data folder."),
    ] = None,
    from_epoch: Annotated[
        int, typer.Option(min=1, metavar="EPOCH", help="Epochs before it keep their policy.")
    ] = 1,
    limit: Annotated[
        int, typer.Option(min=0, max=100_000, help="Number of winners, and of losers, to show.")
    ] = NAMED,
    executor: ExecutorOption = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Settle all past epochs once more under a proposal, and compare to the unit. Changes nothing.

    FILE is a proposal, or JSON like the `policy` of an epoch file. Exit 1 when an invariant does
    not hold, or an epoch file is not what its own cut gives.
    """
    from api.governance import rehearsal

    folder = epochs or in_force(config, data_dir=data_dir).data_dir / "epochs"
    try:
        policy = rehearsal.proposed_policy(document_of(file))
        files = rehearsal.past_files(folder)
        with chosen(executor, files) as work, progress() as step:
            found = rehearsal.run(
                policy,
                files,
                first=from_epoch,
                step=lambda done, of: step("epochs", done, of),
                executor=work,
            )
    except rehearsal.NothingToRehearse as error:
        raise InputUnusable(str(error)) from None
    told = rehearsal.told_of(found, limit)
    tell(told, _rehearsed(told), as_json=as_json)
    if not found.holds:
        raise typer.Exit(EXIT_NO)


def _rehearsed(told: dict[str, Any]) -> list[str]:
    """Totals side by side, then who gains and who loses most, then what does not hold."""
    rows = [
        {"total": name, "was": amount(units), "would_be": amount(told["would_be"][name])}
        for name, units in told["was"].items()
    ]
    lines = columns(rows, ("total", "was", "would_be"))
    for name in ("winners", "losers"):
        if told[name]:
            shown = [{key: _shown(value) for key, value in row.items()} for row in told[name]]
            lines += ["", f"biggest {name}"]
            lines += columns(shown, ("account_id", "was", "would_be", "delta"))
    names = (
        "epochs",
        "first_epoch",
        "last_epoch",
        "accounts_gaining",
        "accounts_losing",
        "stopped",
    )
    lines += ["", *facts({name: told[name] for name in names})]
    if told["kept_emission_plan"]:
        count = len(told["kept_emission_plan"])
        lines.append(f"{count} epochs emit by the plan they had: the proposal plans none for them")
    lines += [f"epoch {one}: its file is not what its cut gives" for one in told["not_reproduced"]]
    lines += [f"epoch {one['epoch']}: {rule}" for one in told["by_epoch"] for rule in one["broken"]]
    end = "nothing would have changed" if told["is_same"] else "rewards would have changed"
    return [*lines, end if told["holds"] else f"{end}; NOT everything holds"]


def _shown(value: Any) -> Any:
    return amount(value) if isinstance(value, dict) else value
