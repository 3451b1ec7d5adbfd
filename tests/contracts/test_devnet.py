"""The chain in the process: time by the caller, history over restarts, one owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from eth_typing import HexStr
from web3.types import RPCEndpoint

from contracts.chain import Call, Chain, Sent
from contracts.devnet import Devnet, DevnetInUse
from contracts.signers import LocalKeySigner
from contracts.tally import Tally
from tests.contracts.stage import GENESIS_S, Stage, deploy, wallets

WRITER = """
import sys
from pathlib import Path
from contracts.chain import Call, Chain
from contracts.devnet import Devnet
from contracts.signers import LocalKeySigner
devnet = Devnet(Path(sys.argv[1]))
chain = Chain(devnet.w3)
signer = LocalKeySigner(devnet.keys[0], devnet.chain_id)
while True:
    chain.execute(signer, Call("0x" + "11" * 20, b""))
    sys.stdout.write(str(chain.head().number) + chr(10))
    sys.stdout.flush()
"""


def ticking() -> int:
    return GENESIS_S


def test_a_reopened_chain_keeps_balances_logs_and_addresses(tmp_path: Path) -> None:
    with Devnet(tmp_path / "chain.db", clock=ticking) as devnet:
        chain = Chain(devnet.w3)
        deployment = deploy(devnet, chain, wallets(devnet))
        before = Stage(devnet, chain, Tally(chain, deployment), wallets(devnet))
        before.give_tokens()
        head = chain.head()
        events = before.tally.events(1, head.number)
    with Devnet(tmp_path / "chain.db", clock=ticking) as devnet:
        chain = Chain(devnet.w3)
        after = Stage(devnet, chain, Tally(chain, deployment), wallets(devnet))
        assert chain.head() == head
        assert after.tally.events(1, head.number) == events
        after.burn(10)
        assert after.tally.recyclable() == 10 * 10**8
        assert after.chain.head().parent_hash == head.hash


def test_an_estimate_sees_the_callers_time_also_when_the_day_is_later() -> None:
    long_ago_s = 1_600_000_000
    refuses_later = f"0x63{long_ago_s + 60:08x}4211156010576000" + "6000fd5b00"
    with Devnet(clock=lambda: long_ago_s) as devnet:
        assert devnet.w3.eth.call({"data": HexStr(refuses_later)}) == b""
        assert devnet.w3.eth.estimate_gas({"data": HexStr(refuses_later)}) > 21_000


def test_the_same_steps_give_the_same_blocks() -> None:
    heads = []
    for _ in range(2):
        with Devnet(clock=ticking) as devnet:
            deploy(devnet, Chain(devnet.w3), wallets(devnet))
            heads.append(Chain(devnet.w3).head())
    assert heads[0] == heads[1]


def test_a_second_process_may_not_open_the_file(tmp_path: Path) -> None:
    with Devnet(tmp_path / "chain.db", clock=ticking), pytest.raises(DevnetInUse):
        Devnet(tmp_path / "chain.db")


def test_block_time_follows_the_clock_and_never_stands_still() -> None:
    now = [GENESIS_S]
    with Devnet(clock=lambda: now[0]) as devnet:
        chain, signer = Chain(devnet.w3), LocalKeySigner(devnet.keys[0], devnet.chain_id)
        times = []
        for moment in (GENESIS_S, GENESIS_S, GENESIS_S + 100, GENESIS_S + 50):
            now[0] = moment
            chain.execute(signer, Call(signer.address, b""))
            times.append(chain.head().time_s - GENESIS_S)
        assert times == [1, 2, 100, 101]
        devnet.travel_to(GENESIS_S + 1_000)
        assert chain.head().time_s == GENESIS_S + 1_000
        devnet.travel_to(GENESIS_S + 500)
        assert chain.head().time_s == GENESIS_S + 1_000


def test_threads_queue_up_and_no_transaction_is_lost() -> None:
    with Devnet(clock=ticking) as devnet:

        def send(key: bytes) -> None:
            chain, signer = Chain(devnet.w3), LocalKeySigner(key, devnet.chain_id)
            for _ in range(5):
                chain.execute(signer, Call(signer.address, b""))

        threads = [threading.Thread(target=send, args=(key,)) for key in devnet.keys[:4]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Chain(devnet.w3).head().number == 20


def test_a_request_that_fails_leaves_nothing(stage: Stage) -> None:
    head = stage.chain.head()

    def mine_and_fail() -> None:
        stage.devnet._backend.mine_blocks(2)
        raise RuntimeError("after the blocks were written")

    with pytest.raises(RuntimeError):
        stage.devnet.request(mine_and_fail)
    assert stage.chain.head() == head
    stage.do("relay", Call(stage.address("relay"), b""))
    assert stage.chain.head().parent_hash == head.hash


def test_nonces_are_refused_in_the_words_of_a_node(stage: Stage) -> None:
    signer = stage.people["relay"]
    nonce = stage.chain.transaction_count(signer.address)
    call, fees = Call(signer.address, b""), stage.chain.fees()
    wanted = stage.chain.transaction(call, nonce=nonce, gas=21_000, fees=fees)
    raw = signer.sign_transaction(wanted)
    later = signer.sign_transaction(wanted | {"nonce": nonce + 2})
    assert stage.chain.send(later) is Sent.NOT_YET
    assert stage.chain.send(raw) is Sent.ACCEPTED
    assert stage.chain.send(raw) is Sent.NONCE_TOO_LOW


@pytest.mark.parametrize("method", ["eth_getProof", "eth_noSuchMethod", "nowhere_at_all"])
def test_a_method_the_machine_has_not_is_refused_in_the_words_of_a_node(
    stage: Stage, method: str
) -> None:
    answer = stage.devnet.w3.provider.make_request(RPCEndpoint(method), [])
    told = answer["error"]
    assert isinstance(told, dict)
    assert told["code"] == -32601
    assert method in told["message"]


def test_a_killed_process_leaves_whole_blocks(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(10)][-1]
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    with Devnet(path) as devnet:
        chain, signer = Chain(devnet.w3), LocalKeySigner(devnet.keys[0], devnet.chain_id)
        head = chain.head()
        assert head.number >= acknowledged
        assert chain.transaction_count(signer.address) == head.number
        chain.execute(signer, Call(signer.address, b""))
        assert chain.head().parent_hash == head.hash


@pytest.mark.parametrize("first", ["wallet_challenge", "chain", "devnet"])
def test_the_fast_hash_is_taken_whatever_part_of_the_chain_is_used_first(first: str) -> None:
    program = (
        "import importlib, sys\n"
        f"module = importlib.import_module('contracts.{first}')\n"
        "if hasattr(module, 'signer_of'):\n"
        "    try: module.signer_of('text', '0x' + '11' * 65)\n"
        "    except module.SignatureInvalid: pass\n"
        "import eth_hash.auto\n"
        "eth_hash.auto.keccak(b'')\n"
        "assert 'eth_hash.backends.pysha3' in sys.modules\n"
        "assert 'eth_hash.backends.pycryptodome' not in sys.modules\n"
    )
    unset = {name: value for name, value in os.environ.items() if name != "ETH_HASH_BACKEND"}
    subprocess.run([sys.executable, "-c", program], env=unset, check=True)


def test_importing_the_machine_leaves_the_recursion_limit_alone() -> None:
    """Lifted, a deeply nested JSON body would kill the server instead of being refused."""
    program = (
        "import json, sys; before = sys.getrecursionlimit()\n"
        "import contracts.devnet\n"
        "assert sys.getrecursionlimit() == before\n"
        "try: json.loads('[' * 200_000)\n"
        "except RecursionError: print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\n"
