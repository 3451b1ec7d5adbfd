"""A deployed set on an embedded chain, with named people: what most contract tests start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from contracts.abi import ContractRefused
from contracts.chain import Call, Chain, Receipt
from contracts.deployment import Deployment, Roles, Terms, deploy_all
from contracts.devnet import Devnet
from contracts.payout_tree import StandardTree, payout_tree
from contracts.signers import LocalKeySigner, Signer
from contracts.tally import TOKEN_UNIT, PriceQuote, SignedQuote, Tally

GENESIS_S = 1_800_000_000
DAY_S = 86_400
TIMELOCK_S = 2 * DAY_S
CAP = 1_000_000 * TOKEN_UNIT
RECYCLE_CAP = 1_000 * TOKEN_UNIT
PRICE = 2_000_000
PEOPLE = (
    "admin",
    "guardian",
    "emitter",
    "proposer",
    "oracle_admin",
    "oracle",
    "user",
    "other",
    "relay",
)
FILE_HASH = b"\x07" * 32
ACCOUNT_REF = b"\x0a" * 32

Wallets = Mapping[str, LocalKeySigner]


def wallets(devnet: Devnet) -> Wallets:
    """One funded key per role."""
    signers = (LocalKeySigner(key, devnet.chain_id) for key in devnet.keys)
    return dict(zip(PEOPLE, signers, strict=False))


def roles_of(people: Wallets) -> Roles:
    return Roles(
        **{
            name: people[name].address
            for name in ("admin", "guardian", "emitter", "proposer", "oracle_admin", "oracle")
        }
    )


def terms(genesis_s: int = GENESIS_S) -> Terms:
    return Terms(
        genesis_s=genesis_s,
        epoch_length_s=DAY_S,
        timelock_s=TIMELOCK_S,
        epochs_per_period=365,
        period_caps=(CAP, CAP // 2),
        recycle_cap=RECYCLE_CAP,
        genesis_supply=10**9 * TOKEN_UNIT,
        anchor_price=PRICE,
    )


def deploy(devnet: Devnet, chain: Chain, people: Wallets) -> Deployment:
    return deploy_all(
        chain, people["admin"], roles_of(people), terms(), wait_until=devnet.travel_to
    )


def account(number: int) -> str:
    """A recipient that holds no key."""
    return f"0x{number:040x}"


@dataclass
class Stage:
    """The set and what was published on it so far."""

    devnet: Devnet
    chain: Chain
    tally: Tally
    people: Wallets
    totals: dict[str, int] = field(default_factory=dict)

    @property
    def at(self) -> Deployment:
        return self.tally.deployment

    @property
    def now_s(self) -> int:
        return self.chain.head().time_s

    def address(self, who: str) -> str:
        return self.people[who].address

    def do(self, who: str, call: Call) -> Receipt:
        return self.chain.execute(self.people[who], call)

    def refuse(self, who: str, call: Call) -> ContractRefused:
        """The named refusal of a call that must not pass."""
        with pytest.raises(ContractRefused) as caught:
            self.chain.call(call, sender=self.address(who))
        return caught.value

    def wait(self, seconds: int) -> None:
        self.devnet.travel_to(self.now_s + seconds)

    def quote(
        self,
        number: int = 1,
        price: int = PRICE,
        *,
        life_s: int = 300,
        age_s: int = 5,
        signer: Signer | None = None,
    ) -> SignedQuote:
        start = self.now_s - age_s
        quote = PriceQuote(number, start, start + life_s, price)
        return self.tally.sign_quote(signer or self.people["oracle"], quote)

    def give_tokens(self, tokens: int = 1_000) -> None:
        """The user holds tokens and has let the burner take them."""
        self.do("admin", self.tally.transfer(self.address("user"), tokens * TOKEN_UNIT))
        self.do("user", self.tally.approve(2**256 - 1))

    def burn(self, tokens: int, price: SignedQuote | None = None) -> Receipt:
        price = price or self.quote()
        call = self.tally.burn_for_credits(tokens * TOKEN_UNIT, price, account_ref=ACCOUNT_REF)
        return self.do("user", call)

    def close_epoch(self, epoch: int) -> None:
        self.devnet.travel_to(GENESIS_S + epoch * DAY_S)

    def mint(self, epoch: int, amount: int) -> Receipt:
        self.close_epoch(epoch)
        return self.do("emitter", self.tally.mint_epoch(epoch, amount, FILE_HASH))

    def tree(self, totals: Mapping[str, int]) -> StandardTree:
        return payout_tree(
            self.chain.chain_id,
            self.at.distributor,
            list(totals.items()),
            previous=self.totals,
            committed=sum(totals.values()),
        )

    def propose(self, totals: Mapping[str, int]) -> StandardTree:
        tree = self.tree(totals)
        seq = self.tally.seq() + 1
        call = self.tally.propose_root(seq, tree.root, FILE_HASH, sum(totals.values()))
        self.do("proposer", call)
        return tree

    def publish(self, totals: Mapping[str, int]) -> StandardTree:
        """Propose, wait the timelock, accept."""
        tree = self.propose(totals)
        self.wait(TIMELOCK_S)
        self.do("relay", self.tally.accept_root())
        self.totals = dict(totals)
        return tree

    def claim_call(self, tree: StandardTree, index: int) -> Call:
        row = tree.rows[index]
        return self.tally.claim(str(row[2]), int(row[3]), tree.proof(index))
