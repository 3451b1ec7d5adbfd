"""One process of the service: its database, its logs, its clock and its keys, wired in one place.

Opened by `serve`, by the jobs, by the demo and by tests; knows nothing of HTTP. No rule is here,
and nothing here appends: commands go through `ledger.log.handle`.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from types import TracebackType

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from api.ingest.door import Limits, UsageIngest
from api.ingest.node_keys import NodeKeyCache
from api.process import founding, geography, key_files, pricing_plugins, secret_files
from api.process.clock import Clock, SimulatedClock, WallClock
from api.process.embedded_postgres import EmbeddedPostgres, make_data_dir
from api.process.fleet_memory import FleetMemory
from api.process.lease_desk import LeaseDesk
from api.process.misses import Misses
from api.process.waiting import ProjectionBehind
from api.processors.configured import processors_of
from api.processors.seam import Processor
from api.settings import Settings
from api.telemetry.traces import Traces
from contracts.chain_ids import EMBEDDED_CHAIN_ID
from domain.authority.log_key import LOG_KEYS
from ledger import migrate
from ledger.beside import loaded_log
from ledger.beside.loaded_log import LoadedLog
from ledger.log import lane_store, market
from ledger.log.durable import DurableConnection, StandbyLook, given_up_in_time
from ledger.log.handle import Ledger
from ledger.log.lane_logs import LaneLogs
from ledger.log.lane_map import LaneMap, ranges
from ledger.tree import lane_move
from ledger.tree.checkpoint import Signer, verifier_of
from projections import runner, tables
from projections.fleet.fleet import FLEET
from projections.runner import Connection, Projection

__all__ = ["Clock", "ProjectionBehind", "Service", "SimulatedClock", "WallClock"]

logger = logging.getLogger(__name__)

PROJECTIONS_ROLE = "tallystick_projections"
READERS_MAX = 12
WAITING_MAX = 200
WAIT_SECONDS = 2.0
STATEMENT_SECONDS_MAX = 10
FOLLOW_PAUSE_SECONDS = 0.01
READ_ONLY = "-c default_transaction_read_only=on"


class NotReady(Exception):
    """The database cannot be served in this way; the message says what to do."""


class Service:
    """Everything one process needs. `with Service.open(settings) as service`.

    Attributes: `settings`, `conninfo`, `clock`, `ledger` (the door), `usage_log` and `ingest`
    (started by whoever has an event loop: `create_app` does), `node_keys`, `server_key`,
    `sealing_key`, `standby` (whether writes wait for one that is away), `fleet` (what the matcher
    asks), `misses` (requests that found no node, counted), `traces`, `geography` (where addresses
    are), `processors` (who moves real money), `chain_id` (what wallets sign for: the deployment's,
    else the embedded chain's), `embedded` (the PostgreSQL of the data folder; None: the settings
    name another), `capacity_to_us` (up to when this process saw the time of every device booked),
    `loaded` (of which log this is a copy, if it is one), `auditor_sha256` (of the key that opens a
    copy for reading, if there is one).
    """

    def __init__(self, settings: Settings, conninfo: str, clock: Clock) -> None:
        self.settings = settings
        self.conninfo = conninfo
        self.clock = clock
        self.server_key = self._key("server.key")
        self.sealing_key = self._key("sealing.key")
        self.ledger = Ledger(conninfo, blinding_key=self._key("blinding.key"))
        self.lease_desk = LeaseDesk(self.ledger)
        self.standby = StandbyLook(conninfo)
        self.misses = Misses()
        self.traces = Traces(settings.otlp_url)
        self.readers = ConnectionPool(
            conninfo,
            connection_class=DurableConnection[TupleRow],
            kwargs={"autocommit": True},
            configure=_configure_reader,
            min_size=1,
            max_size=READERS_MAX,
            max_waiting=WAITING_MAX,
            timeout=WAIT_SECONDS,
            open=True,
        )
        self.geography = geography.of(settings.places_file)
        self.usage_log = LaneLogs(conninfo, now_us=clock.now_us)
        self.node_keys = NodeKeyCache()
        self.ingest = UsageIngest(
            self.usage_log,
            self.node_keys,
            Limits(
                reports_per_second=settings.reports_per_second, reports_burst=settings.reports_burst
            ),
            now_us=clock.now_us,
        )
        self.chain_id = _chain_id(settings)
        self.processors = processors_of(settings)
        self.payout_processor: Processor = self.processors.get("stripe", self.processors["bank"])
        self.fleet = FleetMemory()
        self.embedded: EmbeddedPostgres | None = None
        self.capacity_to_us = 0
        self.loaded: LoadedLog | None = None
        self.auditor_sha256: str | None = None
        self.forgetters: list[Callable[[], None]] = []
        self._signer: Signer | None = None
        self._signer_lock = threading.Lock()
        self._stack = ExitStack()

    @classmethod
    def open(
        cls, settings: Settings, *, clock: Clock | None = None, lost: frozenset[str] = frozenset()
    ) -> Service:
        """Find or start the database, bring it to this version and make the projections.

        Raises SettingsInvalid: the log was founded in another environment; KeysDiffer: the key
        files of the data folder are not those of the log; LanesMisplaced.
        `lost`: key files that the caller is about to replace.
        Without `database_url` the embedded server of `data_dir` is started, or joined if it runs.
        """
        assert __debug__, "assertions keep the books: do not run with python -O"
        pricing_plugins.load()
        make_data_dir(settings.data_dir)
        with ExitStack() as stack:
            conninfo = settings.database_url
            embedded = None
            if conninfo is None:
                embedded = stack.enter_context(EmbeddedPostgres(settings.data_dir))
                conninfo = embedded.uri
            conninfo = lane_store.carried(settings.lanes, given_up_in_time(conninfo))
            if settings.read_only:
                options = conninfo_to_dict(conninfo).get("options", "")
                conninfo = make_conninfo(conninfo, options=f"{options} {READ_ONLY}".lstrip())
            with _made_ready(conninfo, settings, lost) as connection:
                service = cls(settings, conninfo, clock or WallClock())
                service.embedded = embedded
                stack.callback(service._close)
                service._find_copy(connection)
                founding.require_environment(service.ledger, settings)
                lane_store.require_placed(connection)
                if not settings.read_only:
                    tables.ensure(connection)
                service.node_keys.refresh(connection)
            service._stack = stack.pop_all()
        return service

    def close(self) -> None:
        """Give back connections and keys; the last user of an embedded server stops it."""
        self._stack.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _key(self, name: str) -> bytes:
        """A key of the data folder. A server that records nothing makes none: where one is not
        there, it works with another until it ends.
        """
        path = secret_files.folder_of(self.settings.data_dir) / name
        if self.settings.read_only and not path.exists():
            return secrets.token_bytes(secret_files.SECRET_BYTES)
        return secret_files.read(path)

    def _find_copy(self, connection: Connection) -> None:
        self.loaded = loaded_log.read(connection)
        if self.loaded is not None:
            self.auditor_sha256 = secret_files.auditor_sha256(self.settings.data_dir)

    @property
    def signer(self) -> Signer:
        """Who signs the log's heads. One process at a time: raises BlockingIOError when another
        one holds it, secret_files.KeyNotHere where nothing is recorded, and SecretUnreadable where
        the files that were there at the start are not there now.
        """
        if self.settings.read_only:
            raise secret_files.KeyNotHere
        with self._signer_lock:
            if self._signer is None:
                folder = secret_files.folder_of(self.settings.data_dir)
                seed = secret_files.read(folder / key_files.SIGNER)
                path = folder / key_files.HEADS
                last, old = self.ledger.world().state(LOG_KEYS).last, None
                if last is not None and (folder / key_files.OLD_SIGNER).exists():
                    old = secret_files.read(folder / key_files.OLD_SIGNER), last.until_us
                self._signer = Signer(path, self.settings.log_origin, seed, old=old)
            return self._signer

    @property
    def verifier_key(self) -> str:
        """What others check the log's signed heads with. Raises secret_files.KeyNotHere
        where nothing is recorded and the file is missing, else SecretUnreadable.
        """
        path = secret_files.folder_of(self.settings.data_dir) / key_files.SIGNER
        if self.loaded is not None:
            return self.loaded.log_key
        if self.settings.read_only and not path.exists():
            raise secret_files.KeyNotHere
        return str(verifier_of(secret_files.read(path), self.settings.log_origin))

    # --- connections -------------------------------------------------------------------------

    @contextmanager
    def connection(self) -> Generator[Connection, None, None]:
        """A connection for reading and for stepping projections, from a bounded pool.

        Autocommit, statements of at most 10 s. Raises psycopg_pool.TooManyRequests and
        PoolTimeout when too many wait.
        """
        with self.readers.connection() as connection:
            yield connection

    def connect(self) -> Connection:
        """A connection of one's own with the projections' role, for long work; close it."""
        return _own(self.conninfo)

    # --- views -------------------------------------------------------------------------------

    def follow(
        self,
        connection: Connection,
        projections: Iterable[Projection],
        position: int | None = None,
        *,
        least: int = 0,
        seconds: float = WAIT_SECONDS,
    ) -> int:
        """Bring views up to a position of the market log, by default to its present head; where
        nothing is recorded, to `least`.

        Returns the least position they reflect. Raises ProjectionBehind after `seconds`, and at
        once while the log itself has not reached `least`.
        """
        asked = tuple(projections)
        head, reached = tables.standing(connection, asked)
        if least > head:
            raise ProjectionBehind(f"the log is at {head} of {least}")
        if position is None:
            position = least if self.settings.read_only and asked else head
        wanted = position
        ends = time.monotonic() + seconds
        found = [
            at if at >= wanted else self._follow_one(connection, each, wanted, ends)
            for each, at in zip(asked, reached, strict=True)
        ]
        return min(found, default=wanted)

    def warm_up(self) -> None:
        """Read the fleet before the first renter asks for it; later when that does not work now."""
        try:
            with self.connection() as connection:
                self.follow(connection, [FLEET])
                self.fleet.ask(connection, lambda _columns, _position: None)
        except Exception as error:
            logger.warning("the fleet is read with the first request: %s", error)

    def keys_changed(self) -> None:
        """Keys or nodes were recorded by this process: whoever remembers some asks again."""
        for forget in self.forgetters:
            forget()
        with self.connection() as connection:
            self.node_keys.refresh(connection)

    def refresh_node_keys(self) -> bool:
        """Learn of nodes other processes recorded; False when the database cannot be asked now."""
        try:
            with self.connection() as connection:
                if self.node_keys.refresh(connection):
                    for forget in self.forgetters:
                        forget()
        except psycopg.OperationalError:
            return False
        return True

    def head(self, connection: Connection) -> int:
        """The last position of the market log."""
        return market.head(connection)

    def head_now(self) -> int:
        """The last position of the market log, asked on a connection of the pool."""
        with self.connection() as connection:
            return self.head(connection)

    def _follow_one(
        self, connection: Connection, projection: Projection, wanted: int, ends: float
    ) -> int:
        moved = True
        while (reached := tables.position_of(connection, projection)) < wanted:
            if time.monotonic() > ends:
                raise ProjectionBehind(f"{projection.name} is at {reached} of {wanted}")
            if not moved:  # nothing to do here, and the view is still behind
                time.sleep(FOLLOW_PAUSE_SECONDS)
            moved = self._try(lambda: runner.step(connection, projection))
        return reached

    def _try(self, step: Callable[[], int]) -> bool:
        """Whether a step moved anything; another follower at the same view is no error."""
        try:
            return bool(step())
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            return False

    def _close(self) -> None:
        if self._signer is not None:
            self._signer.close()
        self.traces.close()
        self.lease_desk.close()
        self.readers.close()
        self.ledger.close()


@contextmanager
def _made_ready(
    conninfo: str, settings: Settings, lost: frozenset[str]
) -> Generator[Connection, None, None]:
    """A connection with the projections' role to a database of this version whose keys are here.
    One for all that a start asks: PostgreSQL begins a process for each.
    Raises as `Service.open`, and NotReady.
    """
    with DurableConnection.connect(conninfo, autocommit=True) as connection:
        if settings.read_only:
            _require_ready(connection)
        else:
            _require_primary(connection)
            migrate.migrate_on(connection)
        connection.execute(f"SET ROLE {PROJECTIONS_ROLE}".encode())
        if not settings.read_only:
            _migrate_lanes(connection, settings.lanes)
            keys = secret_files.made_folder(settings.data_dir)
            key_files.open_log(connection, keys, settings.log_origin, lost)
        yield connection


def _require_primary(connection: Connection) -> None:
    """Raises NotReady on a standby, where the first migration would fail, and on a copy that was
    loaded from an export; LanesMisplaced.
    """
    lane_store.require_market(connection)
    loaded = loaded_log.read(connection)
    if loaded is not None:
        raise NotReady(
            f"this database is a copy of the log {loaded.origin}, loaded from an export: nothing is"
            " recorded, signed or paid with it, whatever keys lie here. Answer from it with `serve"
            " --read-only` (TALLYSTICK_READ_ONLY=true), add a later export with `audit load`, or"
            " name another data folder for a log of your own"
            + (f". And {loaded.unproven}" if loaded.unproven else "")
        )
    if runner.is_read_only(connection):
        raise NotReady(
            "this database is a standby or takes read-only transactions alone: nothing can be"
            " recorded. Give the primary's address, or answer from it with `serve --read-only`"
            " (TALLYSTICK_READ_ONLY=true)"
        )


def _migrate_lanes(connection: Connection, lanes: LaneMap) -> None:
    """Bring the servers of lanes to this version. One that is away or not what it was stops its
    lanes only; nothing is changed there.
    """
    for address, some in lanes.elsewhere().items():
        try:
            lane_move.migrate_server(connection, address, some)
        except Exception as error:
            logger.error("usage lanes %s are stopped: %s", ranges(some), error)


def _require_ready(connection: Connection) -> None:
    """Raises NotReady when this version would have to change something before it can read."""
    loaded = loaded_log.read(connection)
    if loaded is not None and loaded.facts is None:
        raise NotReady(
            f"this copy of the log {loaded.origin} is not whole: its load was ended or failed. Say"
            " the same `tallystick audit load` again"
        )
    missing = [one.name for one in migrate.missing(connection)]
    differing = missing or tables.differing(connection)
    if missing or differing:
        raise NotReady(
            f"the database is not of this version ({(missing or differing)[0]}), and a server that"
            " records nothing cannot bring it there: "
            + (
                "start this version at the primary"
                if loaded is None
                else "say `tallystick migrate`"
            )
            + " first"
        )


def _own(conninfo: str) -> Connection:
    connection = DurableConnection.connect(conninfo, autocommit=True)
    try:
        connection.execute(f"SET ROLE {PROJECTIONS_ROLE}".encode())
    except BaseException:
        connection.close()
        raise
    return connection


def _chain_id(settings: Settings) -> int:
    """The chain wallets sign for."""
    if settings.chain_deployment is None:
        return EMBEDDED_CHAIN_ID
    from contracts import deployment as deployments  # its libraries take a second to import

    return deployments.read(settings.chain_deployment).chain_id


def _configure_reader(connection: Connection) -> None:
    connection.execute(
        f"SET ROLE {PROJECTIONS_ROLE};"
        f" SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'; SET lock_timeout = '2s'".encode()
    )
