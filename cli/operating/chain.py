"""`tallystick chain`: put the contracts on a chain, and look whether they are as they should be."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.chain.connection import DEPLOYMENT, chain_of, deployment_file, is_address, signer_of
from cli.chain.options import ChainFile, ChainUrl, Deployed, DevKey, Keystore
from cli.settings import ConfigFile, DataDir, in_force, opened
from cli.terminal import AnswerIsNo, AsJson, InputUnusable, columns, facts, group, note, tell
from cli.this_machine import require_database

if TYPE_CHECKING:
    from api.settings import Settings
    from contracts.chain import Chain
    from contracts.deployment import Deployment, Roles, Terms

app = group(
    "chain", "Contracts: deploy them, check roles, caps and balances.", "tallystick chain doctor"
)

ADMIN_DELAY_S = 2 * 86_400
"""Between the appointment of another admin and its power, where the plan names no time."""
WAIT_SECONDS_MAX = 600
GAS_WEI_MIN = 10**16
"""0.01 ETH: tens of transactions of the timers."""

Plan = Annotated[
    Path, typer.Argument(metavar="FILE", help="TOML with the tables [roles] and [terms].")
]


@app.command(epilog="Example: tallystick chain deploy plan.toml --keystore deployer.json")
def deploy(
    plan: Plan,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="New file; default: deployment.json in the data folder."),
    ] = None,
    keystore: Keystore = None,
    dev_key: DevKey = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Deploy the four contracts, grant the roles, and write deployment.json.

    The file holds addresses, hashes of the code, constructor arguments, terms, roles and chain id.
    Not repeatable: a run that stops midway leaves contracts that nothing uses; run it again.
    """
    from contracts import deployment as deployments

    settings = in_force(config, data_dir=data_dir, chain_url=chain_url)
    file = out or settings.data_dir / DEPLOYMENT
    if file.exists():
        raise AnswerIsNo(f"{file} is there: nothing was deployed. Name another file with --out")
    roles, given = _plan(plan)
    with _place(settings, chain_file) as (chain, wait_until):
        signer = signer_of(chain.chain_id, keystore, dev_key)
        terms = _terms(given, chain.chain_id)
        if roles.proposer.lower() == roles.guardian.lower():
            raise InputUnusable("[roles] guardian: one key may not propose and veto")
        if not chain.balance(signer.address):
            raise AnswerIsNo(f"{signer.address} has nothing to pay gas with on this chain")
        made = deployments.deploy_all(chain, signer, roles, terms, wait_until=wait_until)
        file.parent.mkdir(parents=True, exist_ok=True)
        deployments.write(file, made)
    result = {
        "file": str(file),
        "chain_id": str(made.chain_id),
        "block": made.block,
        "contracts": {
            name: {
                "address": made.address(name),
                "code_keccak256": one.code_keccak256,
                "arguments": [json.loads(each) for each in one.arguments],
            }
            for name, one in made.made.items()
        },
    }
    shown = {"file": str(file), "chain_id": str(made.chain_id)}
    tell(result, facts(shown | {n: made.address(n) for n in made.made}), as_json=as_json)
    if roles.admin.lower() != signer.address.lower():
        note(f"Next: {roles.admin} accepts the administration of three contracts after the delay")
    note("Then: `tallystick chain doctor`, and set TALLYSTICK_CHAIN_DEPLOYMENT to the file.")


@app.command(epilog="Example: tallystick chain doctor --json")
def doctor(
    deployment: Deployed = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    ledger: Annotated[
        bool, typer.Option("--ledger/--no-ledger", help="Compare caps with the log's policy too.")
    ] = True,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare the contracts with their file and caps with the policy; look at balances for gas.

    Exit 1 at any difference. Sends nothing, migrates nothing.
    """
    from contracts import deployment as deployments

    settings = in_force(config, data_dir=data_dir, chain_url=chain_url, chain_deployment=deployment)
    deployed = deployments.read(deployment_file(settings))
    with chain_of(settings, chain_file) as chain:
        found = deployments.check_deployment(chain, deployed)
        problems = [
            {"what": each.name, "expected": str(each.expected), "got": str(each.got)}
            for each in found
        ]
        if chain.chain_id == deployed.chain_id:
            problems += _poor(chain, deployed)
    problems += _other_keys(settings, deployed)
    if ledger:
        require_database(settings)
        problems += _caps(config, data_dir, deployed)
    result = {
        "ok": not problems,
        "chain_id": str(deployed.chain_id),
        "contracts": deployed.addresses,
        "problems": problems,
    }
    lines = ["the contracts are as they should be"]
    if problems:
        lines = columns(problems, ("what", "expected", "got"))
    tell(result, lines, as_json=as_json)
    if problems:
        raise AnswerIsNo(f"{len(problems)} thing(s) differ: see docs/howto/operate.md, Chain")


def _poor(chain: Chain, deployed: Deployment) -> list[dict[str, str]]:
    """The roles that send transactions by timer, and cannot pay for them."""
    return [
        {
            "what": f"balance of the {role}",
            "expected": f"{GAS_WEI_MIN} wei or more",
            "got": f"{has} wei",
        }
        for role in ("emitter", "proposer", "oracle")
        if (has := chain.balance(getattr(deployed.roles, role))) < GAS_WEI_MIN
    ]


def _other_keys(settings: Settings, deployed: Deployment) -> list[dict[str, str]]:
    """Keystores of the settings that are not the keys of their roles."""
    folder, found = settings.chain_keystores, []
    for role in ("emitter", "proposer") if folder is not None else ():
        assert folder is not None
        wanted = str(getattr(deployed.roles, role)).lower()
        try:
            told = json.loads((folder / f"{role}.json").read_text())["address"]
            has = "0x" + str(told).lower().removeprefix("0x")
        except (OSError, ValueError, KeyError, TypeError):
            has = "no keystore"
        if has != wanted:
            found.append({"what": f"keystore {role}.json", "expected": wanted, "got": has})
    return found


def _caps(config: Path | None, data_dir: Path | None, deployed: Deployment) -> list[dict[str, str]]:
    """The first epoch of which the policy emits more than the contract lets be minted."""
    from api.chain.side import first_over_cap
    from domain.epochs.policy import NETWORK

    with opened(config, data_dir=data_dir, read_only=True) as service:
        published = service.ledger.market.state_of(NETWORK).published
    found = first_over_cap(published[-1], deployed.terms) if published else None
    if found is None:
        return []
    epoch, units, cap = found
    expected = f"{units} units or more, by the policy"
    return [{"what": f"cap of epoch {epoch}", "expected": expected, "got": str(cap)}]


def _plan(file: Path) -> tuple[Roles, dict[str, Any]]:
    """Roles and terms of the file. Raises InputUnusable naming the table and the field."""
    from contracts.deployment import Roles

    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputUnusable(f"{file}: {error}") from None
    roles, terms = told.get("roles", {}), told.get("terms", {})
    names = {each.name for each in fields(Roles)}
    if set(roles) != names:
        differ = min(set(roles) ^ names)
        raise InputUnusable(f"{file}: [roles] needs {', '.join(sorted(names))}; look at {differ}")
    for name, address in roles.items():
        if not is_address(str(address)):
            raise InputUnusable(f"{file}: [roles] {name} is no address: 0x and 40 hex digits")
    return Roles(**roles), terms


def _terms(given: dict[str, Any], chain_id: int) -> Terms:
    from contracts.chain_ids import DEVNET_CHAIN_IDS
    from contracts.deployment import Terms

    told = {"admin_delay_s": ADMIN_DELAY_S, **given}
    names = {each.name for each in fields(Terms)}
    unknown, caps = sorted(set(told) - names), told.get("period_caps")
    if unknown:
        raise InputUnusable(f"[terms] does not know {unknown[0]}")
    if not isinstance(caps, list) or not caps:
        raise InputUnusable("[terms] period_caps: a list of what each period may mint, in units")
    numbers = [(name, value) for name, value in told.items() if name != "period_caps"]
    for name, value in [*numbers, *(("period_caps", cap) for cap in caps)]:
        if type(value) is not int or value < 0:
            raise InputUnusable(f"[terms] {name}: a whole number of 0 or more")
    if told["admin_delay_s"] == 0 and chain_id not in DEVNET_CHAIN_IDS:
        raise InputUnusable(
            "[terms] admin_delay_s: 0 lets a stolen admin key act at once; give a day or more"
        )
    try:
        return Terms(**{**told, "period_caps": tuple(caps)})
    except TypeError as error:
        raise InputUnusable(f"[terms]: {error}") from None


@contextmanager
def _place(
    settings: Settings, file: Path | None
) -> Generator[tuple[Chain, Callable[[int], None]], None, None]:
    """The chain, and how a block of a time is waited for. An embedded chain is made if need be."""
    from contracts.chain import Chain
    from contracts.devnet import Devnet

    if file is not None:
        with Devnet(file) as devnet:
            yield Chain(devnet.w3), devnet.travel_to
        return
    if settings.chain_url is None:
        raise InputUnusable("which chain? give --chain-url of a node, or --chain-file to try")
    chain = Chain.http(settings.chain_url)

    def wait(moment_s: int) -> None:
        ends = time.monotonic() + WAIT_SECONDS_MAX
        while chain.head().time_s < moment_s:
            if time.monotonic() > ends:
                raise AnswerIsNo("the chain made no block in time: look at the node, run it again")
            time.sleep(1)

    yield chain, wait
