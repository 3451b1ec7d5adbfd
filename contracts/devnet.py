"""An Ethereum in the process, kept in one SQLite file: for the demo, for tests, for trying out.

It holds blocks of this development chain and nothing of the ledger. Its accounts are public test
keys. It differs from a real chain in that a transaction is mined at once, in a block of its own,
and that time passes when the caller says so: block time = max(parent + 1, clock()).

    one request == at most one SQLite transaction      (a kill leaves whole blocks)

The machine underneath is single threaded, so one thread owns it and every call is queued to it;
a caller waits for its answer. Never call from an event loop's own thread.
"""

from __future__ import annotations

import ast
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

_RECURSION_MAX = sys.getrecursionlimit()

import eth

# The machine lifts the limit of the whole process for call depths that no contract of ours reaches.
# Lifted, a deeply nested JSON body overflows the C stack of the parser and kills the server, which
# may be answering already: the limit is back before anything else is imported.
sys.setrecursionlimit(_RECURSION_MAX)
assert eth

from eth.db.atomic import AtomicDBWriteBatch
from eth.db.backends.base import BaseAtomicDB
from eth.estimators.gas import binary_gas_search_intrinsic_tolerance
from eth.exceptions import HeaderNotFound, VMError
from eth.exceptions import TransactionNotFound as IndexMissing
from eth.vm.spoof import SpoofTransaction
from eth_abi.abi import encode
from eth_bloom.bloom import BloomFilter
from eth_tester import EthereumTester, PyEVMBackend
from eth_tester.backends.pyevm.serializers import (
    serialize_transaction,
    serialize_transaction_receipt,
)
from eth_tester.exceptions import TransactionFailed, TransactionNotFound
from eth_utils.address import to_canonical_address
from eth_utils.exceptions import ValidationError as MachineRefused
from web3 import EthereumTesterProvider, Web3
from web3.exceptions import ContractPanicError
from web3.providers.eth_tester.defaults import API_ENDPOINTS, not_implemented
from web3.providers.eth_tester.middleware import ethereum_tester_middleware
from web3.types import RPCEndpoint, RPCResponse

from contracts.chain_ids import EMBEDDED_CHAIN_ID
from contracts.payout_tree import keccak256
from contracts.signers import embedded_keys

CALL_STIPEND = 2_300
"""What a call that carries value is given beside its own gas; it is not in what was used."""
_HEAD_KEY = b"v1:canonical_head_hash"
_SENT_BY_AN_ACCOUNT = ("eth_call", "eth_estimateGas", "eth_sendTransaction")
_ERROR_SELECTOR = keccak256(b"Error(string)")[:4]

_Answer = TypeVar("_Answer")


class DevnetInUse(Exception):
    """Another process has this chain's file open."""


class MethodMissing(Exception):
    """A JSON-RPC method that real nodes may have, and this machine has not."""


class Devnet:
    """The chain and the thread that owns it. `w3` may be used from any thread."""

    def __init__(self, path: Path | None = None, *, clock: Callable[[], int] | None = None) -> None:
        """Open the chain in `path`, or make a new one; in memory when there is no path.

        `clock` tells Unix seconds; the first block takes its time from it, and no block is earlier.
        Raises DevnetInUse.
        """
        self._clock = clock or (lambda: int(time.time()))
        self._owner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="devnet")
        try:
            self._store = self._run(lambda: _Store(path))
            self._backend = self._run(lambda: _Backend(self._store, self._clock))
            self._tester = self._run(lambda: _Tester(backend=self._backend))
        except BaseException:
            self._owner.shutdown()
            raise
        self.w3 = Web3(_QueuedProvider(self))
        self.keys = embedded_keys()

    @property
    def chain_id(self) -> int:
        return EMBEDDED_CHAIN_ID

    def travel_to(self, moment_s: int) -> None:
        """Mine an empty block at `moment_s` (Unix seconds); nothing when the head is as late."""
        self.request(lambda: self._backend.mine_at(moment_s))

    def mine(self, count: int = 1) -> None:
        """Mine empty blocks."""
        self.request(lambda: self._tester.mine_blocks(count))

    def snapshot(self) -> bytes:
        """A mark to which `revert` returns: its block's hash."""
        return bytes(self.request(self._backend.take_snapshot))

    def revert(self, mark: bytes) -> None:
        """Make the marked block the head again: what came after never happened (a reorg)."""
        self.request(lambda: self._backend.revert_to_snapshot(mark))

    def request(self, work: Callable[[], _Answer]) -> _Answer:
        """Run `work` on the owning thread inside one SQLite transaction and wait for its answer."""
        return self._run(lambda: self._in_transaction(work))

    def answer(self, method: str, params: Any) -> Any:
        """The result of one JSON-RPC method, on the owning thread. Raises MethodMissing."""
        namespace, _, name = method.partition("_")
        endpoint = API_ENDPOINTS.get(namespace, {}).get(name, not_implemented)
        if endpoint is not_implemented:
            raise MethodMissing(method)
        return self.request(lambda: endpoint(self._tester, params))

    def close(self) -> None:
        """Close the file. The chain is whole without it, too."""
        self._run(self._store.close)
        self._owner.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Callable[[], _Answer]) -> _Answer:
        return self._owner.submit(work).result()

    def _in_transaction(self, work: Callable[[], _Answer]) -> _Answer:
        try:
            answer = work()
        except BaseException:
            if self._store.roll_back():
                self._backend.reopen()
            raise
        self._store.commit()
        return answer


class _QueuedProvider(EthereumTesterProvider):
    """Web3's door to the owning thread; errors come as a real node words them."""

    def __init__(self, devnet: Devnet) -> None:
        super().__init__(devnet._tester)
        self._devnet = devnet
        # The original asks three times for all accounts before each call that names no sender.
        self._middleware = (ethereum_tester_middleware,)  # type: ignore[assignment]
        self._sender = devnet.request(devnet._tester.get_accounts)[0]

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        if method in _SENT_BY_AN_ACCOUNT and params[0].get("from") is None:
            params = [{**params[0], "from": self._sender}, *params[1:]]
        try:
            return {"id": 1, "jsonrpc": "2.0", "result": self._devnet.answer(method, params)}
        except TransactionFailed as failed:
            data = "0x" + _revert_data(failed).hex()
            return _error(3, "execution reverted", data)
        except ContractPanicError as panic:
            return _error(3, "execution reverted", str(panic.data))
        except MethodMissing as missing:
            return _error(-32601, f"the method {missing} does not exist/is not available")
        except MachineRefused as refused:
            return _error(-32000, _as_a_node_says(str(refused)))


class _Tester(EthereumTester):  # type: ignore[misc]
    """eth-tester, which reads no block that can hold no log of these contracts."""

    backend: _Backend

    def get_logs(
        self,
        from_block: int | str | None = None,
        to_block: int | str | None = None,
        address: Any = None,
        topics: Any = None,
    ) -> list[Any]:
        """The logs in [from_block, to_block]; a block's bloom filter tells whose it cannot hold."""
        if not isinstance(from_block, int) or not isinstance(to_block, int):
            return list(super().get_logs(from_block, to_block, address, topics))
        found: list[Any] = []
        named = [address] if isinstance(address, str) else address
        makers = None if named is None else [to_canonical_address(one) for one in named]
        for number in range(from_block, to_block + 1):
            if not self.backend.may_hold_logs(number, makers):
                continue
            found += super().get_logs(number, number, address, topics)
        return found


class _Backend(PyEVMBackend):  # type: ignore[misc]
    """eth-tester's machine on our store and clock, with transactions found by their index."""

    chain: Any

    def __init__(self, store: _Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        super().__init__(self.generate_genesis_params({"timestamp": clock()}))

    def reset_to_genesis(self, *args: Any, **options: Any) -> None:
        super().reset_to_genesis(*args, **options)  # in memory; only its class is kept
        clock, made = self._clock, type(self.chain)

        class Chain(made):  # type: ignore[misc, valid-type]
            vm_configuration = tuple(
                (first_block, _timed(machine, clock))
                for first_block, machine in made.vm_configuration
            )
            gas_estimator = staticmethod(_estimate_gas)

        self._chain_class = Chain
        if not self._store.has_key(_HEAD_KEY):
            Chain.from_genesis(self._store, args[0], self.generate_genesis_state())
            self._store.commit()
        self.reopen()

    def reopen(self) -> None:
        """Forget what is only in memory."""
        self.chain = self._chain_class(self._store)

    def mine_at(self, moment_s: int) -> None:
        """Mine an empty block of that time unless the head is as late already."""
        head = self.get_block_by_number("latest", full_transaction=False)
        if head["timestamp"] < moment_s:
            self.chain.set_header_timestamp(moment_s)
            self.mine_blocks()

    def send_raw_transaction(self, raw_transaction: bytes) -> Any:
        # The waiting header got its time when its parent was mined, perhaps long ago.
        self.chain.set_header_timestamp(max(self.chain.header.timestamp, self._clock()))
        return super().send_raw_transaction(raw_transaction)

    def mine_blocks(self, num_blocks: int = 1, coinbase: bytes = bytes(20)) -> tuple[bytes, ...]:
        """Like the original, but the same history gives the same hashes: no randomness."""
        hashes = []
        for _ in range(num_blocks):
            seed = keccak256(self.chain.header.parent_hash)
            block = self.chain.mine_block(coinbase=coinbase, mix_hash=seed, blob_gas_used=0)
            hashes.append(block.hash)
        return tuple(hashes)

    def may_hold_logs(self, number: int, makers: Sequence[bytes] | None) -> bool:
        """False when none of these contracts (None: no contract at all) said anything in the block;
        True where that is not known.
        """
        try:
            header = self.chain.get_canonical_block_header_by_number(number)
        except HeaderNotFound:
            return True
        bloom = BloomFilter(header.bloom)
        return bool(header.bloom) and (makers is None or any(one in bloom for one in makers))

    def get_transaction_receipt(self, transaction_hash: bytes) -> Any:
        block, place = self._find(transaction_hash)
        return serialize_transaction_receipt(
            block,
            block.get_receipts(self.chain.chaindb),
            block.transactions[place],
            place,
            block.number == self.chain.get_block().number,
            self.chain.get_vm(),
        )

    def get_transaction_by_hash(self, transaction_hash: bytes) -> Any:
        block, place = self._find(transaction_hash)
        is_pending = block.number == self.chain.get_block().number
        return serialize_transaction(block, block.transactions[place], place, is_pending)

    def _find(self, transaction_hash: bytes) -> tuple[Any, int]:
        """Its block and its place there; the original reads every block back to the first."""
        pending = self.chain.get_block()
        for place, transaction in enumerate(pending.transactions):
            if transaction.hash == transaction_hash:
                return pending, place
        try:
            number, place = self.chain.chaindb.get_transaction_index(transaction_hash)
            block = self.chain.get_canonical_block_by_number(number)
        except (IndexMissing, HeaderNotFound) as missing:
            raise TransactionNotFound(str(missing)) from missing
        if len(block.transactions) <= place or block.transactions[place].hash != transaction_hash:
            raise TransactionNotFound(f"{transaction_hash.hex()} was in a block that is no more")
        return block, place


def _estimate_gas(state: Any, transaction: Any) -> int:
    """A gas limit that was tried and suffices, found as real nodes find it: what is used when all
    gas is there, and a 63rd more for the part that a call keeps back.

    The original halves the range between nothing and a whole block, one run of the machine each.
    """
    used = state.gas_limit - _tried(state, transaction, state.gas_limit).get_gas_remaining()
    enough = min(state.gas_limit, (used + CALL_STIPEND) * 64 // 63)
    try:
        _tried(state, transaction, enough)
    except (VMError, MachineRefused):
        return int(binary_gas_search_intrinsic_tolerance(state, transaction))
    return int(enough)


def _tried(state: Any, transaction: Any, gas: int) -> Any:
    """What the transaction does with so much gas; it changes nothing. Raises VMError."""
    mark = state.snapshot()
    try:
        done = state.apply_transaction(SpoofTransaction(transaction, gas=gas, gas_price=0))
    finally:
        state.revert(mark)
    done.raise_if_error()
    return done


def _timed(machine: Any, clock: Callable[[], int]) -> Any:
    """A machine whose headers have the caller's time, those of calls and estimates, too.

    The original takes the time of the day where it is later than the parent's.
    """
    original = machine.create_header_from_parent

    def create_header_from_parent(parent: Any, **fields: Any) -> Any:
        if parent is not None:
            fields.setdefault("timestamp", max(parent.timestamp + 1, clock()))
        return original(parent, **fields)

    changed = {"create_header_from_parent": staticmethod(create_header_from_parent)}
    return type(machine.__name__, (machine,), changed)


class _Store(BaseAtomicDB):
    """Keys and values of the machine in one table; the caller ends each transaction."""

    def __init__(self, path: Path | None) -> None:
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=0)
        try:
            self._db.executescript(
                "pragma locking_mode=exclusive; pragma journal_mode=wal; pragma synchronous=normal;"
                "create table if not exists kv(k blob primary key, v blob not null) without rowid;"
                "begin exclusive; commit;"
            )
        except sqlite3.OperationalError as error:
            self._db.close()
            raise DevnetInUse(str(path)) from error

    def __getitem__(self, key: bytes) -> bytes:
        row = self._db.execute("select v from kv where k = ?", (key,)).fetchone()
        if row is None:
            raise KeyError(key)
        return bytes(row[0])

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._begin()
        self._db.execute("insert or replace into kv values (?, ?)", (key, value))

    def __delitem__(self, key: bytes) -> None:
        self._begin()
        self._db.execute("delete from kv where k = ?", (key,))

    def _exists(self, key: bytes) -> bool:
        return self.has_key(key)

    def has_key(self, key: bytes) -> bool:
        return self._db.execute("select 1 from kv where k = ?", (key,)).fetchone() is not None

    @contextmanager
    def atomic_batch(self) -> Iterator[Any]:
        with AtomicDBWriteBatch._commit_unless_raises(self) as batch:
            yield batch

    def commit(self) -> None:
        if self._db.in_transaction:
            self._db.execute("commit")

    def roll_back(self) -> bool:
        """Whether there was anything to take back."""
        if not self._db.in_transaction:
            return False
        self._db.execute("rollback")
        return True

    def close(self) -> None:
        self.commit()
        self._db.close()

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("begin")


def _revert_data(failed: TransactionFailed) -> bytes:
    """The bytes a contract reverted with; eth-tester hands them over as the text of a literal."""
    told = failed.args[0]
    if isinstance(told, Exception):
        told = told.args[0] if told.args else b""
    if isinstance(told, str) and told.startswith(("b'", 'b"')):
        told = ast.literal_eval(told)
    if isinstance(told, str):
        return _ERROR_SELECTOR + encode(["string"], [told])
    return bytes(told)


def _as_a_node_says(message: str) -> str:
    """The wording that the outbox knows from real nodes."""
    if "Invalid transaction nonce" not in message and "nonce" not in message.lower():
        return message
    numbers = [int(word.strip(".,")) for word in message.split() if word.strip(".,").isdigit()]
    if len(numbers) == 2 and numbers[1] < numbers[0]:
        return f"nonce too low: {message}"
    return f"nonce too high: {message}"


def _error(code: int, message: str, data: str | None = None) -> RPCResponse:
    error: Any = {"code": code, "message": message} | ({"data": data} if data else {})
    return {"id": 1, "jsonrpc": "2.0", "error": error}
