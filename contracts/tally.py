"""The four deployed contracts as typed calls, reads and events. Amounts are token units (10^-8).

A write is a `Call`: calldata for somebody to sign and send (the outbox; `Chain.execute` in set-up
and tests). This file decides nothing, keeps nothing and holds no key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.abi import artifact
from contracts.chain import BlockTag, Call, Chain, Log
from contracts.deployment import Deployment
from contracts.signers import Signer

TOKEN_UNIT = 10**8

_EIP712_DOMAIN = (
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
)
_PRICE_QUOTE = (
    ("round", "uint64"),
    ("validAfter", "uint64"),
    ("validUntil", "uint64"),
    ("microUsdPerToken", "uint256"),
)
_PERMIT = (
    ("owner", "address"),
    ("spender", "address"),
    ("value", "uint256"),
    ("nonce", "uint256"),
    ("deadline", "uint256"),
)


@dataclass(frozen=True, slots=True)
class PriceQuote:
    """A price in micro-USD per whole token, live in [valid_after_s, valid_until_s]."""

    round: int
    valid_after_s: int
    valid_until_s: int
    micro_usd_per_token: int

    @property
    def fields(self) -> tuple[int, int, int, int]:
        """In the order of the contract's struct."""
        return (self.round, self.valid_after_s, self.valid_until_s, self.micro_usd_per_token)

    def credits(self, tokens: int) -> int:
        """CREDIT units for token units: floor(tokens x price / 10^8), as the contract has it."""
        return tokens * self.micro_usd_per_token // TOKEN_UNIT


@dataclass(frozen=True, slots=True)
class SignedQuote:
    """A quote with the oracle's signature."""

    quote: PriceQuote
    signature: bytes


@dataclass(frozen=True, slots=True)
class Pending:
    """A root that waits for its timelock."""

    root: str
    manifest: str
    committed: int
    seq: int
    valid_at_s: int


@dataclass(frozen=True, slots=True)
class Event:
    """A decoded log of one of the four contracts."""

    contract: str
    name: str
    arguments: Mapping[str, Any]
    log: Log


class Tally:
    """One deployment on one node."""

    def __init__(self, chain: Chain, deployment: Deployment) -> None:
        assert chain.chain_id == deployment.chain_id, "the deployment file is of another chain"
        self.chain = chain
        self.deployment = deployment

    # Prices and burning.

    def sign_quote(self, oracle: Signer, quote: PriceQuote) -> SignedQuote:
        """The oracle's signature over a price (EIP-712)."""
        message = dict(zip((name for name, _ in _PRICE_QUOTE), quote.fields, strict=True))
        domain = self._domain("Tallystick CreditBurner", self.deployment.burner)
        typed = _typed_data("PriceQuote", _PRICE_QUOTE, domain, message)
        return SignedQuote(quote, oracle.sign_typed_data(typed))

    def approve(self, amount: int) -> Call:
        """Let the burner take up to `amount` of the sender's tokens."""
        return self._call("TallyToken", "approve", self.deployment.burner, amount)

    def transfer(self, to: str, amount: int) -> Call:
        """Send tokens."""
        return self._call("TallyToken", "transfer", to, amount)

    def burn_for_credits(
        self,
        amount: int,
        price: SignedQuote,
        *,
        account_ref: bytes,
        memo: bytes = bytes(32),
        credits_min: int = 0,
    ) -> Call:
        """Burn the sender's tokens for credits to `account_ref` (32 bytes). Needs `approve`."""
        arguments = (amount, credits_min, account_ref, memo, price.quote.fields, price.signature)
        return self._call("CreditBurner", "burnForCredits", *arguments)

    def burn_with_permit(
        self,
        payer: Signer,
        amount: int,
        price: SignedQuote,
        *,
        deadline_s: int,
        account_ref: bytes,
        memo: bytes = bytes(32),
        credits_min: int = 0,
    ) -> Call:
        """The same in one transaction, without `approve`; the payer must send it."""
        signature = self.sign_permit(payer, amount, deadline_s=deadline_s)
        split = (signature[64], signature[:32], signature[32:64])
        arguments = (amount, credits_min, account_ref, memo, price.quote.fields, price.signature)
        return self._call(
            "CreditBurner", "burnForCreditsWithPermit", *arguments, deadline_s, *split
        )

    def sign_permit(self, owner: Signer, amount: int, *, deadline_s: int) -> bytes:
        """The owner's EIP-2612 permit for the burner, over the owner's present permit nonce."""
        message = {
            "owner": owner.address,
            "spender": self.deployment.burner,
            "value": amount,
            "nonce": self._read("TallyToken", "nonces", owner.address),
            "deadline": deadline_s,
        }
        domain = self._domain("Tally", self.deployment.token)
        return owner.sign_typed_data(_typed_data("Permit", _PERMIT, domain, message))

    def set_oracle(self, oracle: str, anchor_price: int) -> Call:
        """Replace the oracle; rounds start again."""
        return self._call("CreditBurner", "setOracle", oracle, anchor_price)

    # Minting.

    def mint_epoch(self, epoch: int, amount: int, settlement_id: bytes) -> Call:
        """Mint a closed epoch's rewards to the distributor. The id is the epoch file's SHA-256."""
        return self._call("EmissionController", "mintEpoch", epoch, amount, settlement_id)

    def ceiling(self, epoch: int, *, number: BlockTag = "latest") -> int:
        """The most that `epoch` could mint now."""
        return int(self._read("EmissionController", "ceiling", epoch, number=number))

    def cap(self, epoch: int, *, number: BlockTag = "latest") -> int:
        """What the schedule alone allows."""
        return int(self._read("EmissionController", "cap", epoch, number=number))

    def next_epoch(self, *, number: BlockTag = "latest") -> int:
        """The epoch that is minted next."""
        return int(self._read("EmissionController", "nextEpoch", number=number))

    def recyclable(self, *, number: BlockTag = "latest") -> int:
        """Burned and not minted again."""
        return int(self._read("EmissionController", "recyclable", number=number))

    def burned_in(self, epoch: int, *, number: BlockTag = "latest") -> int:
        """Burned during one epoch by the chain's clock."""
        return int(self._read("EmissionController", "burnedIn", epoch, number=number))

    # Roots and claims.

    def propose_root(self, seq: int, root: bytes, manifest: bytes, committed: int) -> Call:
        """Propose the next root; `manifest` is the epoch file's SHA-256."""
        return self._call("RewardsDistributor", "proposeRoot", seq, root, manifest, committed)

    def accept_root(self) -> Call:
        """Accept the root that waits, once its timelock has run."""
        return self._call("RewardsDistributor", "acceptRoot")

    def veto_root(self, reason: bytes) -> Call:
        """Throw out the root that waits. The guardian pauses first when the timelock has run."""
        return self._call("RewardsDistributor", "vetoRoot", reason)

    def claim(self, account: str, cumulative: int, proof: Sequence[bytes]) -> Call:
        """Pay an account its lifetime total minus what it has had; anyone may send it."""
        return self._call("RewardsDistributor", "claim", account, cumulative, list(proof))

    def claim_many(self, claims: Sequence[tuple[str, int, Sequence[bytes]]]) -> Call:
        """Claims of many accounts; those up to date are skipped."""
        columns = ([c[0] for c in claims], [c[1] for c in claims], [list(c[2]) for c in claims])
        return self._call("RewardsDistributor", "claimMany", *columns)

    def pause(self, contract: str) -> Call:
        """Stop a contract (guardian)."""
        return self._call(contract, "pause")

    def unpause(self, contract: str) -> Call:
        """Start it again (admin)."""
        return self._call(contract, "unpause")

    def claimed(self, account: str, *, number: BlockTag = "latest") -> int:
        """What an account has been paid so far."""
        return int(self._read("RewardsDistributor", "claimed", account, number=number))

    def claimed_total(self, *, number: BlockTag = "latest") -> int:
        """What all accounts have been paid so far."""
        return int(self._read("RewardsDistributor", "claimedTotal", number=number))

    def committed_total(self, *, number: BlockTag = "latest") -> int:
        """The most that may be paid under the accepted root."""
        return int(self._read("RewardsDistributor", "committedTotal", number=number))

    def seq(self, *, number: BlockTag = "latest") -> int:
        """How many roots were accepted."""
        return int(self._read("RewardsDistributor", "seq", number=number))

    def root(self, *, number: BlockTag = "latest") -> str:
        """The accepted root; 32 zero bytes before the first."""
        return "0x" + bytes(self._read("RewardsDistributor", "root", number=number)).hex()

    def pending(self, *, number: BlockTag = "latest") -> Pending | None:
        """The root that waits, if one does."""
        found = self._read_all("RewardsDistributor", "pending", number=number)
        root, manifest, committed, seq, valid_at_s = found
        if not valid_at_s:
            return None
        return Pending("0x" + root.hex(), "0x" + manifest.hex(), committed, seq, valid_at_s)

    # The token.

    def balance(self, account: str, *, number: BlockTag = "latest") -> int:
        """Token units an address holds."""
        return int(self._read("TallyToken", "balanceOf", account, number=number))

    def total_supply(self, *, number: BlockTag = "latest") -> int:
        """Token units in existence."""
        return int(self._read("TallyToken", "totalSupply", number=number))

    # Events.

    def events(self, first: int, last: int) -> list[Event]:
        """Decoded logs of the four contracts in blocks [first, last], in chain order.

        Raises chain.NodeFailed when the node refuses the range.
        """
        logs = self.chain.logs(self.deployment.addresses, first, last)
        found = [event for event in map(self.event, logs) if event is not None]
        return sorted(found, key=lambda event: (event.log.block_number, event.log.index))

    def event(self, log: Log) -> Event | None:
        """A log decoded; None when it is none of ours."""
        contract = self.deployment.contract_at(log.address)
        line = artifact(contract).decode_log(log.topics, log.data) if contract else None
        if contract is None or line is None:
            return None
        return Event(contract, line.event, line.arguments, log)

    def _call(self, contract: str, function: str, *arguments: Any) -> Call:
        data = artifact(contract).call_data(function, *arguments)
        return Call(self.deployment.address(contract), data)

    def _read(
        self, contract: str, function: str, *arguments: Any, number: BlockTag = "latest"
    ) -> Any:
        (value,) = self._read_all(contract, function, *arguments, number=number)
        return value

    def _read_all(
        self, contract: str, function: str, *arguments: Any, number: BlockTag = "latest"
    ) -> tuple[Any, ...]:
        answer = self.chain.call(self._call(contract, function, *arguments), number=number)
        return artifact(contract).results(function, answer)

    def _domain(self, name: str, contract: str) -> dict[str, Any]:
        return {
            "name": name,
            "version": "1",
            "chainId": self.deployment.chain_id,
            "verifyingContract": contract,
        }


def _typed_data(
    primary: str,
    fields: Sequence[tuple[str, str]],
    domain: Mapping[str, Any],
    message: Mapping[str, Any],
) -> dict[str, Any]:
    def described(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"name": name, "type": kind} for name, kind in pairs]

    return {
        "types": {"EIP712Domain": described(_EIP712_DOMAIN), primary: described(fields)},
        "primaryType": primary,
        "domain": dict(domain),
        "message": dict(message),
    }
