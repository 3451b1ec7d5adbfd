"""The four contracts as one set: put them on a chain, write down where, and read it all back.

A deployment is a small file: addresses, terms, role holders. Everything else trusts it, so it is
checked against the chain: code equals the committed artifacts, terms and roles are as written, and
nobody but the EmissionController can ever mint, because the token's admin is renounced.

It moves no money and needs no ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from contracts.abi import ContractRefused, artifact
from contracts.chain import Call, Chain
from contracts.payout_tree import keccak256
from contracts.signers import Signer
from domain.nesting import is_too_deep

FORMAT = "tallystick-deployment-v1"
ZERO_ADDRESS = "0x" + "00" * 20
ADMIN_ROLE = bytes(32)
ADMIN_DELAY_S = 172_800
"""Two days: who has stolen the admin's key hands the role on in public, and not at once."""

_MEMBERS = {
    "TallyToken": "token",
    "RewardsDistributor": "distributor",
    "EmissionController": "emission",
    "CreditBurner": "burner",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Who may do what, by address. One key per role; the proposer is never the guardian."""

    admin: str
    guardian: str
    emitter: str
    proposer: str
    oracle_admin: str
    oracle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the constructors fix for good. Seconds, token units (10^-8), micro-USD per token."""

    genesis_s: int
    epoch_length_s: int
    timelock_s: int
    epochs_per_period: int
    period_caps: tuple[int, ...]
    recycle_cap: int
    genesis_supply: int
    anchor_price: int
    quote_life_max_s: int = 600
    move_max_bps: int = 2_000
    round_interval_min_s: int = 60
    admin_delay_s: int = ADMIN_DELAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How one contract was made: keccak-256 of the code that its address has, hex, and what its
    constructor was given, in order.
    """

    code_keccak256: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Where the set lives and how it was made. `block` is the first block that concerns it.
    `made`: by the name of the contract; a file of before has none.
    """

    chain_id: int
    block: int
    token: str
    distributor: str
    emission: str
    burner: str
    input_sha256: str
    terms: Terms
    roles: Roles
    made: Mapping[str, Made] = field(default_factory=dict)

    def address(self, contract: str) -> str:
        """The address of a contract by its artifact name."""
        return str(getattr(self, _MEMBERS[contract]))

    def contract_at(self, address: str) -> str | None:
        """The artifact name of an address (in any case); None when it is none of ours."""
        for contract, member in _MEMBERS.items():
            if str(getattr(self, member)).lower() == address.lower():
                return contract
        return None

    @property
    def addresses(self) -> list[str]:
        """All four."""
        return [self.address(contract) for contract in _MEMBERS]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it should be, by name."""

    name: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.name}: expected {self.expected}, got {self.got}"


class DeploymentInvalid(Exception):
    """The deployment file is not of this format."""


def deploy_all(
    chain: Chain, deployer: Signer, roles: Roles, terms: Terms, *, wait_until: Callable[[int], None]
) -> Deployment:
    """Deploy the set, grant the roles, appoint the oracle and renounce the token's admin.

    `wait_until(unix_s)` returns once a block of that time or later exists. When the admin is not
    the deployer its transfer is begun here and the admin must accept it; until then the deploy
    check names the difference. Not repeatable: a crash leaves contracts nobody refers to.
    """
    assert roles.proposer.lower() != roles.guardian.lower(), "one key may not propose and veto"
    block = chain.head().number + 1
    addresses, made = _deploy_contracts(chain, deployer, terms)
    deployment = Deployment(
        chain_id=chain.chain_id,
        block=block,
        **addresses,
        made=made,
        input_sha256=artifact("TallyToken").input_sha256,
        terms=terms,
        roles=roles,
    )
    setup = _Setup(chain, deployer, deployment)
    setup.grant_roles()
    setup.appoint_oracle()
    setup.renounce_token_admin(wait_until)
    setup.hand_over()
    return deployment


def role_holders(
    chain: Chain, deployment: Deployment, contract: str, *, last: int | None = None
) -> dict[bytes, set[str]]:
    """Who holds which role of a contract, from all grants and revocations up to block `last`."""
    found: dict[bytes, set[str]] = {}
    until = chain.head().number if last is None else last
    for log in chain.logs([deployment.address(contract)], deployment.block, until):
        line = artifact(contract).decode_log(log.topics, log.data)
        if line is None or line.event not in {"RoleGranted", "RoleRevoked"}:
            continue
        holders = found.setdefault(line.arguments["role"], set())
        if line.event == "RoleGranted":
            holders.add(line.arguments["account"].lower())
        else:
            holders.discard(line.arguments["account"].lower())
    return {role: holders for role, holders in found.items() if holders}


def check_deployment(
    chain: Chain, deployment: Deployment, *, number: int | None = None
) -> list[Difference]:
    """Everything read back at block `number` (default: the latest). Empty when all is well."""
    if chain.chain_id != deployment.chain_id:
        return [Difference("chain id", deployment.chain_id, chain.chain_id)]
    last = chain.head().number if number is None else number
    code = [_code_difference(chain, deployment, name, last) for name in _MEMBERS]
    differences = [difference for difference in code if difference is not None]
    if differences:
        return differences  # calls into other code would mean nothing
    return [
        *_term_differences(chain, deployment, last),
        *_role_differences(chain, deployment, last),
    ]


def encode(deployment: Deployment) -> bytes:
    """Canonical JSON; amounts and the chain id as decimal strings."""
    document = asdict(deployment)
    document["chain_id"] = str(deployment.chain_id)
    terms = {name: str(value) for name, value in asdict(deployment.terms).items()}
    document["terms"] = terms | {"period_caps": [str(cap) for cap in deployment.terms.period_caps]}
    document["format"] = FORMAT
    return json.dumps(document, sort_keys=True, indent=1).encode() + b"\n"


def decode(data: bytes) -> Deployment:
    """Read the file's bytes. Raises DeploymentInvalid."""
    try:
        text = data.decode()
        if is_too_deep(text):
            raise DeploymentInvalid("nested too deep")
        document = json.loads(text)
        if document.pop("format") != FORMAT:
            raise DeploymentInvalid(f"expected {FORMAT}")
        terms = document.pop("terms")
        caps = tuple(int(cap) for cap in terms.pop("period_caps"))
        numbers = {name: int(value) for name, value in terms.items()}
        document["chain_id"] = int(document["chain_id"])
        roles = Roles(**document.pop("roles"))
        made = {
            name: Made(code_keccak256=str(one["code_keccak256"]), arguments=tuple(one["arguments"]))
            for name, one in document.pop("made", {}).items()
        }
        return Deployment(
            **document, made=made, roles=roles, terms=Terms(**numbers, period_caps=caps)
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise DeploymentInvalid(str(error)) from error


def write(path: Path, deployment: Deployment) -> None:
    """Write the deployment file."""
    path.write_bytes(encode(deployment))


def read(path: Path) -> Deployment:
    """Read it. Raises DeploymentInvalid, OSError."""
    return decode(path.read_bytes())


def role_id(name: str) -> bytes:
    """keccak-256 of a role's name, as the contracts have it."""
    return keccak256(name.encode())


class _Setup:
    """The steps after the contracts exist, all sent by the deployer."""

    def __init__(self, chain: Chain, deployer: Signer, deployment: Deployment) -> None:
        self._chain = chain
        self._deployer = deployer
        self._at = deployment

    def grant_roles(self) -> None:
        for contract, role, holder in _grants(self._at):
            self._do(contract, "grantRole", role_id(role), holder)

    def appoint_oracle(self) -> None:
        roles = self._at.roles
        role = role_id("ORACLE_ADMIN_ROLE")
        is_own = roles.oracle_admin.lower() == self._deployer.address.lower()
        if not is_own:
            self._do("CreditBurner", "grantRole", role, self._deployer.address)
        self._do("CreditBurner", "setOracle", roles.oracle, self._at.terms.anchor_price)
        if not is_own:
            self._do("CreditBurner", "revokeRole", role, self._deployer.address)

    def renounce_token_admin(self, wait_until: Callable[[int], None]) -> None:
        """From here on nobody can appoint a second minter."""
        self._do("TallyToken", "beginDefaultAdminTransfer", ZERO_ADDRESS)
        wait_until(self._chain.head().time_s + 1)
        self._do("TallyToken", "renounceRole", ADMIN_ROLE, self._deployer.address)

    def hand_over(self) -> None:
        admin = self._at.roles.admin
        if admin.lower() == self._deployer.address.lower():
            return
        for contract in _MEMBERS:
            if contract != "TallyToken":
                self._do(contract, "beginDefaultAdminTransfer", admin)

    def _do(self, contract: str, function: str, *arguments: Any) -> None:
        data = artifact(contract).call_data(function, *arguments)
        self._chain.execute(self._deployer, Call(self._at.address(contract), data))


def _deploy_contracts(
    chain: Chain, deployer: Signer, terms: Terms
) -> tuple[dict[str, str], dict[str, Made]]:
    """Addresses by member, and how each contract was made."""
    made: dict[str, Made] = {}

    def deploy(contract: str, *arguments: Any) -> str:
        receipt = chain.execute(deployer, deploy=artifact(contract).deploy_data(*arguments))
        assert receipt.contract is not None, "a deployment has an address"
        code = keccak256(chain.code(receipt.contract)).hex()
        told = tuple(json.dumps(each) for each in arguments)
        made[contract] = Made(code_keccak256=code, arguments=told)
        return receipt.contract

    admin, delay_s = deployer.address, terms.admin_delay_s
    # No delay for the token: its admin lives only until the roles are granted.
    token = deploy("TallyToken", admin, 0, admin, terms.genesis_supply)
    distributor = deploy("RewardsDistributor", token, admin, delay_s, terms.timelock_s)
    emission = deploy(
        "EmissionController",
        *(token, distributor, admin, delay_s),
        *(terms.genesis_s, terms.epoch_length_s, terms.epochs_per_period),
        *(terms.recycle_cap, list(terms.period_caps)),
    )
    burner = deploy(
        "CreditBurner",
        *(token, emission, admin, delay_s),
        *(terms.quote_life_max_s, terms.move_max_bps, terms.round_interval_min_s),
    )
    addresses = {"token": token, "distributor": distributor, "emission": emission, "burner": burner}
    return addresses, made


def _grants(deployment: Deployment) -> list[tuple[str, str, str]]:
    """Every role but the admin's: contract, role, its one holder."""
    roles = deployment.roles
    return [
        ("TallyToken", "MINTER_ROLE", deployment.emission),
        ("EmissionController", "BURN_REPORTER_ROLE", deployment.burner),
        ("EmissionController", "EMITTER_ROLE", roles.emitter),
        ("RewardsDistributor", "PROPOSER_ROLE", roles.proposer),
        ("CreditBurner", "ORACLE_ADMIN_ROLE", roles.oracle_admin),
        ("RewardsDistributor", "GUARDIAN_ROLE", roles.guardian),
        ("EmissionController", "GUARDIAN_ROLE", roles.guardian),
        ("CreditBurner", "GUARDIAN_ROLE", roles.guardian),
    ]


def _code_difference(
    chain: Chain, deployment: Deployment, contract: str, last: int
) -> Difference | None:
    code = chain.code(deployment.address(contract), last)
    got = keccak256(code).hex() if code else "no code"
    made = deployment.made.get(contract)
    if made is not None and made.code_keccak256 != got:
        return Difference(f"{contract} code", made.code_keccak256, got)
    if artifact(contract).runtime_matches(code):
        return None
    return Difference(f"{contract} code", "the committed artifact", got)


def _term_differences(chain: Chain, deployment: Deployment, last: int) -> Iterable[Difference]:
    for contract, function, arguments, expected in _terms(deployment):
        name = f"{contract} {function}{arguments or ''}"
        call = Call(
            deployment.address(contract), artifact(contract).call_data(function, *arguments)
        )
        try:
            answer = chain.call(call, number=last)
            (got,) = artifact(contract).results(function, answer)
        except ContractRefused as error:
            got = error
        if _folded(got) != _folded(expected):
            yield Difference(name, expected, got)


def _terms(deployment: Deployment) -> list[tuple[str, str, tuple[Any, ...], Any]]:
    """Contract, function, arguments, and what it must answer."""
    terms, roles = deployment.terms, deployment.roles
    emission: list[tuple[str, tuple[Any, ...], Any]] = [
        ("token", (), deployment.token),
        ("receiver", (), deployment.distributor),
        ("genesis", (), terms.genesis_s),
        ("epochLength", (), terms.epoch_length_s),
        ("epochsPerPeriod", (), terms.epochs_per_period),
        ("recycleCap", (), terms.recycle_cap),
        ("defaultAdmin", (), roles.admin),
        ("defaultAdminDelay", (), terms.admin_delay_s),
        ("cap", (1 + terms.epochs_per_period * len(terms.period_caps),), 0),
    ]
    emission += [
        ("cap", (1 + period * terms.epochs_per_period,), cap)
        for period, cap in enumerate(terms.period_caps)
    ]
    burner: list[tuple[str, tuple[Any, ...], Any]] = [
        ("token", (), deployment.token),
        ("emission", (), deployment.emission),
        ("oracle", (), roles.oracle),
        ("maxQuoteLife", (), terms.quote_life_max_s),
        ("maxMoveBps", (), terms.move_max_bps),
        ("minRoundInterval", (), terms.round_interval_min_s),
        ("defaultAdmin", (), roles.admin),
        ("defaultAdminDelay", (), terms.admin_delay_s),
    ]
    distributor: list[tuple[str, tuple[Any, ...], Any]] = [
        ("asset", (), deployment.token),
        ("timelock", (), terms.timelock_s),
        ("defaultAdmin", (), roles.admin),
        ("defaultAdminDelay", (), terms.admin_delay_s),
    ]
    token: list[tuple[str, tuple[Any, ...], Any]] = [
        ("decimals", (), 8),
        ("defaultAdmin", (), ZERO_ADDRESS),
    ]
    return [
        *(("TallyToken", *row) for row in token),
        *(("RewardsDistributor", *row) for row in distributor),
        *(("EmissionController", *row) for row in emission),
        *(("CreditBurner", *row) for row in burner),
    ]


def _role_differences(chain: Chain, deployment: Deployment, last: int) -> Iterable[Difference]:
    for contract in _MEMBERS:
        expected = {
            role_id(role): (role, {holder.lower()})
            for owner, role, holder in _grants(deployment)
            if owner == contract
        }
        if contract != "TallyToken":
            expected[ADMIN_ROLE] = ("DEFAULT_ADMIN_ROLE", {deployment.roles.admin.lower()})
        found = role_holders(chain, deployment, contract, last=last)
        for role in expected.keys() | found.keys():
            name, wanted = expected.get(role, (role.hex(), set()))
            if found.get(role, set()) != wanted:
                got = sorted(found.get(role, set()))
                yield Difference(f"{contract} {name}", sorted(wanted), got)


def _folded(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value
