"""The main job on embedded parts: one GPU-second from a signed report to a claimed token.

Real: PostgreSQL, the EVM and its contracts, the REST API over HTTP, the node reporter with its
spool and signatures, every rule, the books, settlement, payout and the offline audit. Simulated:
the clock, and the GPUs. One renter burns tokens for credits and one pays cash; holdback is zero.
Nobody challenges the devices here, so no time counts as available and that pool is carried on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from api.audit.replay import replay_bundle
from api.chain.reconcile import reconcile
from api.chain.side import CHAIN_FILE, DEPLOYMENT_FILE
from api.chain.timer import ChainJobs, account_ref, payout_path
from api.door.keys import digest, key_id, new
from api.epochs.closing import epoch_state
from api.main import create_app
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings
from api.timers import Timers
from contracts import deployment as deployments
from contracts import manifest, payout_scripts
from contracts.abi import ContractRefused
from contracts.chain import Chain
from contracts.deployment import Deployment, Roles, Terms, deploy_all
from contracts.devnet import Devnet
from contracts.outbox import FileStore, Outbox
from contracts.signers import LocalKeySigner
from contracts.tally import TOKEN_UNIT, PriceQuote, Tally
from domain.duration import HOUR_US, MINUTE_US, SECOND_US
from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.epochs.reward_terms import REWARD_TERMS
from domain.money import token
from domain.parties.account import WALLET_DELAY_US, BootstrapOperator
from domain.prices.tariff import CLOUDBENDER, publish
from domain.stream import derive_id
from ledger.bundle.export import export_bundle, read_epoch_files
from ledger.log.usage_reads import stored_count
from ledger.tree.checkpoint import parse_verifier_key
from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.gpus.simulated import SimulatedGpus
from node_reporter.identity import key_id as node_key_id
from node_reporter.identity import make_key, public_key
from node_reporter.machine.inventory import specs
from node_reporter.reports.client import HttpTransport
from node_reporter.reports.joining import join
from node_reporter.reports.reports import AGENT
from projections import tables

START_US = 1_795_392_000_000_000  # 2026-11-23T00:00:00Z, a Monday
EPOCH_US = 24 * HOUR_US
TIMELOCK_S = 2 * 86_400
EMISSION_UNITS = 1_000 * TOKEN_UNIT
"""What an epoch emits: 1,000 TOKEN."""
PRICE_MICRO_USD = 2_000_000
BURNED_UNITS = 30 * TOKEN_UNIT
CASH_UNITS = 40_000_000
SERVER_START_SECONDS_MAX = 20.0

Progress = Callable[[str], None]
Wait = Callable[[str, dict[str, str], dict[str, Any]], None]
_ROLES = {
    "owner-cash": "owner of a GPU, paid in credits",
    "owner-burn": "owner of a GPU, paid in TOKEN",
    "cash": "renter who pays cash",
    "burn": "renter who burns TOKEN for credits",
}


@dataclass(slots=True)
class Party:
    """Somebody with an account, an API key and perhaps a wallet."""

    name: str
    account_id: str
    api_key: str
    wallet: LocalKeySigner | None = None


@dataclass(slots=True)
class Machine:
    """One simulated GPU host with its real reporter."""

    node_id: str
    node_key: str
    reporter: Reporter
    clock: SteppedClock


@dataclass(slots=True)
class Web:
    """The REST API as a client sees it; every POST carries a key of its own."""

    client: httpx.Client
    calls: int = 0

    def post(self, api_key: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        headers = {"Authorization": f"Bearer {api_key}", "Idempotency-Key": f"demo-{self.calls}"}
        return self._told(self.client.post(path, json=body, headers=headers))

    def get(self, api_key: str, path: str) -> dict[str, Any]:
        return self._told(self.client.get(path, headers={"Authorization": f"Bearer {api_key}"}))

    def _told(self, answer: httpx.Response) -> dict[str, Any]:
        assert answer.is_success, f"{answer.request.method} {answer.request.url}: {answer.text}"
        told: dict[str, Any] = answer.json()
        return told


@dataclass(slots=True)
class Stage:
    """Everything the demo runs on."""

    service: Service
    clock: SimulatedClock
    web: Web
    url: str
    devnet: Devnet
    tally: Tally
    keys: dict[str, LocalKeySigner]
    chain_jobs: ChainJobs
    data_dir: Path
    progress: Progress
    operator_key: str = ""
    machines: list[Machine] = field(default_factory=list)

    def advance_to(self, at_us: int) -> None:
        """Move the server's clock, and with it the chain's."""
        self.clock.move_to(at_us)
        self.devnet.travel_to(at_us // SECOND_US)


def run(data_dir: Path, progress: Progress, *, wait: Wait | None = None) -> dict[str, Any]:
    """Run the demo in an empty folder; returns the document of `tallystick demo --json`.

    `wait` is called with the API's address, the keys of operator, owners and renters, and the
    document at the end, while everything still runs, the console too.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        stage = _set_up(data_dir, progress, stack, with_console=wait is not None)
        parties = _found(stage, stack)
        leases = _lease(stage, parties)
        _serve_leases(stage, leases)
        _settle_epoch(stage)
        claimed = _pay(stage, parties)
        result = _result(stage, parties, leases, claimed)
        result["seconds"] = round(time.monotonic() - started, 1)
        if wait is not None:
            named = {_ROLES[name]: party.api_key for name, party in parties.items()}
            wait(stage.url, {"operator": stage.operator_key, **named}, result)
    return result


# --- setting up --------------------------------------------------------------------------------


def _set_up(data_dir: Path, progress: Progress, stack: ExitStack, *, with_console: bool) -> Stage:
    progress("starting PostgreSQL")
    clock = SimulatedClock(START_US)
    settings = Settings(
        data_dir=data_dir,
        environment="development",
        spec_ttl_s=0,  # its hours pass in a moment
        requests_per_second=10_000,
        requests_burst=10_000,
        reports_per_second=1_000,
        reports_burst=10_000,
    )
    service = stack.enter_context(Service.open(settings, clock=clock))
    progress("starting the chain and deploying the contracts")
    devnet = stack.enter_context(
        Devnet(data_dir / CHAIN_FILE, clock=lambda: clock.now_us() // SECOND_US)
    )
    keys = _keys(devnet)
    chain = Chain(devnet.w3)
    deployment = _deploy(chain, devnet, keys)
    deployments.write(data_dir / DEPLOYMENT_FILE, deployment)
    tally = Tally(chain, deployment)
    chain_jobs = ChainJobs(
        service.ledger,
        service.connect,
        tally,
        data_dir=data_dir,
        emitter=keys["emitter"],
        proposer=keys["proposer"],
        treasury=keys["treasury"].address,
    )
    stack.callback(chain_jobs.close)
    progress("starting the REST API")
    url = stack.enter_context(serving(service, with_console=with_console))
    client = stack.enter_context(httpx.Client(base_url=url, timeout=30))
    return Stage(
        service, clock, Web(client), url, devnet, tally, keys, chain_jobs, data_dir, progress
    )


def _keys(devnet: Devnet) -> dict[str, LocalKeySigner]:
    """One key for each role; public test keys, which no other chain accepts."""
    names = (
        "admin",
        "guardian",
        "emitter",
        "proposer",
        "oracle",
        "treasury",
        "renter",
        "owner",
        "relay",
    )
    return {
        name: LocalKeySigner(key, devnet.chain_id)
        for name, key in zip(names, devnet.keys, strict=False)
    }


def _deploy(chain: Chain, devnet: Devnet, keys: dict[str, LocalKeySigner]) -> Deployment:
    roles = Roles(
        admin=keys["admin"].address,
        guardian=keys["guardian"].address,
        emitter=keys["emitter"].address,
        proposer=keys["proposer"].address,
        oracle_admin=keys["admin"].address,
        oracle=keys["oracle"].address,
    )
    terms = Terms(
        genesis_s=START_US // SECOND_US,
        epoch_length_s=EPOCH_US // SECOND_US,
        timelock_s=TIMELOCK_S,
        epochs_per_period=365,
        period_caps=(EMISSION_UNITS,),
        recycle_cap=0,
        genesis_supply=1_000_000 * TOKEN_UNIT,
        anchor_price=PRICE_MICRO_USD,
    )
    return deploy_all(chain, keys["admin"], roles, terms, wait_until=devnet.travel_to)


@contextmanager
def serving(service: Service, *, with_console: bool = False) -> Iterator[str]:
    """The API on a free port of this machine, in a thread of its own."""
    config = uvicorn.Config(
        create_app(service, with_console=with_console),
        host="127.0.0.1",
        port=0,
        log_level="warning",
        access_log=False,
        ws="none",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="api", daemon=True)
    thread.start()
    ends = time.monotonic() + SERVER_START_SECONDS_MAX
    while not server.started:
        assert thread.is_alive(), "the API did not start"
        assert time.monotonic() < ends, "the API did not start in time"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


# --- the market --------------------------------------------------------------------------------


def _found(stage: Stage, stack: ExitStack) -> dict[str, Party]:
    """Operator, terms, two owners with a node each, and two renters with money."""
    stage.progress("founding the market: operator, tariff, policy, epoch 1")
    stage.operator_key = _bootstrap(stage)
    parties = {
        name: _open_account(stage, name) for name in ("owner-cash", "owner-burn", "cash", "burn")
    }
    parties["owner-burn"].wallet = stage.keys["owner"]
    parties["burn"].wallet = stage.keys["renter"]
    _link_wallet(stage, parties["owner-burn"])
    stage.progress("two owners join a node of two simulated H200 each")
    for name, settlement, price in (
        ("owner-cash", "cash", "2780000"),
        ("owner-burn", "burn", "2500000"),
    ):
        stage.machines.append(_join(stage, parties[name], settlement, price, stack))
    stage.progress("one renter pays cash, one burns tokens for credits")
    stage.web.post(
        stage.operator_key,
        f"/v1/accounts/{parties['cash'].account_id}/deposits",
        {
            "source": "cash",
            "amount": {"asset": "CREDIT", "units": str(CASH_UNITS)},
            "reference": "bank-transfer-1",
        },
    )
    _burn(stage, parties["burn"])
    return parties


def _bootstrap(stage: Stage) -> str:
    """The first operator, and the terms of this network."""
    operator_key, at_us = new(live=False), stage.clock.now_us()
    public_id = key_id(operator_key)
    assert public_id is not None
    stage.service.ledger.handle(
        [
            BootstrapOperator(
                account_id=derive_id("acct", "demo", "operator"),
                member_id=derive_id("member", "demo", "operator"),
                key_id=public_id,
                key_sha256=digest(operator_key),
                at_us=at_us,
                environment=stage.service.settings.environment,
            ),
            publish(CLOUDBENDER, version=1, effective_from_us=at_us, by="operator", at_us=at_us),
            PublishPolicy(
                version=1,
                epoch_length_us=EPOCH_US,
                segments=(EmissionSegment(1, 365, 365 * EMISSION_UNITS),),
                hard_cap=token(365 * EMISSION_UNITS),
                compute_ppm=700_000,
                availability_ppm=200_000,
                treasury_ppm=100_000,
                compute_base="burned_value",
                holdback_epochs=0,
                effective_from_epoch=1,
                by="operator",
                at_us=at_us,
                rewards=REWARD_TERMS,
            ),
            OpenEpoch(epoch=1, start_us=START_US, at_us=at_us),
        ],
        key=None,
        now_us=at_us,
    )
    stage.service.keys_changed()
    return operator_key


def _open_account(stage: Stage, name: str) -> Party:
    told = stage.web.post(stage.operator_key, "/v1/accounts", {"kind": "party"})
    return Party(name, told["account_id"], told["key"])


def _link_wallet(stage: Stage, party: Party) -> None:
    assert party.wallet is not None
    path = f"/v1/accounts/{party.account_id}/wallets"
    asked = stage.web.post(
        party.api_key, f"{path}/challenge", {"address": party.wallet.address.lower()}
    )
    signature = "0x" + party.wallet.sign_text(asked["message"]).hex()
    stage.web.post(party.api_key, path, {"nonce": asked["nonce"], "signature": signature})


def _join(stage: Stage, owner: Party, settlement: str, price: str, stack: ExitStack) -> Machine:
    """Provider, region, join code, key confirmed by its fingerprint, admitted, active, on offer."""
    web, folder = stage.web, stage.data_dir / "nodes" / owner.name
    folder.mkdir(parents=True)
    provider = web.post(
        owner.api_key, "/v1/providers", {"kind": "physical", "payment_mode": "credits"}
    )["provider_id"]
    region = web.post(
        owner.api_key,
        "/v1/regions",
        {
            "provider_id": provider,
            "name": owner.name,
            "storage_mode": "local",
            "setting": "datacenter",
            "admission": "operator",
            "allow_public_jobs": True,
        },
    )["region_id"]
    code = web.post(owner.api_key, "/v1/nodes/join-codes", {"region_id": region})["code"]
    key, transport = make_key(folder / "node.key"), HttpTransport(stage.url)
    stack.callback(transport.close)
    clock = SteppedClock(wall_us=stage.clock.now_us())
    gpus = SimulatedGpus(clock, count=2, seed=owner.name)
    inventory = specs(gpus.inventory(), gpus.vendor)
    joined = join(transport, code, key, inventory, agent=AGENT)
    node = f"/v1/nodes/{joined.node_id}"
    web.post(owner.api_key, f"{node}/confirm", {"key_id": node_key_id(public_key(key))})
    web.post(stage.operator_key, f"{node}/admit", {})
    web.post(owner.api_key, f"{node}/activate", {})
    web.post(
        owner.api_key,
        "/v1/offers",
        {
            "provider_id": provider,
            "node_id": joined.node_id,
            "settlement": settlement,
            "price_per_gpu_hour": {"asset": "CREDIT", "units": price},
            "fractions": True,
        },
    )
    reporter = Reporter(
        joined.node_id,
        key,
        gpus,
        clock,
        folder / "spool.sqlite",
        transport,
        node_key=joined.node_key,
        tick_us=MINUTE_US,
        interval_us=10 * MINUTE_US,
        draw=lambda low, _high: low,
    )
    stack.callback(reporter.close)
    return Machine(joined.node_id, joined.node_key, reporter, clock)


def _burn(stage: Stage, renter: Party) -> None:
    """Tokens destroyed on chain at the oracle's price become credits once the burn is final."""
    assert renter.wallet is not None
    tally, chain, now_s = stage.tally, stage.tally.chain, stage.tally.chain.head().time_s
    chain.execute(stage.keys["admin"], tally.transfer(renter.wallet.address, BURNED_UNITS))
    chain.execute(renter.wallet, tally.approve(BURNED_UNITS))
    quote = PriceQuote(1, now_s - 5, now_s + 300, PRICE_MICRO_USD)
    signed = tally.sign_quote(stage.keys["oracle"], quote)
    reference = account_ref(renter.account_id)
    chain.execute(
        renter.wallet, tally.burn_for_credits(BURNED_UNITS, signed, account_ref=reference)
    )
    stage.chain_jobs.step(stage.clock.now_us())


# --- using it ----------------------------------------------------------------------------------


def _lease(stage: Stage, parties: dict[str, Party]) -> list[str]:
    """Three leases: a whole GPU for 2.5 h, 0.37 of one for 1 h, and two burned ones for 3 h."""
    stage.progress("leasing a whole GPU, 0.37 of one, and two paid with burned credits")
    wanted = (
        ("cash", 1, 1_000_000, 9_000, "2780000"),
        ("cash", 1, 370_000, 3_600, "2780000"),
        ("burn", 2, 1_000_000, 10_800, "2500000"),
    )
    leases = []
    for renter, gpus, share_ppm, seconds, cap in wanted:
        told = stage.web.post(
            parties[renter].api_key,
            "/v1/leases",
            {
                "job": {
                    "kind": "batch",
                    "command": ["python", "train.py"],
                    "gpu_count": gpus,
                    "share_ppm": share_ppm,
                    "mem_ppm": share_ppm,
                    "models": [],
                    "max_price_per_gpu_hour": {"asset": "CREDIT", "units": cap},
                    "project_id": "demo",
                },
                "term_seconds": seconds,
            },
        )
        leases.append(told["lease_id"])
    return leases


def _serve_leases(stage: Stage, leases: list[str]) -> None:
    """The nodes start the work, sign their time every ten minutes, and the hours are accrued."""
    stage.progress("the nodes run the leases and sign what their GPUs did")
    for machine in stage.machines:
        machine.reporter.poll()
        machine.reporter.turn()
        _start_work(stage, machine)
        machine.reporter.turn()
    jobs = Timers(stage.service)
    ends_us = START_US + 4 * HOUR_US
    while stage.clock.now_us() < ends_us:
        now_us = stage.clock.advance(MINUTE_US)
        for machine in stage.machines:
            machine.clock.advance_to(now_us)
            machine.reporter.poll()
            machine.reporter.turn()
        if now_us % (30 * MINUTE_US) == 0:
            jobs.run_once()
            done = sum(_state(stage, lease) == "settled" for lease in leases)
            minutes = (now_us - START_US) // MINUTE_US
            stage.progress(f"{minutes} minutes in, {done} of {len(leases)} leases settled")
    for machine in stage.machines:
        machine.reporter.stop()
    jobs.run_once()
    assert all(_state(stage, lease) == "settled" for lease in leases)


def _start_work(stage: Stage, machine: Machine) -> None:
    """What an executor does: see the assignments, start the work, say that it runs."""
    path = f"/v1/nodes/{machine.node_id}/assignments"
    for lease in stage.web.get(machine.node_key, path)["pending"]:
        stage.web.post(machine.node_key, f"{path}/{lease['lease_id']}/ready", {})


def _state(stage: Stage, lease_id: str) -> str:
    return str(stage.web.get(stage.operator_key, f"/v1/leases/{lease_id}")["state"])


# --- settling ----------------------------------------------------------------------------------


def _settle_epoch(stage: Stage) -> None:
    """The day is over: cut, split, seal, credit."""
    stage.progress("the policy's wait is over: closing epoch 1 at a cut, sealing and crediting it")
    stage.advance_to(START_US + EPOCH_US + REWARD_TERMS.min_wait_us + MINUTE_US)
    stage.chain_jobs.step(stage.clock.now_us())
    Timers(stage.service).run_once()


def _pay(stage: Stage, parties: dict[str, Party]) -> int:
    """Mint, propose the root, wait out the timelock on the chain's clock, claim, confirm."""
    stage.progress("a new wallet waits three days; then minting, and proposing the root of totals")
    stage.advance_to(START_US + WALLET_DELAY_US + MINUTE_US)
    stage.chain_jobs.step(stage.clock.now_us())
    payout = manifest.read(payout_path(stage.data_dir, 1))
    tally, relay = stage.tally, stage.keys["relay"]
    assert _refusal_of_acceptance(stage) == "TimelockRunning", "accepted before its timelock"
    stage.progress("the timelock refuses an early acceptance: waiting two days of chain time")
    stage.advance_to(stage.clock.now_us() + (TIMELOCK_S + 60) * SECOND_US)
    stage.chain_jobs.step(stage.clock.now_us())
    stage.progress("claiming from payout.json, without the database")
    store = FileStore(stage.data_dir / "claims")
    sender = payout_scripts.Sender(Outbox(store, tally.chain, [relay]), store, relay.address)
    wallet = parties["owner-burn"].wallet
    assert wallet is not None
    addresses = (wallet.address, stage.keys["treasury"].address)
    for address in addresses:
        intent = payout_scripts.claim(payout, tally, sender, address)
        payout_scripts.finish(intent, sender, lambda: None, tries=5)
    stage.chain_jobs.step(stage.clock.now_us())
    return len(addresses)


def _refusal_of_acceptance(stage: Stage) -> str | None:
    """The contract's word on accepting the waiting root now; None when it would."""
    try:
        stage.tally.chain.call(stage.tally.accept_root(), sender=stage.keys["relay"].address)
    except ContractRefused as refused:
        return refused.error
    return None


# --- what came of it ---------------------------------------------------------------------------


def _result(
    stage: Stage, parties: dict[str, Party], leases: list[str], claims: int
) -> dict[str, Any]:
    stage.progress("reconciling ledger and chain, and verifying the audit log offline")
    service, books = stage.service, stage.service.ledger.books
    with service.connect() as connection:
        tables.step_all(connection)
        differences = reconcile(
            service.ledger, connection, stage.tally, treasury=stage.keys["treasury"].address
        )
        reports = stored_count(connection)
    told = [stage.web.get(stage.operator_key, f"/v1/leases/{lease}") for lease in leases]
    payout = manifest.read(payout_path(stage.data_dir, 1))
    revenue = books.balance("network:revenue:usage") + books.balance("network:revenue:take")
    earned = sum(books.balance(f"party:{party.account_id}:holdback") for party in parties.values())
    paid, burned = (
        sum(int(lease["charge"]["units"]) for lease in told if lease["settlement"] == settlement)
        for settlement in ("cash", "burn")
    )
    assert paid == earned + revenue, (paid, earned, revenue)
    sealed = epoch_state(service.ledger, 1).sealed
    assert sealed is not None
    minted = sealed.minted
    # `charged` is shared by providers and platform to the unit; burned credits are retired at use,
    # and their provider is paid in TOKEN.
    result = {
        "nodes": len(stage.machines),
        "node_ids": [machine.node_id for machine in stage.machines],
        "rewarded_node_ids": _rewarded(stage),
        "leases": len(leases),
        "usage_reports": reports,
        "gpu_microseconds_metered": str(sum(int(lease["gpu_us"]) for lease in told)),
        "charged": _credit(paid),
        "providers_earned": _credit(earned),
        "platform_earned": _credit(revenue),
        "burned_at_use": _credit(burned),
        "tokens_burned": str(BURNED_UNITS),
        "tokens_minted": str(minted),
        "epoch": 1,
        "payout_root": payout.root,
        "claims": claims,
        "tokens_claimed": str(stage.tally.claimed_total()),
        "books_balanced": books.books_balanced(),
        "chain_reconciled": not differences,
        "audit_verified": _audit(stage),
        "statement": [_line(lease) for lease in told],
    }
    left = stage.tally.balance(stage.tally.deployment.distributor)
    assert left == minted - stage.tally.claimed_total()
    return result


def _rewarded(stage: Stage) -> list[str]:
    """The nodes that the epoch gave a reward."""
    told = {
        machine.node_id: stage.web.get(
            stage.operator_key, f"/v1/epochs/1/explain/{machine.node_id}"
        )
        for machine in stage.machines
    }
    return [node_id for node_id, one in told.items() if int(one["paid"]["units"])]


def _audit(stage: Stage) -> bool:
    """Pin, sign, export; verify the export and execute it again with nothing but the log's key."""
    service = stage.service
    Timers(service).run_once()
    key = service.signer.verifier_key
    directory = stage.data_dir / "export"
    export_bundle(
        service.conninfo,
        directory,
        parse_verifier_key(str(key)),
        "demo",
        epochs=read_epoch_files(stage.data_dir / "epochs"),
        payouts=read_epoch_files(stage.data_dir / "payouts"),
        clients=read_epoch_files(stage.data_dir / "epochs", ".clients.json"),
    )
    return replay_bundle(directory, None, str(key)).ok


def _credit(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def _line(lease: dict[str, Any]) -> dict[str, Any]:
    """One line of the statement: what ran, how long, what it cost."""
    return {
        "lease_id": lease["lease_id"],
        "settlement": lease["settlement"],
        "gpus": lease["gpu_count"],
        "share_ppm": lease["share_ppm"],
        "gpu_seconds": str(int(lease["gpu_us"]) // SECOND_US),
        "price_per_gpu_hour": lease["price_per_gpu_hour"],
        "charge": lease["charge"],
    }
