"""The chain of a running service: which node, which contracts, which keys, for the chain's jobs.

Three ways, by the settings: none; a node of some network, with a deployment file and encrypted
keys; or, in development only, an EVM of its own in the data folder, with the contracts deployed on
the first start for the terms the log names.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from api.chain.timer import ChainJobs, Report
from api.process.service import Service
from api.settings import Settings, SettingsInvalid
from contracts import deployment as deployments
from contracts.chain import Chain
from contracts.deployment import Deployment, Roles, Terms
from contracts.devnet import Devnet
from contracts.signers import KeystoreSigner, LocalKeySigner, Signer
from contracts.tally import TOKEN_UNIT, Tally
from domain.duration import SECOND_US
from domain.epochs.emission import scheduled
from domain.epochs.epoch import stream_of as epoch_stream
from domain.epochs.policy import NETWORK, PolicyPublished

DEPLOYMENT_FILE = "deployment.json"
CHAIN_FILE = "chain.sqlite"
TIMELOCK_S = 2 * 86_400
GENESIS_SUPPLY = 1_000_000 * TOKEN_UNIT
ANCHOR_PRICE = 2_000_000
"""Of the embedded chain: micro-USD per TOKEN until its oracle says otherwise."""
EPOCHS_PER_PERIOD = 1
ADMIN, GUARDIAN, EMITTER, PROPOSER, ORACLE, TREASURY = range(6)
"""Which public key plays which role on the embedded chain."""


class ChainNotReady(Exception):
    """The log has no policy or no first epoch yet: there are no terms to deploy contracts for."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Who signs for the service, and whose leaf the treasury's is."""

    emitter: Signer
    proposer: Signer
    treasury: str


class ChainSide:
    """The chain's jobs of one process; opened at the first step and again after any failure."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stack = ExitStack()
        self._jobs: ChainJobs | None = None
        self._devnet: Devnet | None = None
        self.chain: Chain | None = None  # while the jobs are open

    def step(self, now_us: int) -> Report:
        """Do what is due on chain. Raises ChainNotReady, SettingsInvalid, and as the jobs do."""
        try:
            if self._jobs is None:
                self._jobs = self._open()
            if self._devnet is not None:
                self._devnet.travel_to(now_us // SECOND_US)
            return self._jobs.step(now_us)
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Give connections and an embedded chain's file back."""
        self._jobs = self._devnet = self.chain = None
        self._stack.close()

    def _open(self) -> ChainJobs:
        service, settings = self._service, self._service.settings
        if settings.embedded_chain:
            tally, keys = self._embedded(settings.data_dir)
        else:
            tally, keys = _remote(settings)
        self.chain = tally.chain
        jobs = ChainJobs(
            service.ledger,
            service.connect,
            tally,
            data_dir=settings.data_dir,
            emitter=keys.emitter,
            proposer=keys.proposer,
            treasury=keys.treasury,
        )
        self._stack.callback(jobs.close)
        return jobs

    def _embedded(self, data_dir: Path) -> tuple[Tally, Keys]:
        clock = self._service.clock
        terms = _terms(self._service)
        devnet = Devnet(data_dir / CHAIN_FILE, clock=lambda: clock.now_us() // SECOND_US)
        self._devnet = self._stack.enter_context(devnet)
        signers = [LocalKeySigner(key, devnet.chain_id) for key in devnet.keys]
        chain, file = Chain(devnet.w3), data_dir / DEPLOYMENT_FILE
        if not file.exists():
            deployments.write(file, _deploy(chain, devnet, signers, terms))
        tally = Tally(chain, deployments.read(file))
        return tally, Keys(signers[EMITTER], signers[PROPOSER], signers[TREASURY].address)


_sides: WeakKeyDictionary[Service, ChainSide] = WeakKeyDictionary()


def chain_side(service: Service) -> ChainSide:
    """The one of this service: an embedded chain's file is open once in a process."""
    return _sides.setdefault(service, ChainSide(service))


def _remote(settings: Settings) -> tuple[Tally, Keys]:
    folder, password = settings.chain_keystores, settings.chain_password_file
    file, treasury = settings.chain_deployment, settings.treasury_address
    if folder is None or password is None or file is None or treasury is None:
        raise SettingsInvalid(
            "chain_url needs chain_deployment, chain_keystores, chain_password_file and"
            " treasury_address"
        )
    assert settings.chain_url is not None
    chain = Chain.http(settings.chain_url)
    secret = password.read_text(encoding="utf-8").strip()
    emitter, proposer = (
        KeystoreSigner(folder / f"{role}.json", secret, chain.chain_id)
        for role in ("emitter", "proposer")
    )
    return Tally(chain, deployments.read(file)), Keys(emitter, proposer, treasury)


def _deploy(
    chain: Chain, devnet: Devnet, signers: list[LocalKeySigner], terms: Terms
) -> Deployment:
    roles = Roles(
        admin=signers[ADMIN].address,
        guardian=signers[GUARDIAN].address,
        emitter=signers[EMITTER].address,
        proposer=signers[PROPOSER].address,
        oracle_admin=signers[ADMIN].address,
        oracle=signers[ORACLE].address,
    )
    return deployments.deploy_all(chain, signers[ADMIN], roles, terms, wait_until=devnet.travel_to)


def _terms(service: Service) -> Terms:
    """Contract terms that follow the log's policy. Raises ChainNotReady."""
    market = service.ledger.market
    policy = market.state_of(NETWORK)
    first = market.state_of(epoch_stream(1))
    if not policy.published or first.opened is None:
        raise ChainNotReady
    published = policy.published[0]
    return Terms(
        genesis_s=first.opened.start_us // SECOND_US,
        epoch_length_s=published.epoch_length_us // SECOND_US,
        timelock_s=TIMELOCK_S,
        epochs_per_period=EPOCHS_PER_PERIOD,
        period_caps=caps_of(published),
        recycle_cap=0,
        genesis_supply=GENESIS_SUPPLY,
        anchor_price=ANCHOR_PRICE,
    )


def caps_of(policy: PolicyPublished) -> tuple[int, ...]:
    """What each epoch may mint, from the first on, in token units: its scheduled emission."""
    last = max((s.start_epoch + s.n_epochs for s in policy.segments), default=2)
    return tuple(scheduled(policy.segments, epoch) for epoch in range(1, last))


def first_over_cap(policy: PolicyPublished, terms: Terms) -> tuple[int, int, int] | None:
    """Epoch, its scheduled emission and the cap of it in the contract, in token units, of the first
    epoch that emits more. A period has one cap, and each of its `epochs_per_period` epochs may mint
    that much; after the last period the cap is 0.
    """
    for at, units in enumerate(caps_of(policy)):
        period = at // terms.epochs_per_period
        cap = terms.period_caps[period] if period < len(terms.period_caps) else 0
        if units > cap:
            return at + 1, units, cap
    return None
