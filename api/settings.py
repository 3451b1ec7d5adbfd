"""Settings: flags first, then the environment (TALLYSTICK_*), then a TOML file, then defaults.

Every value remembers where it came from, so that `tallystick config` can say it. Secrets are read
from files in the data folder, never from the command line, and are masked wherever they are shown.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from domain.parties.account import DEVELOPMENT, ENVIRONMENTS, PRODUCTION
from ledger.log.lane_map import HERE, LaneMap

PREFIX = "TALLYSTICK_"
PORT_MAX = 65_535
SECRET = frozenset(
    {
        "database_url",
        "usage_lanes",
        "stripe_secret_key",
        "stripe_webhook_secret",
        "smtp_url",
        "alert_chat_url",
    }
)
NEAR = 0.85
"""From how much of two names being alike, of 1, one is taken for the other misspelt."""
OF_COMMANDS = frozenset(
    {
        *("ALLOW_HTTP", "API_KEY", "COMPLETE", "CONFIG", "EXECUTOR_SECRET", "EXECUTOR_STATE"),
        *("GOVERNOR_KEY", "KEYSTORE", "KEYSTORE_PASSWORD", "NODE_DIR", "TOKEN", "URL"),
    }
)
"""Variables that commands and nodes read, and no setting of a server."""
SIGN_UP_WAYS = ("invitation", "open")
LOG_FORMS = ("console", "json")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class SettingsInvalid(Exception):
    """A setting has a value it cannot have; the message names the setting and the rule."""


def default_data_dir() -> Path:
    """The user's data folder for a server with no database of its own."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "tallystick"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in force. Unset `database_url` means the embedded PostgreSQL in `data_dir`."""

    data_dir: Path = field(default_factory=default_data_dir)
    database_url: str | None = None
    usage_lanes: str | None = None  # 0-31=market,32-63=postgresql://...; None: all at the market's
    host: str = "127.0.0.1"
    port: int = 8420
    workers: int = 1
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    trusted_proxies: str | None = None  # addresses and networks whose X-Forwarded-For is believed
    log_origin: str = "localhost/v1/audit/log"
    chain_url: str | None = None  # an Ethereum node; None: no chain, or the embedded one
    chain_deployment: Path | None = None  # addresses and roles, as `deployment.json`
    chain_keystores: Path | None = None  # folder with emitter.json and proposer.json
    chain_password_file: Path | None = None  # unlocks both
    treasury_address: str | None = None
    embedded_chain: bool = False  # an EVM in data_dir with public keys; development only
    # Shown to who pays by bank transfer: where to.
    bank_instructions: str = "The operator tells you which account to transfer to."
    stripe_secret_key: str | None = field(default=None, repr=False)  # None: no payment by card
    stripe_webhook_secret: str | None = field(default=None, repr=False)  # signs Stripe's events
    stripe_url: str | None = None  # another address of its API; None: Stripe's own
    payment_return_url: str | None = None  # the page a payer comes back to
    reports_per_second: int = 1
    reports_burst: int = 120
    requests_per_second: int = 50
    requests_burst: int = 200
    requests_at_once: int = 8  # requests at work in one process; below its database connections
    account_requests_at_once: int = 4  # of them of one account, node or stranger's address
    account_requests_waiting: int = 60  # that wait for their turn; one more is refused
    pin_every_s: int = 60
    spec_ttl_s: int = 900  # nodes not heard of for so long get no new leases; 0: they do
    workspace_mib: int = 100  # the most that one folder of a renter brings to a node, and back
    workspace_account_mib: int = 512  # of all folders that an account's work has here
    workspace_total_mib: int = 20_480  # of all accounts together
    challenge_account: str | None = None  # pays for challenges of nodes; None: there are none
    challenge_price_max: int = 10_000_000  # micro-credits per GPU-hour; dearer nodes are not asked
    sign_up: str = "invitation"  # how strangers get an account; "open": anybody opens one
    sign_ups_per_day: int = 100  # of all strangers together, where it is open
    read_only: bool = False  # answer from a standby or a restored database; nothing is recorded
    jobs: bool = True  # run background jobs inside `serve`
    console: bool = True  # pages for people, beside the API
    places_file: Path | None = None  # CSV of networks and where they are; None: nobody knows
    billing_file: Path | None = None  # TOML: who issues invoices, and which tax rates apply
    log_form: str = "console"  # lines on stderr: "console" for people, "json" for machines
    log_level: str = "INFO"  # DEBUG also tells each usage report and each probe
    otlp_url: str | None = None  # an OpenTelemetry collector, such as http://127.0.0.1:4318
    smtp_url: str | None = field(default=None, repr=False)  # smtp(s)://user:password@host:port
    alert_mail_from: str | None = None
    alert_mail_to: str | None = None  # addresses, separated by commas; None: no mail
    alert_chat_url: str | None = field(default=None, repr=False)  # a chat's incoming webhook
    # As the log was founded; "development" permits fake drivers and test keys, on this machine only
    environment: str = PRODUCTION

    def __post_init__(self) -> None:
        for name in (
            "port",
            "workers",
            "reports_per_second",
            "reports_burst",
            "pin_every_s",
            "requests_per_second",
            "requests_burst",
            "requests_at_once",
            "account_requests_at_once",
            "account_requests_waiting",
            "workspace_mib",
            "workspace_account_mib",
            "workspace_total_mib",
            "sign_ups_per_day",
        ):
            if getattr(self, name) < 1:
                raise SettingsInvalid(f"{name}: must be 1 or more")
        if self.port > PORT_MAX:
            raise SettingsInvalid(f"port: must be {PORT_MAX} or less")
        if self.challenge_price_max < 0:
            raise SettingsInvalid("challenge_price_max: must be 0 or more")
        if self.spec_ttl_s < 0:
            raise SettingsInvalid("spec_ttl_s: must be 0 or more")
        if self.environment not in ENVIRONMENTS:
            raise SettingsInvalid("environment: must be production or development")
        if self.environment == DEVELOPMENT and not is_here(self.host):
            raise SettingsInvalid(
                f"host: development listens on this machine alone, and {self.host} is open to"
                " others. Listen on 127.0.0.1, or set TALLYSTICK_ENVIRONMENT=production"
            )
        if " " in self.log_origin or "+" in self.log_origin:
            raise SettingsInvalid("log_origin: no space and no plus sign")
        if self.embedded_chain and self.environment != DEVELOPMENT:
            raise SettingsInvalid("embedded_chain: its keys are public, so in development only")
        if self.embedded_chain and self.chain_url is not None:
            raise SettingsInvalid("embedded_chain and chain_url: one of them")
        if self.sign_up not in SIGN_UP_WAYS:
            raise SettingsInvalid(f"sign_up: must be one of {', '.join(SIGN_UP_WAYS)}")
        if self.log_form not in LOG_FORMS:
            raise SettingsInvalid("log_form: must be console or json")
        if self.log_level not in LOG_LEVELS:
            raise SettingsInvalid(f"log_level: must be one of {', '.join(LOG_LEVELS)}")
        if self.trusted_proxies is not None:
            _check_proxies(self.trusted_proxies)
        _check_lanes(self.usage_lanes)
        _check_alerts(self)
        _check_stripe(self)
        if (self.ssl_certfile is None) != (self.ssl_keyfile is None):
            raise SettingsInvalid("ssl_certfile and ssl_keyfile: both or neither")

    @property
    def lanes(self) -> LaneMap:
        """Where the usage lanes lie."""
        return HERE if self.usage_lanes is None else LaneMap.parse(self.usage_lanes)


def _check_lanes(text: str | None) -> None:
    """Raises SettingsInvalid naming the rule."""
    if text is not None:
        try:
            LaneMap.parse(text)
        except ValueError as rule:
            raise SettingsInvalid(f"usage_lanes: {rule}") from None


def is_here(host: str) -> bool:
    """Whether only this machine reaches what listens on this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_stripe(settings: Settings) -> None:
    """All of it or nothing, and no secret over an open line. Raises SettingsInvalid."""
    names = ("stripe_secret_key", "stripe_webhook_secret", "payment_return_url")
    given = [name for name in names if getattr(settings, name)]
    if "stripe_secret_key" in given and len(given) < len(names):
        missing = next(name for name in names if name not in given)
        raise SettingsInvalid(f"{missing}: needed with stripe_secret_key")
    key = settings.stripe_secret_key
    if key is not None and re.fullmatch(r"[!-~]{8,255}", key) is None:
        raise SettingsInvalid("stripe_secret_key: 8 to 255 visible ASCII characters")
    for name in ("stripe_url", "payment_return_url"):
        address = urlsplit(getattr(settings, name) or "https://unset")
        is_open = address.scheme == "http" and settings.environment == DEVELOPMENT
        if (address.scheme != "https" and not is_open) or not address.hostname:
            raise SettingsInvalid(f"{name}: an https address")


def _check_alerts(settings: Settings) -> None:
    """Addresses that can be sent to, and for mail all three settings. Raises SettingsInvalid."""
    for name, schemes in (
        ("otlp_url", ("http", "https")),
        ("smtp_url", ("smtp", "smtps")),
        ("alert_chat_url", ("http", "https")),
    ):
        try:
            address = urlsplit(getattr(settings, name) or f"{schemes[0]}://unset")
            is_whole = bool(address.hostname) and address.port != 0
        except ValueError:
            raise SettingsInvalid(f"{name}: its host or its port cannot be read") from None
        if address.scheme not in schemes or not is_whole:
            raise SettingsInvalid(f"{name}: an address, {schemes[1]}://... or {schemes[0]}://...")
    for name in ("alert_mail_from", "alert_mail_to"):
        if not (getattr(settings, name) or "x").isprintable():
            raise SettingsInvalid(f"{name}: addresses in one line")
    if settings.alert_mail_to is not None:
        for name in ("smtp_url", "alert_mail_from"):
            if getattr(settings, name) is None:
                raise SettingsInvalid(f"{name}: needed with alert_mail_to")


def _check_proxies(text: str) -> None:
    """Addresses and networks, separated by commas; never everybody. Raises SettingsInvalid."""
    for each in text.split(","):
        try:
            network = ipaddress.ip_network(each.strip())
        except ValueError:
            raise SettingsInvalid(
                f"trusted_proxies: {each.strip()!r} is no address and no network"
            ) from None
        if network.prefixlen == 0:
            raise SettingsInvalid("trusted_proxies: every caller could choose its own address")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings and, by name, where each value came from."""

    settings: Settings
    sources: Mapping[str, str]

    def shown(self) -> dict[str, dict[str, str | None]]:
        """Every setting with value and source; secrets masked."""
        return {
            name: {"value": _shown(name, getattr(self.settings, name)), "source": source}
            for name, source in self.sources.items()
        }


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Merge the sources. Raises SettingsInvalid."""
    environ = os.environ if environ is None else environ
    _refuse_misspelt(environ)
    named = environ.get(PREFIX + "CONFIG")
    file = file or (Path(named) if named else None)
    from_file = _read(file) if file else {}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in fields(Settings):
        name = setting.name
        env_name = PREFIX + name.upper()
        if flags and flags.get(name) is not None:
            values[name], sources[name] = flags[name], "flag"
        elif environ.get(env_name):
            values[name], sources[name] = environ[env_name], f"environment {env_name}"
        elif name in from_file:
            values[name], sources[name] = from_file[name], f"file {file}"
        else:
            sources[name] = "default"
    typed = {name: _typed(name, str(_kind(name)), value) for name, value in values.items()}
    return Loaded(Settings(**typed), sources)


def _refuse_misspelt(environ: Mapping[str, str]) -> None:
    """No variable that is nearly a setting: its author would run on another database, or without
    alerts, and not know. Raises SettingsInvalid.

    Others stay as they are: commands and nodes have variables of their own, and an orchestrator
    sets some by itself.
    """
    names = [each.name.upper() for each in fields(Settings)]
    for variable in unknown(environ):
        name = variable.removeprefix(PREFIX)
        swapped = [each for each in names if sorted(each) == sorted(name)]
        for meant in swapped or get_close_matches(name, names, 1, NEAR):
            raise SettingsInvalid(f"{variable}: no such setting; {PREFIX}{meant} is one")


def unknown(environ: Mapping[str, str]) -> list[str]:
    """Variables that look like a setting and that neither a server nor a command reads."""
    known = {each.name.upper() for each in fields(Settings)} | OF_COMMANDS
    return sorted(
        each for each in environ if each.startswith(PREFIX) and each[len(PREFIX) :] not in known
    )


def _kind(name: str) -> str:
    return next(f.type for f in fields(Settings) if f.name == name)  # type: ignore[return-value]


def _read(file: Path) -> dict[str, Any]:
    try:
        read = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsInvalid(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise SettingsInvalid(f"{file} is no TOML: {error}") from error
    others = read.keys() - {f.name for f in fields(Settings)}
    if others:
        raise SettingsInvalid(f"{file}: unknown setting {min(others)}")
    return read


def _typed(name: str, kind: str, value: Any) -> Any:
    """The value in the type its field declares."""
    try:
        if kind.startswith("int"):
            return int(value)
        if kind.startswith("bool"):
            return value if isinstance(value, bool) else _BOOLEANS[str(value).lower()]
        if kind.startswith("Path"):
            return Path(value)
    except (KeyError, TypeError, ValueError):
        raise SettingsInvalid(f"{name}: {value!r} is not a {kind}") from None
    return str(value)


_BOOLEANS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def _shown(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if name == "chain_url":
        return _without_secrets(str(value))
    return "********" if name in SECRET else str(value)


def _without_secrets(url: str) -> str:
    """Host and port: what stands before or after them is often the key to a hosted node."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    shown = f"{parts.scheme}://{host}"
    return shown if url.rstrip("/") == shown else f"{shown}/********"
