"""One Ethereum node, asked plainly: blocks, calls, receipts, logs, and sending finished bytes.

It knows no contract by name and keeps nothing. It never signs and never picks a nonce except in
`execute`, which is for set-up and tests; money goes through the outbox. Reverts come as
ContractRefused with the error's name and arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from eth_typing import BlockNumber, ChecksumAddress, HexStr
from web3 import HTTPProvider, Web3
from web3.exceptions import BlockNotFound, ContractLogicError, TransactionNotFound, Web3RPCError

from contracts.abi import ContractRefused, refusal
from contracts.signers import Signer, check_signed

TIP_MIN_WEI = 10**9
FEE_BLOCKS = 5
GAS_MARGIN_PERCENT = 20
RECEIPT_WAIT_S = 120

BlockTag = int | Literal["latest", "finalized"]


class NodeFailed(Exception):
    """The node answered with an error that says nothing about our transaction."""


class TransactionReverted(Exception):
    """The transaction was mined and its contract refused it."""


class Sent(Enum):
    """What a node says to raw bytes."""

    ACCEPTED = "accepted"
    KNOWN = "known"
    NONCE_TOO_LOW = "nonce_too_low"
    NOT_YET = "not_yet"
    """A nonce before it is missing, or the fee is too low to replace: the same bytes later."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block's identity and time."""

    number: int
    hash: str
    parent_hash: str
    time_s: int
    base_fee: int


@dataclass(frozen=True, slots=True)
class Fees:
    """Wei per gas: the most we pay in all, and the part that goes to the miner."""

    max_fee: int
    tip: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """That a transaction is in a block, and how it went (`ok`: status 1)."""

    hash: str
    ok: bool
    block_number: int
    block_hash: str
    gas_used: int
    contract: str | None


@dataclass(frozen=True, slots=True)
class Log:
    """One log line as the node gave it."""

    address: str
    topics: tuple[bytes, ...]
    data: bytes
    block_number: int
    block_hash: str
    transaction: str
    index: int


@dataclass(frozen=True, slots=True)
class Call:
    """What a transaction does: a target and calldata, nothing about who or when."""

    to: str
    data: bytes


class Chain:
    """A node. `confirmations` counts as final where the node does not know `finalized`."""

    def __init__(self, w3: Web3, *, confirmations: int = 12) -> None:
        self._w3 = w3
        self._confirmations = confirmations
        self.chain_id = int(w3.eth.chain_id)

    @classmethod
    def http(cls, url: str, *, confirmations: int = 12) -> Chain:
        """A node over JSON-RPC. Repeating a raw send is harmless, so its retries are, too."""
        return cls(Web3(HTTPProvider(url)), confirmations=confirmations)

    def block(self, number: BlockTag = "latest") -> Block | None:
        """A block by number or tag; None when the chain does not have it (yet)."""
        try:
            found: Any = self._w3.eth.get_block(_tag(number))
        except BlockNotFound:
            return None
        return Block(
            number=found["number"],
            hash=_hex(found["hash"]),
            parent_hash=_hex(found["parentHash"]),
            time_s=found["timestamp"],
            base_fee=found.get("baseFeePerGas") or 0,
        )

    def head(self) -> Block:
        """The latest block."""
        found = self.block("latest")
        assert found is not None, "every chain has a latest block"
        return found

    def finalized(self) -> int:
        """The number of the last block that will not be reorganised; -1 before there is one."""
        try:
            found = self.block("finalized")
        except Web3RPCError:
            found = None
        if found is not None:
            return found.number
        return max(-1, self.head().number - self._confirmations)

    def transaction_count(self, address: str, number: BlockTag = "latest") -> int:
        """How many nonces of the address are used up at a block."""
        return int(self._w3.eth.get_transaction_count(_checksum(address), _tag(number)))

    def balance(self, address: str) -> int:
        """What the address has for gas, in wei."""
        return int(self._w3.eth.get_balance(_checksum(address)))

    def fees(self) -> Fees:
        """max fee = 2 x base fee + tip; tip = median reward of late blocks, at least 1 gwei."""
        history: Any = self._w3.eth.fee_history(FEE_BLOCKS, "latest", [50])
        rewards = sorted(reward[0] for reward in history.get("reward") or [])
        tip = max(rewards[len(rewards) // 2] if rewards else 0, TIP_MIN_WEI)
        return Fees(2 * self.head().base_fee + tip, tip)

    def estimate_gas(self, sender: str, call: Call) -> int:
        """Gas limit with a margin. Raises ContractRefused when the call would revert."""
        request = _request(call, sender)
        try:
            need = int(self._w3.eth.estimate_gas(request))
        except ContractLogicError as error:
            raise _refused(error) from error
        return need * (100 + GAS_MARGIN_PERCENT) // 100

    def call(self, call: Call, *, sender: str | None = None, number: BlockTag = "latest") -> bytes:
        """The answer of a read. Raises ContractRefused when it reverts."""
        try:
            return bytes(self._w3.eth.call(_request(call, sender), _tag(number)))
        except ContractLogicError as error:
            raise _refused(error) from error

    def code(self, address: str, number: BlockTag = "latest") -> bytes:
        """The code at an address; empty when there is none."""
        return bytes(self._w3.eth.get_code(_checksum(address), _tag(number)))

    def send(self, raw: bytes) -> Sent:
        """Hand finished bytes to the node. Raises NodeFailed for an error not about them."""
        try:
            self._w3.eth.send_raw_transaction(raw)
        except Web3RPCError as error:
            return _sent(error)
        return Sent.ACCEPTED

    def receipt(self, transaction: str) -> Receipt | None:
        """Where a transaction was mined; None while it is not."""
        try:
            found: Any = self._w3.eth.get_transaction_receipt(HexStr(transaction))
        except TransactionNotFound:
            return None
        return Receipt(
            hash=_hex(found["transactionHash"]),
            ok=found["status"] == 1,
            block_number=found["blockNumber"],
            block_hash=_hex(found["blockHash"]),
            gas_used=found["gasUsed"],
            contract=found["contractAddress"],
        )

    def logs(self, addresses: Sequence[str], first: int, last: int) -> list[Log]:
        """Logs of these contracts in [first, last]. Raises NodeFailed for too long a range."""
        wanted: Any = {
            "address": [_checksum(address) for address in addresses],
            "fromBlock": first,
            "toBlock": last,
        }
        try:
            found: Any = self._w3.eth.get_logs(wanted)
        except Web3RPCError as error:
            raise NodeFailed(str(error)) from error
        return [_log(line) for line in found]

    def execute(self, signer: Signer, call: Call | None = None, *, deploy: bytes = b"") -> Receipt:
        """Estimate, sign, send and wait for one transaction: set-up and tests only.

        Nothing is recorded, so a crash here may repeat the transaction: money uses the outbox.
        Raises ContractRefused before anything is sent, NodeFailed when the node will not have it,
        TransactionReverted when it was mined and refused.
        """
        what = call or Call("", deploy)
        wanted = self.transaction(
            what,
            nonce=self.transaction_count(signer.address),
            gas=self.estimate_gas(signer.address, what),
            fees=self.fees(),
        )
        signed = check_signed(signer.sign_transaction(wanted), wanted, signer.address)
        answer = self.send(signed.raw)
        if answer not in {Sent.ACCEPTED, Sent.KNOWN}:
            raise NodeFailed(f"{signed.hash}: {answer.value}")
        self._w3.eth.wait_for_transaction_receipt(HexStr(signed.hash), timeout=RECEIPT_WAIT_S)
        receipt = self.receipt(signed.hash)
        assert receipt is not None, "it was there a moment ago"
        if not receipt.ok:
            raise TransactionReverted(signed.hash)
        return receipt

    def transaction(self, call: Call, *, nonce: int, gas: int, fees: Fees) -> dict[str, Any]:
        """The type-2 transaction to sign. Nothing here is asked of the node."""
        return {
            "type": 2,
            "chainId": self.chain_id,
            "nonce": nonce,
            "to": _checksum(call.to) if call.to else "",
            "value": 0,
            "data": call.data,
            "gas": gas,
            "maxFeePerGas": fees.max_fee,
            "maxPriorityFeePerGas": fees.tip,
        }


def _sent(error: Web3RPCError) -> Sent:
    message = str(error).lower()
    if "already imported" in message or "already known" in message:
        return Sent.KNOWN
    if "nonce too low" in message:
        return Sent.NONCE_TOO_LOW
    if "nonce too high" in message or "underpriced" in message:
        return Sent.NOT_YET
    raise NodeFailed(str(error)) from error


def _refused(error: ContractLogicError) -> ContractRefused:
    data = error.data
    if isinstance(data, Mapping):  # some nodes wrap it
        data = data.get("data")
    text = data if isinstance(data, str) and data.startswith("0x") else "0x"
    return refusal(bytes.fromhex(text[2:]))


def _request(call: Call, sender: str | None) -> Any:
    request: dict[str, Any] = {"data": "0x" + call.data.hex()}
    if call.to:
        request["to"] = _checksum(call.to)
    if sender is not None:
        request["from"] = _checksum(sender)
    return request


def _log(line: Mapping[str, Any]) -> Log:
    return Log(
        address=line["address"],
        topics=tuple(bytes(topic) for topic in line["topics"]),
        data=bytes(line["data"]),
        block_number=line["blockNumber"],
        block_hash=_hex(line["blockHash"]),
        transaction=_hex(line["transactionHash"]),
        index=line["logIndex"],
    )


def _tag(number: BlockTag) -> Any:
    return BlockNumber(number) if isinstance(number, int) else number


def _checksum(address: str) -> ChecksumAddress:
    return Web3.to_checksum_address(address)


def _hex(data: bytes) -> str:
    return "0x" + bytes(data).hex()
