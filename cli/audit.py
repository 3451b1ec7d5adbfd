"""`tallystick audit`: take the log out, check it without a server, prove one event.

Only wiring: what is checked is said in `ledger/bundle/verify.py`, `ledger/tree/proof.py` and
`api/audit/replay.py`. `replay`, and `verify` of a folder or a proof file, need no database and no
network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.checking import line_proof
from cli.checking.executors import ExecutorOption, GoOnOption, chosen, marks_in, report_files
from cli.checking.log_key import verifier_key_of
from cli.remote import ApiKey, Remote, Url, reads
from cli.settings import ConfigFile, DataDir, in_force, opened
from cli.terminal import (
    EXIT_NO,
    AnswerIsNo,
    AsJson,
    InputUnusable,
    amount,
    columns,
    facts,
    group,
    note,
    progress,
    tell,
)
from cli.this_machine import database

if TYPE_CHECKING:
    from api.process.service import Service
    from api.settings import Settings
    from ledger.bundle.verify import VerifyReport
    from ledger.tree.checkpoint import VerifierKey

LANE_MAX = 63
KEY_HELP = "The log's key: itself, a file with it or with the answer of its route, or a server."
NO_KEY = (
    "a proof is checked against the log's key: give --key with the key, a file that has it, or the"
    " address of the server (`--key https://the.server`)"
)

app = group(
    "audit",
    "Export the log, verify or load an export, prove one event.",
    "tallystick audit verify bundle",
)


@app.command(epilog="Example: tallystick audit export bundle")
def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="New folder for the bundle.")],
    last: Annotated[
        int | None, typer.Option(min=1, help="Export under the last signed head up to this fact.")
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write both logs under one signed head into a new folder.

    Reads this machine's data. Where no server runs, the present head is signed first; where a
    server runs, its last signed head is used.
    """
    from ledger.bundle.export import export_bundle, read_epoch_files

    if directory.exists():
        raise InputUnusable(f"{directory} is there already: name a new folder")
    with opened(config, data_dir=data_dir) as service:
        _sign_head(service)
        data_dir = service.settings.data_dir
        made = export_bundle(
            service.conninfo,
            directory,
            _log_key(service),
            _code_version(),
            last=last,
            epochs=read_epoch_files(data_dir / "epochs"),
            payouts=read_epoch_files(data_dir / "payouts"),
            clients=read_epoch_files(data_dir / "epochs", ".clients.json"),
        )
        key = str(_log_key(service))
    result = {
        "directory": str(directory),
        "origin": made.checkpoint.origin,
        "facts": made.facts,
        "reports": made.reports,
        "cut_position": made.cut_position,
        "root": made.checkpoint.root.hex(),
        "files": len(made.files),
        "log_key": key,
    }
    lines = facts(result)
    tell(result, [*lines, f"Check it: tallystick audit verify {directory}"], as_json=as_json)


@app.command(epilog="Example: tallystick audit verify bundle --root checkpoint.txt")
def verify(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DIR|FILE|URL",
            help="Folder of an export, proof of `audit prove` or `statement line`, or server.",
        ),
    ],
    root: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A head from another source.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY|FILE|URL", help=KEY_HELP)] = None,
    executor: ExecutorOption = None,
    go_on: GoOnOption = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Recompute an export, or check the proof of a fact, a report or a line of a bill, offline.

    Exit 1 when anything differs. Give `--key` and `--root` from another source: without them a
    complete false history with another signature would verify. Of a server only its last signed
    head is checked and, with an API key that can read it, that the newest fact is under it.
    """
    key = None if key is None else verifier_key_of(key)
    if what.startswith(("http://", "https://")):
        _check_server(Remote(what, api_key), root, key, as_json=as_json)
        return
    path = Path(what)
    if path.is_dir():
        report = _verified(path, root, key, executor, go_on)
        tell(_told(report), str(report).split("\n"), as_json=as_json)
        if not report.ok:
            raise typer.Exit(EXIT_NO)
    elif path.is_file():
        line = line_proof.read(path)
        if line is None:
            _check_proof(path, key, as_json=as_json)
        else:
            _check_line(line, key, as_json=as_json)
    else:
        raise InputUnusable(f"{path} is not there: give the folder of an export or a proof file")


@app.command(epilog="Example: tallystick audit load bundle --data-dir copy --root checkpoint.txt")
def load(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an export.")],
    root: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A head from another source.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY|FILE|URL", help=KEY_HELP)] = None,
    executor: ExecutorOption = None,
    go_on: GoOnOption = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Verify an export, then compute every view from it in an empty data folder of your own.

    What is loaded is a copy: `tallystick serve --read-only` answers from it, and nothing is
    recorded, signed or paid with it. Run the command again after a stop, or with a later export of
    the same log: it adds what is missing. Exit 1 at any difference; the first one is named with the
    position of its fact or report. `--executor` and `--go-on` are for the verification.
    """
    from api.audit.loading import load_bundle, require_folder
    from api.process.embedded_postgres import make_data_dir

    if not directory.is_dir():
        raise InputUnusable(f"{directory} is not there: give the folder of an export")
    settings = in_force(config, data_dir=data_dir)
    if settings.read_only or settings.lanes.elsewhere():
        raise InputUnusable(
            "a copy is loaded into one database that can be written: unset TALLYSTICK_READ_ONLY and"
            " TALLYSTICK_USAGE_LANES"
        )
    key = None if key is None else verifier_key_of(key)
    report = _verified(directory, root, key, executor, go_on)
    if not report.ok:
        tell({"loaded": False, **_told(report)}, str(report).split("\n"), as_json=as_json)
        raise typer.Exit(EXIT_NO)
    require_folder(settings.data_dir)
    make_data_dir(settings.data_dir)
    with database(settings, make=True) as conninfo, progress() as step:
        loaded, auditor_key = load_bundle(conninfo, settings.data_dir, directory, report, step)
    told = {
        "loaded": True,
        "origin": loaded.checkpoint.origin,
        "facts": loaded.facts,
        "facts_before": loaded.facts_before,
        "reports": loaded.reports,
        "reports_before": loaded.reports_before,
        "root": loaded.checkpoint.root.hex(),
        "log_key": loaded.log_key,
        "key_given": report.key_given,
        "checked_against_published_root": report.against is not None,
        "times_signed": False,
        "times_sha256": loaded.times_sha256,
        "data_dir": str(settings.data_dir),
        "auditor_key": str(auditor_key),
    }
    lines = facts(told)
    tell(told, [*lines, f"Answer from it: {_serving(settings)}"], as_json=as_json)


def _serving(settings: Settings) -> str:
    where = "" if settings.database_url else f" --data-dir {settings.data_dir}"
    return f"tallystick serve --read-only{where}"


def _verified(
    bundle: Path, root: Path | None, key: str | None, executor: str | None, go_on: Path | None
) -> VerifyReport:
    from ledger.bundle.verify import verify_bundle

    marks, signer = marks_in(go_on), _wallet_signer()
    with chosen(executor, report_files(bundle)) as work, progress() as step:
        return verify_bundle(bundle, root, key, signer, executor=work, step=step, marks=marks)


@app.command(epilog="Example: tallystick audit replay bundle --root checkpoint.txt")
def replay(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an export.")],
    root: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A head from another source.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY|FILE|URL", help=KEY_HELP)] = None,
    executor: ExecutorOption = None,
    go_on: GoOnOption = None,
    as_json: AsJson = False,
) -> None:
    """Verify an export, then settle its epochs again and build their payout roots again.

    Needs neither server nor database nor network. Exit 1 at any difference; the first one is named
    with the position of its fact. The command does not derive the nodes of an epoch file from the
    reports in the log again.
    """
    from api.audit.replay import replay_bundle

    if not directory.is_dir():
        raise InputUnusable(f"{directory} is not there: give the folder of an export")
    key = None if key is None else verifier_key_of(key)
    marks = marks_in(go_on)
    with chosen(executor, report_files(directory)) as work, progress() as step:
        found = replay_bundle(directory, root, key, executor=work, step=step, marks=marks)
    told: dict[str, Any] = {
        "replayed": found.ok,
        "verified": found.verified.ok,
        "facts": found.verified.facts,
        "reports_walked_before": found.verified.walked_before,
        "epochs": found.epochs,
        "payout_roots": found.roots,
        "accounts": found.accounts,
        "result_root": found.result_root,
        "code_version": _code_version(),
        "first_difference": None if found.first is None else str(found.first),
        "problems": [str(problem) for problem in (*found.verified.problems, *found.problems)],
    }
    lines = facts({name: value for name, value in told.items() if name != "problems"})
    tell(told, [*lines, *told["problems"]], as_json=as_json)
    if not found.ok:
        raise typer.Exit(EXIT_NO)


@app.command(epilog="Example: tallystick audit prove 12/3 --out report.tlog-proof")
def prove(
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help="A fact's position, or a report's LANE/POSITION.")
    ],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the proof here.")] = None,
    check: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write nothing: check that this file proves EVENT."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY|FILE|URL", help="The log's key, for --check.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write the receipt of one fact or one usage report, which anyone can check offline.

    Reads this machine's data, or with `--url` a server. Without `--out` the proof itself is the
    output. `--check` needs neither: it is `audit verify FILE`, and exit 1 too when the file proves
    another event.
    """
    first, second = _event(event)
    if check is not None:
        if out is not None:
            raise InputUnusable("--check or --out: one of them")
        if not check.is_file():
            raise InputUnusable(f"{check} is not there: give a proof file")
        key = None if key is None else verifier_key_of(key)
        _check_proof(check, key, as_json=as_json, event=(first, second))
        return
    if key is not None:
        raise InputUnusable("--key is for --check: a proof is written under the log's own key")
    if url is None:
        key, text = _prove_here(event, config, data_dir)
    else:
        remote = Remote(url, api_key)
        key = remote.ask(lambda c: c.read_log_key())["verifier_key"]
        if second is None:
            text = remote.ask(lambda c: c.read_proof(first))
        else:
            text = remote.ask(lambda c: c.read_usage_proof(first, second))
    if out is not None:
        out.write_text(text, encoding="utf-8")
        note(f"written; check it: tallystick audit verify {out} --key '{key}'")
    shown = [] if out is not None else text.rstrip("\n").split("\n")
    tell({"event": event, "log_key": key, "proof": text}, shown, as_json=as_json)


def _event(text: str) -> tuple[int, int | None]:
    """A position of the market log, or a lane and a position in it. Raises InputUnusable."""
    form = re.fullmatch(r"([0-9]{1,15})(?:/([0-9]{1,15}))?", text)
    if form is None or (form[2] is not None and int(form[1]) > LANE_MAX):
        raise InputUnusable(
            f"EVENT {text!r}: needed a position like 42, or a lane and position like 12/3"
        )
    return int(form[1]), None if form[2] is None else int(form[2])


def _prove_here(event: str, config: Path | None, data_dir: Path | None) -> tuple[str, str]:
    from ledger.tree.prove import prove as prove_event

    with opened(config, data_dir=data_dir) as service:
        return str(_log_key(service)), prove_event(service.conninfo, event)


def _sign_head(service: Service) -> None:
    """Sign the present head, unless a running server holds the signer: then it does that."""
    if service.settings.read_only:
        return
    from ledger.tree import trees

    with service.connect() as connection:
        trees.follow_all(connection)
        if trees.head(connection).size:
            with suppress(BlockingIOError):
                trees.publish_checkpoint(connection, service.signer, service.clock.now_us())


def _log_key(service: Service) -> VerifierKey:
    from ledger.tree.checkpoint import parse_verifier_key

    return parse_verifier_key(service.verifier_key)


def _code_version() -> str:
    from importlib.metadata import version

    return version("tallystick")


def _told(report: VerifyReport) -> dict[str, Any]:
    first = report.first_bad
    told: dict[str, Any] = {
        "verified": report.ok,
        "facts": report.facts,
        "reports": report.reports,
        "reports_walked_before": report.walked_before,
        "nodes": report.nodes,
        "pins": report.pins,
        "resource_charges": report.charges,
        "resource_charges_unread": report.charges_unread,
        "key_given": report.key_given,
        "checked_against_published_root": report.against is not None,
        "digest": report.digest,
        "problems": [str(problem) for problem in report.problems],
    }
    if report.checkpoint is not None:
        told |= {"origin": report.checkpoint.origin, "root": report.checkpoint.root.hex()}
    if first is not None:
        told["first_bad"] = {"where": first.where, "position": first.position, "what": first.what}
    return told


def _check_server(remote: Remote, root: Path | None, given: str | None, *, as_json: bool) -> None:
    """The last signed head, against the key, a head kept before, and the newest fact."""
    from ledger.tree.checkpoint import NoteInvalid, parse_checkpoint, parse_verifier_key
    from ledger.tree.log_keys import Rotation, open_by_any
    from ledger.tree.proof import ProofInvalid, check

    answer = remote.ask(lambda c: c.read_log_key())
    key = parse_verifier_key(answer["verifier_key"] if given is None else given)
    rotations = [Rotation.of(int(one["position"]), one["fact"]) for one in answer["rotations"]]
    told: dict[str, Any] = {"key_given": given is not None, "newest_fact_checked": False}
    problems: list[str] = []
    try:
        head, signed_by = open_by_any(remote.ask(lambda c: c.read_checkpoint()), key, rotations)
        told |= {"origin": head.origin, "facts": head.size, "root": head.root.hex()}
        if root is not None:
            text = root.read_text(encoding="utf-8")
            is_note = "\n\n" in text
            kept = open_by_any(text, key, rotations)[0] if is_note else parse_checkpoint(text)
            same_root = head.size != kept.size or head.root == kept.root
            if kept.origin != head.origin or head.size < kept.size or not same_root:
                problems.append(f"not a later head than the one kept, of {kept.size} facts")
        newest = _newest_proof(remote, head.size) if remote.has_key else None
        if newest is not None:
            check(newest, signed_by)
            told["newest_fact_checked"] = True
    except (NoteInvalid, ProofInvalid) as invalid:
        problems.append(str(invalid))
    told = {"verified": not problems, **told, "problems": problems}
    tell(told, facts(told), as_json=as_json)
    if problems:
        raise typer.Exit(EXIT_NO)


def _newest_proof(remote: Remote, size: int) -> str | None:
    """The proof of the newest fact; None for a key that may not read it, such as a renter's."""
    try:
        return remote.ask(lambda c: c.read_proof(size))
    except AnswerIsNo as no:
        if (no.document or {}).get("code") not in ("not_found", "scope_missing"):
            raise
        note("the newest fact is not one of yours: its proof was not asked for")
        return None


def _check_line(line: dict[str, Any], key: str | None, *, as_json: bool) -> None:
    """A line of a bill with its reports. Exit 1 when something does not hold."""
    from ledger.tree.checkpoint import parse_verifier_key
    from ledger.tree.proof import ProofInvalid

    if key is None:
        raise InputUnusable(NO_KEY)
    try:
        found = line_proof.check_line(line, parse_verifier_key(key))
    except ProofInvalid as invalid:
        said = {"verified": False, "problems": [str(invalid)]}
        tell(said, [f"NOT VERIFIED: {invalid}"], as_json=as_json)
        raise typer.Exit(EXIT_NO) from None
    told: dict[str, Any] = {
        "verified": True,
        "origin": found.fact.checkpoint.origin,
        "facts": found.fact.checkpoint.size,
        "position": found.fact.position,
        "name": found.fact.entry.name,
        "lease_id": found.lease_id,
        "reports": len(found.reports),
        "billed_gpu_us": str(found.billed_us),
        "signed_gpu_us": str(found.signed_us),
    }
    lines = [str(found.fact), *map(str, found.reports), *facts(told)]
    tell(told, [*lines, "verified"], as_json=as_json)


def _check_proof(
    path: Path, key: str | None, *, as_json: bool, event: tuple[int, int | None] | None = None
) -> None:
    """One proof file, of this event if one is named. Exit 1 when it does not prove it."""
    from ledger.tree.checkpoint import parse_verifier_key
    from ledger.tree.proof import ProofInvalid, check

    if key is None:
        raise InputUnusable(NO_KEY)
    try:
        checked = check(path.read_text(encoding="utf-8"), parse_verifier_key(key))
        report = checked.report
        proved = (checked.position, None) if report is None else (report.lane, report.position)
        if event not in (None, proved):
            raise ProofInvalid(f"this proves another event: {checked}")
    except (ProofInvalid, UnicodeDecodeError) as invalid:
        said = {"verified": False, "problems": [str(invalid)]}
        tell(said, [f"NOT VERIFIED: {invalid}"], as_json=as_json)
        raise typer.Exit(EXIT_NO) from None
    told: dict[str, Any] = {
        "verified": True,
        "origin": checked.checkpoint.origin,
        "facts": checked.checkpoint.size,
        "position": checked.position,
        "name": checked.entry.name,
    }
    if checked.report is not None:
        told |= {"node_id": checked.report.node_id, "node_seq": checked.report.node_seq}
    tell(told, [str(checked), "verified"], as_json=as_json)


def _wallet_signer() -> Callable[[str, str], str | None] | None:
    """Who signed a text with a wallet; None where the libraries of the server are not installed."""
    try:
        from contracts.wallet_challenge import SignatureInvalid, signer_of
    except ModuleNotFoundError:
        return None

    def signer(text: str, signature: str) -> str | None:
        with suppress(SignatureInvalid):
            return signer_of(text, signature)
        return None

    return signer


@app.command(epilog="Example: tallystick audit solvency")
@reads
def solvency(remote: Remote) -> None:
    """Show what the network holds, and whose it is, by kind of account. Needs no key."""
    told = remote.ask(lambda c: c.read_solvency())
    rows = [{**one, "amount": amount(one["amount"])} for one in told["data"]]
    is_even = "held equals claimed" if told["balanced"] else "HELD AND CLAIMED DIFFER"
    remote.tell(told, [*columns(rows, ("side", "kind", "amount")), is_even])
