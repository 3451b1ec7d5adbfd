"""`tallystick run` against a real server, with a real executor beside it, and what goes wrong."""

from __future__ import annotations

import io
import os
import platform
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from nacl.public import PrivateKey
from nacl.signing import SigningKey
from psycopg import sql

from cli import run as cli_run
from cli.countersigning import used_gpu_us
from cli.remote import Remote
from cli.running import live, parcels, waiting
from cli.running.folder import scan
from cli.running.priced import share_of
from cli.terminal import InputUnusable
from node_reporter.clock import SystemClock
from node_reporter.executor.client import ExecutorClient
from node_reporter.executor.docker import DockerRunner
from node_reporter.executor.executor import Allowed, Executor
from node_reporter.executor.runner import Limits
from node_reporter.executor.sandbox import job_user
from node_reporter.executor.state import ExecutorFolder, load
from node_reporter.executor.volume_store import FolderStore
from node_reporter.programs.execute import ask_key, signed_sealing
from node_reporter.reports import joining
from node_reporter.reports.client import HttpTransport
from tallystick_client import Client
from tests.cli.test_remote import Server, server
from tests.node_reporter.confined import MIB, ground, needs_walls
from tests.scenes.server import HARDWARE
from tests.scenes.shell import Ran

__all__ = ["server"]
pytestmark = needs_walls
DEVICE = "GPU-run-0"
MACHINE = SigningKey(b"machine for the command".ljust(32))


@dataclass
class Pool:
    """A server with one node of one GPU on offer, a renter with money, and the node's executor."""

    database: str
    jobs: Path
    server: Server
    renter_id: str
    renter_key: str
    owner_key: str
    node_id: str
    executor: Executor
    folder: ExecutorFolder
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def run(self, *arguments: object, key: str | None = None) -> Ran:
        return self.server.run("run", *arguments, key=key or self.renter_key)

    def leases(self, key: str | None = None) -> list[dict[str, Any]]:
        found = self.server.run("lease", "list", "--json", key=key or self.renter_key).document
        return list(found["data"])

    def start(self) -> None:
        """Let the executor work, in a thread of its own."""

        def work() -> None:
            while not self._stop.is_set():
                self.executor.step()
                self._stop.wait(0.05)

        self._thread = threading.Thread(target=work)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(30)
        self.executor.close()


def _joined(server: Server, owner_key: str) -> tuple[str, str]:
    """A node of one GPU on offer: its id and its key."""

    def call(key: str) -> Client:
        return Client(server.url, key)

    with call(owner_key) as owner, call(server.operator_key) as operator:
        provider: Any = owner.register_provider({"kind": "physical", "payment_mode": "credits"})
        region: Any = owner.open_region(
            {
                "provider_id": provider["provider_id"],
                "name": "r",
                "storage_mode": "local",
                "setting": "datacenter",
                "admission": "operator",
                "allow_public_jobs": True,
            }
        )
        code = owner.create_join_code({"region_id": region["region_id"]})["code"]
        key = MACHINE
        specs = {
            "devices": [
                {
                    "device_id": DEVICE,
                    "vendor": "nvidia",
                    "memory_mib": 81_559,
                    "model": "NVIDIA A100-PCIE-80GB",
                    "connection": "pcie",
                    "pcie_gen": 4,
                    "pcie_lanes": 16,
                }
            ],
            "host": {"arch": "x86_64", "os": "linux"},
            "hardware": HARDWARE,
        }
        with closing(HttpTransport(server.url)) as transport:
            joined = joining.join(transport, code, key, specs, "test")
        key_id = sha256(bytes(key.verify_key)).hexdigest()[:16]
        node = joined.node_id
        owner.confirm_node(node, {"key_id": key_id})
        operator.admit_node(node, {})
        owner.activate_node(node, {})
        owner.publish_offer(
            {
                "provider_id": provider["provider_id"],
                "node_id": node,
                "fractions": True,
                "price_per_gpu_hour": {"asset": "CREDIT", "units": "2000000"},
            }
        )
        return node, joined.node_key


@pytest.fixture
def pool(
    server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Pool, None, None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "program").mkdir()
    monkeypatch.chdir(tmp_path / "program")
    renter_id, renter_key = server.account()
    _, owner_key = server.account()
    server.run("account", "deposit", renter_id, "25", "--reference", "one")
    node_id, node_key = _joined(server, owner_key)
    store = tmp_path / "store"
    store.mkdir(mode=0o711)
    on, folder = ground(tmp_path), ExecutorFolder(tmp_path / "state" / "tallystick-executor")
    transport = HttpTransport(server.url)
    sealing_key = PrivateKey.generate()
    body = signed_sealing(node_id, sealing_key, MACHINE)
    folder.remember(
        url=server.url,
        node_id=node_id,
        executor_key=ask_key(transport, node_id, node_key, body),
        sealing_key=bytes(sealing_key),
    )
    settings = load(folder)
    executor = Executor(
        settings,
        ExecutorClient(node_id, settings.executor_key, transport),
        [on.runner, DockerRunner(os.environ, job_user(None))],
        on.jobs,
        SystemClock(),
        user=job_user(None),
        volumes=FolderStore(store, job_user(None)),
        allowed=Allowed(limits=Limits(memory_bytes=256 * MIB, grace_s=1)),
        apart=partial(
            ExecutorClient.apart, node_id, settings.executor_key, partial(HttpTransport, server.url)
        ),
    )
    renter = renter_id, renter_key
    made = Pool(database, on.jobs, server, *renter, owner_key, node_id, executor, folder)
    folder.key.rename(folder.path / "kept.key")  # as on another machine: nothing runs right here
    yield made
    made.stop()
    transport.close()


def test_a_program_runs_on_the_leased_node_and_its_exit_code_comes_back(pool: Pool) -> None:
    pool.start()
    script = "echo out $TALLYSTICK_MEM_PPM; echo err >&2; exit 7"
    ran = pool.run("-p", "0.37", "--json", "--", "sh", "-c", script)
    assert ran.code == 7, ran.err
    told = ran.document
    assert (told["exit_code"], told["share_ppm"], told["ran"]) == (7, 370_000, "on the node")
    assert (told["close_code"], told["device_ids"]) == (0, [DEVICE])
    (lease,) = pool.leases()
    assert lease["closed_by"] == "job"
    gpu_us, _ = used_gpu_us(lease)
    assert told["countersigned_gpu_us"] == str(gpu_us), "the renter's half of the stick"
    stick = pool.server.run("lease", "stick", lease["lease_id"], "--json", key=pool.renter_key)
    assert stick.document["signed_until"] == lease["closed_at"]
    health = pool.server.run("lease", "health", lease["lease_id"], "--json", key=pool.renter_key)
    initiator = health.document["initiator"]
    assert (initiator["health"], initiator["kernel"]) == ("well", platform.release())
    shown = pool.server.run("lease", "health", lease["lease_id"], key=pool.renter_key).out
    assert re.search(r"^initiator health +well$", shown, re.MULTILINE)


def test_v_11_memory_is_asked_for_in_megabytes_and_given_back_after(pool: Pool) -> None:
    pool.start()
    ran = pool.run("--mem", "20000", "--json", "--no-sign", "--", "true")
    assert ran.code == 0, ran.err
    told = ran.document
    assert told["share_ppm"] == -(-20_000 * 1_000_000 // 81_559)
    assert told["countersigned_gpu_us"] is None
    whole = pool.run("-n", "1", "--json", "--", "true")
    assert whole.document["share_ppm"] == 1_000_000, "freed after the program"


def test_r_21_a_command_that_asks_too_much_or_for_nothing_there_is_told_so(pool: Pool) -> None:
    assert pool.run("-p", "1.5", "--", "true").code == 2
    assert pool.run("-p", "0", "--", "true").code == 2
    assert pool.run("-p", "0.5", "--mem", "5", "--", "true").code == 2
    assert pool.run("--mem", "90000", "--", "true").code == 2
    none = pool.run("--gpu", "NVIDIA Z9", "--", "true")
    assert none.code == 1
    assert "nothing of this kind" in none.err
    dear = pool.run("--max-price", "0.5", "--json", "--", "true")
    assert (dear.code, dear.document["status"]) == (1, 409)
    assert pool.leases() == []


def test_without_a_price_that_of_an_offer_is_taken_which_the_renter_can_pay_for(pool: Pool) -> None:
    """A burn-only offer that is cheaper set the price, and the lease was refused for it."""
    pool.start()
    with Client(pool.server.url, pool.owner_key) as owner:
        (cash,) = owner.search_offers()["data"]
        owner.publish_offer(
            {
                "provider_id": cash["provider_id"],
                "node_id": pool.node_id,
                "price_per_gpu_hour": {"asset": "CREDIT", "units": "1500000"},
                "settlement": "burn",
                "fractions": True,
            }
        )
    for given in ((), ("--mem", "20000"), ("--funds", "3")):
        ran = pool.run("--no-files", "--json", "--no-sign", *given, "--", "true")
        assert ran.code == 0, ran.err
        assert "at most 2.000000 CREDIT per GPU-hour" in ran.err
        assert " will be held for it" in ran.err.splitlines()[0], "nothing is held yet"
        assert ran.document["price_per_gpu_hour"]["units"] == "2000000"
    poor_id, poor = pool.server.account()
    pool.server.run("account", "deposit", poor_id, "0.01", "--reference", "two")
    ran = pool.run("--no-files", "--", "true", key=poor)
    assert (ran.code, "at most 2.000000 CREDIT" in ran.err) == (1, True), ran.err
    assert "refused (credit_too_low)" in ran.err, "that it has no money for the one it could have"
    with Client(pool.server.url, pool.renter_key) as renter:
        price: Any = {"asset": "CREDIT", "units": "2000000"}
        job: Any = {"command": ["sleep", "60"], "max_price_per_gpu_hour": price}
        renter.open_lease({"job": job})
        ran = pool.run("--no-files", "--", "true")
    assert "at most 2.000000 CREDIT per GPU-hour" in ran.err
    assert "All matching GPUs (1 node) are busy" in ran.err, "that is all that is missing"


def test_ctrl_c_stops_the_program_and_releases_the_lease(pool: Pool, tmp_path: Path) -> None:
    pool.start()
    with _started(pool, tmp_path, "sh", "-c", "echo up; sleep 300") as process:
        _until(lambda: "up" in (tmp_path / "out").read_text(), "it prints")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, (tmp_path / "err").read_text()
    (lease,) = pool.leases()
    assert (lease["state"], lease["close_code"]) == ("closing", 1)
    _until(lambda: not pool.executor.jobs, "nothing of it runs")


@pytest.mark.slow("::test_ctrl_c_stops_the_program_and_releases_the_lease")
def test_under_nohup_or_in_the_background_the_program_outlives_the_terminal(
    pool: Pool, tmp_path: Path
) -> None:
    pool.start()
    command = ("sh", "-c", "echo up; sleep 3; echo over; exit 5")
    with _started(pool, tmp_path, *command, signals=IN_THE_BACKGROUND) as process:
        _until(lambda: "up" in (tmp_path / "out").read_text(), "it prints")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 5, (tmp_path / "err").read_text()
    assert "over" in (tmp_path / "out").read_text()
    (lease,) = pool.leases()
    assert lease["closed_by"] == "job"


def test_ctrl_c_before_the_node_takes_it_up_costs_nothing(pool: Pool, tmp_path: Path) -> None:
    with _started(pool, tmp_path, "true") as process:
        _until(lambda: pool.leases(), "it is leased")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130, (tmp_path / "err").read_text()
    (lease,) = pool.leases()
    assert lease.get("close_code") == 101, (lease, (tmp_path / "err").read_text())
    assert lease["charge"]["units"] == "0"


IN_A_TERMINAL = "signal.default_int_handler"
IN_THE_BACKGROUND = "signal.SIG_IGN"


@contextmanager
def _started(
    pool: Pool,
    folder: Path,
    *command: str,
    signals: str = IN_A_TERMINAL,
    terminal: int | None = None,
) -> Generator[subprocess.Popen[bytes], None, None]:
    """`tallystick run` as a process of its own, that signals can reach.

    Whoever started these tests may have SIGINT ignored, which a child inherits: the process first
    takes the signals as a terminal gives them, or as `nohup` and a background job do.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "TALLYSTICK_URL": pool.server.url,
        "TALLYSTICK_API_KEY": pool.renter_key,
    }
    hangup = "signal.SIG_DFL" if signals == IN_A_TERMINAL else signals
    program = (
        f"import signal, sys; signal.signal(signal.SIGINT, {signals});"
        f" signal.signal(signal.SIGHUP, {hangup});"
        " from cli.main import main; sys.exit(main())"
    )
    words = [sys.executable, "-c", program, "run", "--no-sign", "--", *command]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            words,
            env=environment,
            stdin=terminal,
            stdout=out,
            stderr=err if terminal is None else terminal,
            cwd=folder / "program",
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def test_on_a_terminal_cost_is_live_and_ctrl_c_asks_first(pool: Pool, tmp_path: Path) -> None:
    pool.start()
    terminal, ours = pty.openpty()
    seen = bytearray()

    def sees(word: bytes) -> bool:
        while select.select([terminal], [], [], 0)[0]:
            seen.extend(os.read(terminal, 65_536))
        return word in seen

    with _started(pool, tmp_path, "sleep", "300", terminal=ours) as process:
        _until(lambda: sees(b" CREDIT so far"), "the cost so far is shown")
        assert re.search(rb"0:00:0[0-9] .* about 0.00[0-9]{4} CREDIT so far", seen)
        for answer in (b"n\n", b"y\n"):
            seen.clear()
            _until(lambda: sees(b" CREDIT so far"), "it goes on")
            process.send_signal(signal.SIGINT)
            _until(lambda: sees(b"[l]eave it running"), "it asks")
            assert process.poll() is None
            os.write(terminal, answer)
        assert process.wait(60) == 130
        sees(b"")
    assert b"not final: about 0.00" in bytes(seen).splitlines()[-1]
    os.close(terminal)
    os.close(ours)
    (lease,) = pool.leases()
    assert (lease["state"], lease["close_code"]) == ("closing", 1)


def _until(holds: Any, what: str) -> None:
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.1)


def test_a_renter_whose_program_does_not_begin_is_told_why(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_run, "LOST_SECONDS", 0)
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.2)
    noted: list[str] = []
    monkeypatch.setattr(waiting, "note", noted.append)

    def end() -> None:
        with Client(pool.server.url, pool.owner_key) as owner:
            _until(lambda: noted, "it says what it waits for")
            owner.revoke_executor_key(pool.node_id, {})
            _until(lambda: len(noted) > 1, "and what it waits for now")
            owner.close_lease(owner.list_leases()["data"][0]["lease_id"], {})

    ender = threading.Thread(target=end)
    ender.start()
    assert pool.run("--no-sign", "--", "true").code == 1
    ender.join()
    assert noted[0].startswith(f"waiting: the executor of {pool.node_id} has not taken up the work")
    assert noted[1].startswith(f"waiting: {pool.node_id} has no executor, the program that starts")
    assert len(noted) == 2, "once each"


def test_a_node_that_never_answers_is_not_waited_for_once_the_lease_is_closed(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_run, "LOST_SECONDS", 0)

    def close() -> None:
        with Client(pool.server.url, pool.owner_key) as owner:
            _until(lambda: owner.list_leases()["data"], "it is leased")
            owner.close_lease(owner.list_leases()["data"][0]["lease_id"], {})

    closer = threading.Thread(target=close)
    closer.start()
    ran = pool.run("--no-sign", "--", "true")
    closer.join()
    assert ran.code == 1
    assert "closed with 10002, the provider gave no reason" in ran.err


def test_on_the_leased_machine_itself_the_program_runs_right_here(
    pool: Pool, tmp_path: Path
) -> None:
    (pool.folder.path / "kept.key").rename(pool.folder.key)
    mark = tmp_path / "mark"
    script = f"echo $TALLYSTICK_SHARE_PPM > {mark}; exit 4"
    ran = pool.run("-p", "0.5", "--json", "--no-sign", "--", "sh", "-c", script)
    assert ran.code == 4, ran.err
    assert (ran.document["ran"], ran.document["exit_code"]) == ("here", 4)
    assert mark.read_text() == "500000\n", "the renter's own files are there"
    (lease,) = pool.leases()
    work = pool.server.run("lease", "show", lease["lease_id"], "--json", key=pool.renter_key)
    assert work.document["close_code"] == 0
    pool.start()
    _until(lambda: not pool.executor.jobs, "the executor has nothing to do with it")


def test_the_folder_travels_with_its_variables_and_secrets_and_results_come_back(
    pool: Pool, tmp_path: Path
) -> None:
    """A5: the headline command, from the renter's folder to another machine's sandbox and back."""
    pool.start()
    program = tmp_path / "program"
    (program / "data").mkdir()
    (program / "data" / "in.txt").write_text("from the renter")
    (program / ".env").write_text("stays here")
    (program / ".tallystickignore").write_text("*.big\n")
    (program / "left.big").write_text("stays here")
    (program / "outside").symlink_to("/etc/hostname")
    (program / "train.py").write_text(TRAIN)
    given = ("--env", "EPOCHS=3", "--secret", f"TOKEN={TOKEN}", "--get", "out")
    ran = pool.run(*given, "--", "python", "train.py")
    assert ran.code == 0, ran.err
    assert ran.out == "3 from the renter\n['.tallystickignore', 'data', 'train.py']\n"
    assert (program / "out" / "model.bin").read_bytes() == TOKEN.encode()[::-1] * 40_000
    assert os.access(program / "out" / "start.sh", os.X_OK)
    assert (program / "out" / "part599").read_text() == "599", "more than one request carries"
    assert not (program / "out" / "leak").exists(), "a link does not come back"
    assert "left out of what came back: out/leak: left out, it is no file" in ran.err
    assert "left out: outside: a link that leads out of the folder" in ran.err
    assert "not final: about 0.0" in ran.err.splitlines()[-1], ran.err
    _check_secret_is_nowhere(pool)
    shutil.rmtree(program / "out")
    again = pool.run(*given, "--", "python", "train.py")
    assert again.code == 0, again.err
    assert "; 0 bytes were sent" in again.err, "the server has every piece"
    pool.stop()
    assert list(pool.jobs.glob("lease_*")) == list(pool.jobs.glob(".incoming*")) == []


def test_results_that_were_refused_are_told_with_the_reason_and_exit_1(pool: Pool) -> None:
    """The program succeeded; what it was run for is not here. It was 0, and nothing was said."""
    pool.start()
    large = "mkdir out; echo small > out/a; truncate -s 6G out/b out/c"  # holes take no room
    ran = pool.run("--no-files", "--get", "out", "--json", "--", "sh", "-c", large)
    assert ran.code == 1, ran.err
    assert re.search(
        r"^did not come back: out: does not come back: more than \d+ bytes$", ran.err, re.MULTILINE
    )
    told = ran.document
    assert (told["exit_code"], told["results"]["are_back"]) == (0, False), "the program's own is 0"
    assert told["results"]["asked"] == ["out"]
    assert told["results"]["lost"][0] in ran.err
    assert told["countersigned_gpu_us"] is not None
    some = "mkdir out; echo small > out/a"
    ran = pool.run("--no-files", "--get", "out", "--get", "none", "--", "sh", "-c", some)
    assert ran.code == 1, ran.err
    assert "did not come back: none: there is no such file" in ran.err
    assert "1 new or changed file came back of out, none" in ran.err
    failed = pool.run("--no-files", "--get", "none", "--", "sh", "-c", "exit 7")
    assert failed.code == 7, "the program's own goes first"
    assert "did not come back: none" in failed.err


TOKEN = "sesame-" + "7" * 20
TRAIN = """
import os, pathlib
print(os.environ["EPOCHS"], pathlib.Path("data/in.txt").read_text())
print(sorted(one.name for one in pathlib.Path(".").iterdir()))
out = pathlib.Path("out")
out.mkdir()
(out / "model.bin").write_text(os.environ["TOKEN"][::-1] * 40_000)
(out / "start.sh").write_text("true")
(out / "start.sh").chmod(0o755)
(out / "leak").symlink_to("/etc/passwd")
for n in range(600):
    (out / f"part{n}").write_text(str(n))
"""


def _check_secret_is_nowhere(pool: Pool) -> None:
    """In no table of the server, as text or as bytes."""
    with psycopg.connect(pool.database, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information)'"
        ).fetchall()
        assert ("public", "lease_secret") in tables
        for schema, table in tables:
            for form in (TOKEN, TOKEN.encode().hex()):
                query = sql.SQL("SELECT count(*) FROM {} t WHERE t::text LIKE {}").format(
                    sql.Identifier(schema, table), f"%{form}%"
                )
                assert connection.execute(query).fetchone() == (0,), table


def test_b4_what_a_program_printed_is_read_again_and_a_lease_is_watched_live(pool: Pool) -> None:
    pool.start()
    ran = pool.run("--no-files", "--json", "--", "sh", "-c", "echo one; echo two >&2; exit 3")
    lease_id = ran.document["lease_id"]
    again = pool.server.run("lease", "log", lease_id, key=pool.renter_key)
    assert (again.out, again.err) == ("one\n", "two\n")
    told = pool.server.run("lease", "log", lease_id, "--follow", "--json", key=pool.renter_key)
    assert (told.document["exit_code"], "one" in told.err) == (3, True)
    owners = pool.server.run("lease", "log", lease_id, key=pool.owner_key)
    assert owners.out == "one\n"
    live_line = pool.server.run("lease", "show", lease_id, "--live", key=pool.renter_key).out
    assert live_line == f"closing · about 0.000000 CREDIT for 0.000000 GPU-hours · {lease_id}\n"
    other = pool.server.run("lease", "log", lease_id, key=pool.server.account()[1])
    assert (other.code, other.out) == (1, "")


def test_b2_a_second_renter_waits_for_the_gpu_and_is_told_when_it_is_free(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_run, "BUSY_SECONDS", 0.2)
    asked: list[str] = []
    opened = cli_run._opened

    def tried(body: Any, key: str, client: Client) -> Any:
        asked.append(key)
        return opened(body, key, client)

    monkeypatch.setattr(cli_run, "_opened", tried)
    pool.start()
    with Client(pool.server.url, pool.renter_key) as renter:
        price: Any = {"asset": "CREDIT", "units": "2000000"}
        job: Any = {"command": ["sleep", "60"], "max_price_per_gpu_hour": price}
        held = renter.open_lease({"job": job})["lease_id"]
        refused = pool.run("--no-files", "--", "true")
        assert refused.code == 1
        assert "All matching GPUs (1 node) are busy" in refused.err

        def release() -> None:
            time.sleep(1.5)
            with Client(pool.server.url, pool.renter_key) as other:
                other.close_lease(held, {})

        closer = threading.Thread(target=release)
        closer.start()
        ran = pool.run("--no-files", "--wait-for-gpu", "--", "true")
        closer.join()
    assert ran.code == 0, ran.err
    assert ran.err.count("waiting for a GPU: All matching GPUs") == 1, "said once"
    assert len(asked) == 3, "one try, one more when it is free, and none kept for each look between"


def test_a5_a_program_that_the_node_does_not_have_is_named_with_what_would_help(
    pool: Pool, tmp_path: Path
) -> None:
    pool.start()
    ran = pool.run("--no-files", "--", "pythom", "train.py")
    assert ran.code == 127
    assert "pythom is no program of this node: name another, or an image" in ran.err
    (tmp_path / "program" / "job.sh").write_text("exit 0")
    ran = pool.run("--", "./job.sh")
    assert "./job.sh may not be started as a program: chmod +x" in ran.err


def test_an_unchanged_folder_of_1000_files_is_one_request(pool: Pool, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    for number in range(1_000):
        place = folder / f"part{number // 100}" / f"{number}.txt"
        place.parent.mkdir(exist_ok=True)
        place.write_text(str(number))
    remote = Counting(pool.server.url, pool.renter_key)
    for requests in (3, 1):
        scanned = scan(folder, MIB)
        assert len(scanned.files) == 1_000
        remote.asked = 0
        parcels.send(remote, parcels.Parcel(folder=scanned), lambda *_: None)
        assert remote.asked == requests


class Counting(Remote):
    asked = 0

    def ask(self, call: Any) -> Any:
        self.asked += 1
        return super().ask(call)


# --- what needs no server ----------------------------------------------------------------------


def test_a_part_in_megabytes_is_rounded_up_and_never_more_than_there_is() -> None:
    assert share_of(1, 3) == 333_334
    assert share_of(80, 80) == 1_000_000
    for memory, whole in ((81, 80), (1, None), (1, 0)):
        with pytest.raises(InputUnusable):
            share_of(memory, whole)


def test_in_a_terminal_a_program_colours_its_words_and_does_nothing_else() -> None:
    assert live.harmless("\x1b[31mred\x1b[0m\r\n\t") == "\x1b[31mred\x1b[0m\r\n\t"
    assert live.harmless("\x1b]0;title\x07\x1b[2J\x00") == "?]0;title??[2J?"
    assert live.harmless("\x9b6n\x9d0;title\x9c") == "?6n?0;title?", "ESC [ in one character"
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw)
    live.Printed(out).show("stdout", b"\x1b[2J\xff")
    assert raw.getvalue() == b"\x1b[2J\xff", "a file gets every byte"


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_a_character_that_comes_in_two_pieces_is_whole_and_as_harmless() -> None:
    raw = io.BytesIO()
    out = Terminal(raw, encoding="utf-8")
    printed = live.Printed(out)
    for piece in (b"k\xc3", b"\xb6nnen\xc2", b"\x9b6n\x1b", b"[6n"):
        printed.show("stdout", piece)
    assert raw.getvalue().decode() == "können?6n?[6n"
