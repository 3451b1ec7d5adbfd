"""A small market behind a real server: an operator, two renters, two providers with a node each.

Everything is made over HTTP, as a stranger would, but for what the command line does at a start:
the first operator and the tariff. Clock and node keys are the test's.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import itertools
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from api.door import keys
from api.main import create_app
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings
from domain.fleet import keys as node_key
from domain.metering import report
from domain.parties.account import BootstrapOperator
from domain.prices.tariff import CLOUDBENDER, publish
from ledger.log.usage import item
from ledger.tree import trees
from tests.in_process import InProcess
from tests.scenes.usage_reports import Node as SigningNode

NOW_US = 1_795_161_720_000_000
HOUR_US = 3_600_000_000

JOIN = "/v1/nodes/join"

_numbers = itertools.count(1)
_machines: dict[str, SigningKey] = {}
"""The keys of machines that were asked what they would send to join, by public key."""


class Caller:
    """One key, and calls made with it. Recording calls get a fresh Idempotency-Key."""

    def __init__(self, http: InProcess, key: str | None, account_id: str = "") -> None:
        self.http = http
        self.key = key
        self.account_id = account_id
        self.member_id = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Any:
        return self.http.get(
            path, params=query or None, headers={**self.headers, **(headers or {})}
        )

    def post(self, path: str, body: Any = None, *, key: str | None = None, **headers: str) -> Any:
        named = {"Idempotency-Key": key or f"test-{next(_numbers)}", **headers}
        content = {} if body is None else body
        if path == JOIN and content.get("public_key") in _machines:
            return self._join(content, named)
        return self.http.post(path, json=content, headers={**self.headers, **named})

    def _join(self, body: dict[str, Any], headers: dict[str, str]) -> Any:
        """What a machine sends to join is signed by its key, byte for byte."""
        raw = json.dumps(body).encode()
        key = _machines[body["public_key"]]
        signature = key.sign(node_key.envelope(node_key.JOIN_TYPE, raw)).signature
        named = {"Node-Signature": base64.b64encode(signature).decode(), **headers}
        named["Content-Type"] = "application/json"
        return self.http.post(JOIN, content=raw, headers=named)

    def delete(self, path: str) -> Any:
        return self.http.delete(path, headers=self.headers)

    def made(self, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """Post, and insist that it worked."""
        response = self.post(path, body, **headers)
        assert response.status_code in (200, 201), (path, response.status_code, response.text)
        told: dict[str, Any] = response.json()
        return told

    def read(self, path: str, **query: Any) -> dict[str, Any]:
        """Get, and insist that it worked."""
        response = self.get(path, **query)
        assert response.status_code == 200, (path, response.status_code, response.text)
        told: dict[str, Any] = response.json()
        return told


class Provider:
    """A provider with one region and one active node that rents out its devices."""

    vendor = "nvidia"
    """Of the devices of machines that join from now on."""

    def __init__(
        self,
        scene: Scene,
        owner: Caller,
        name: str,
        model: str,
        price: int,
        *,
        kind: str = "physical",
    ) -> None:
        self.owner = owner
        self.name = name
        self.provider_id = owner.made("/v1/providers", {"kind": kind, "payment_mode": "credits"})[
            "provider_id"
        ]
        is_cloud = kind != "physical"
        if is_cloud:
            owner.made(f"/v1/providers/{self.provider_id}/cloud-account", CLOUD_ACCOUNT)
        self.region_id = owner.made(
            "/v1/regions",
            {
                "provider_id": self.provider_id,
                "name": name,
                "storage_mode": "central" if is_cloud else "local",
                "setting": "datacenter",
                "admission": "operator",
                "allow_public_jobs": True,
                **({"cloud_region": "us-central1"} if is_cloud else {}),
            },
        )["region_id"]
        if is_cloud:
            storage = f"/v1/regions/{self.region_id}/storage-node"
            owner.made(storage, {"storage_class": "pd-ssd"})
            owner.made(f"{storage}/ready")
        self.join(scene, name, model, price)

    def join(self, scene: Scene, name: str, model: str, price: int) -> None:
        """A machine joins the region and is offered: it is the provider's node from now on."""
        self.ask(scene, name, model)
        self._confirm(scene)
        self.offer(price)

    def ask(self, scene: Scene, name: str, model: str) -> None:
        """A machine asks to join the region: it is the provider's node from now on."""
        self.machine(name)
        code = self.owner.made("/v1/nodes/join-codes", {"region_id": self.region_id})["code"]
        self.joined(scene.anybody.made(JOIN, self.joining(code, model)))

    def machine(self, name: str) -> None:
        """Two devices and a key that signs; it has not joined yet."""
        self.device_ids = [f"GPU-{name}-{index}" for index in range(2)]
        self.signing = SigningNode(name)
        self.signing.key = SigningKey(hashlib.sha256(name.encode()).digest())
        self.signing.public_key = bytes(self.signing.key.verify_key)
        self.signing.key_id = hashlib.sha256(self.signing.public_key).hexdigest()[:16]

    def joined(self, told: dict[str, Any]) -> None:
        """What the server answered to the machine: its reports are signed under this name."""
        self.node_id: str = told["node_id"]
        self.node = Caller(self.owner.http, told["node_key"])
        self.signing.id = self.node_id
        self.signing.genesis = self.signing.head = report.genesis(
            self.node_id, self.signing.public_key
        )

    def offer(self, price: int, **terms: Any) -> None:
        """The node is for rent, whole or in parts, for credits of any kind but burned ones."""
        body = {
            "provider_id": self.provider_id,
            "node_id": self.node_id,
            "settlement": "cash",
            "price_per_gpu_hour": {"asset": "CREDIT", "units": str(price)},
            "fractions": True,
            **terms,
        }
        self.offer_id = self.owner.made("/v1/offers", body)["offer_id"]

    def joining(self, code: str, model: str, seed: str | None = None) -> dict[str, Any]:
        """What a machine sends to join: this one, or another whose key has this seed (hex)."""
        key = self.signing.key if seed is None else SigningKey(bytes.fromhex(seed))
        public = bytes(key.verify_key)
        _machines[public.hex()] = key
        return {
            "code": code,
            "public_key": public.hex(),
            "key_id": hashlib.sha256(public).hexdigest()[:16],
            "agent": "0.1.0",
            "devices": [
                {
                    "device_id": device,
                    "vendor": self.vendor,
                    "model": model,
                    "memory_mib": 81_559,
                    "connection": "pcie",
                    "pcie_gen": 4,
                    "pcie_lanes": 16,
                }
                for device in self.device_ids
            ],
            "host": {
                "arch": "x86_64",
                "os": "linux",
                "cpu_cores": 64,
                "ram_mib": None,
                "driver": None,
            },
            "hardware": HARDWARE,
        }

    def _confirm(self, scene: Scene) -> None:
        path = f"/v1/nodes/{self.node_id}"
        self.owner.made(f"{path}/confirm", {"key_id": self.signing.key_id})
        scene.operator.made(f"{path}/admit")
        self.owner.made(f"{path}/activate")


CLOUD_ACCOUNT: dict[str, Any] = {
    "project_id": "render-farm-7",
    "project_made_on": "2022-03-01",
    "done": [
        "paid_billing",
        "project",
        "api_compute",
        "api_pubsub",
        "api_logging",
        "service_account",
        "role_compute_admin",
        "role_pubsub_admin",
        "role_logs_writer",
        "role_service_account_user",
    ],
}
"""A checklist with every step that a new project needs."""
HARDWARE: dict[str, Any] = {
    "nvme_drives_gb": [4_000, 4_000],
    "tpm_2_0": True,
    "ram_gb": 1_024,
    "cpu_cores": 64,
    "sata_drives": [{"size_gb": 4_000, "kind": "ssd", "rpm": 0}] * 3,
    "ethernet_mbps": 10_000,
}
"""What a machine tells that passes every rule of hardware, as production asks."""


class Scene:
    """The market and its callers; `anybody` has no key."""

    def __init__(self, service: Service, http: InProcess) -> None:
        self.service = service
        self.http = http
        self.clock = service.clock
        assert isinstance(self.clock, SimulatedClock)
        self.anybody = Caller(http, None)
        self.operator = self._bootstrap()
        self.renter = self.account()
        self.stranger = self.account()
        self.owner = self.account()
        self.rival = self.account()
        self.auditor = self.account(kind="auditor")
        self.provider = Provider(self, self.owner, "alpha", "NVIDIA A100-PCIE-80GB", 2_000_000)
        self.other = Provider(self, self.rival, "beta", "NVIDIA H100 PCIe", 3_000_000)
        self.deposit(self.renter, 100_000_000)

    def at(self, service: Service, http: InProcess) -> Scene:
        """The same market and callers, at a server on a copy of its database and its folder."""
        here = {id(self.service): service, id(self.http): http, id(self.clock): service.clock}
        return copy.deepcopy(self, here)

    def account(self, kind: str = "party", scopes: list[str] | None = None) -> Caller:
        """Open an account; the caller holds its first key."""
        body: dict[str, Any] = {"kind": kind}
        if scopes is not None:
            body["scopes"] = scopes
        told = self.operator.made("/v1/accounts", body)
        return Caller(self.http, told["key"], told["account_id"])

    def client(self, instance: str = "main", **terms: Any) -> Caller:
        """A registered compute client; the caller holds the key of one of its instances."""
        account = self.account(kind="client")
        self.operator.made("/v1/clients", {"client_id": account.account_id, **terms})
        return self.instance(account, instance)

    def instance(self, client: Caller, instance: str) -> Caller:
        """A key of an instance of a compute client, issued by the client."""
        path = f"/v1/clients/{client.account_id}/instances/{instance}/keys"
        return Caller(self.http, client.made(path)["key"], client.account_id)

    def member(self, inviter: Caller, role: str, scopes: list[str]) -> Caller:
        """A new member of the inviter's account, who was invited and holds the key."""
        path = f"/v1/accounts/{inviter.account_id}/invitations"
        code = inviter.made(path, {"role": role, "scopes": scopes})["code"]
        told = self.anybody.made("/v1/invitations/redeem", {"code": code})
        made = Caller(self.http, told["key"], inviter.account_id)
        made.member_id = told["member_id"]
        return made

    def deposit(self, whose: Caller, units: int) -> dict[str, Any]:
        """Micro-credits in cash."""
        return self.operator.made(
            f"/v1/accounts/{whose.account_id}/deposits",
            {
                "source": "cash",
                "amount": {"asset": "CREDIT", "units": str(units)},
                "reference": f"payment {next(_numbers)}",
            },
        )

    def region(self, name: str, **terms: Any) -> str:
        """A region of the first provider, on these terms."""
        body = {
            "provider_id": self.provider.provider_id,
            "name": name,
            "storage_mode": "local",
            "setting": "datacenter",
            "admission": "operator",
            "allow_public_jobs": True,
            **terms,
        }
        region_id: str = self.owner.made("/v1/regions", body)["region_id"]
        return region_id

    def central_region(self, name: str = "central", **terms: Any) -> str:
        """A region of the first provider with its storage node active; its owner has credits."""
        self.deposit(self.owner, 1_000_000)
        region_id = self.region(name, storage_mode="central", **terms)
        path = f"/v1/regions/{region_id}/storage-node"
        self.owner.made(path, {"storage_class": "nvme"})
        self.owner.made(f"{path}/ready")
        return region_id

    def job(self, **changes: Any) -> dict[str, Any]:
        """A job for one whole device of any model."""
        cap = {"asset": "CREDIT", "units": "5000000"}
        return {"image": "work", "max_price_per_gpu_hour": cap, **changes}

    def lease(self, renter: Caller | None = None, **changes: Any) -> dict[str, Any]:
        """An open-ended lease of one device, reserved."""
        body: dict[str, Any] = {"job": self.job(), **changes}
        return (renter or self.renter).made("/v1/leases", body)

    def running(self, **changes: Any) -> dict[str, Any]:
        """A lease whose node said that it runs."""
        lease = self.lease(**changes)
        provider = self.provider if lease["node_id"] == self.provider.node_id else self.other
        provider.node.made(f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready")
        return lease

    def head(self) -> int:
        """The last position of the market log."""
        return self.service.ledger.market.head()[0]

    def sign_head(self) -> None:
        """Let the tree catch up and sign its head, as the jobs do."""
        with self.service.connect() as connection:
            trees.follow_all(connection)
            trees.publish_checkpoint(connection, self.service.signer, self.clock.now_us())

    def _bootstrap(self) -> Caller:
        key = keys.new(live=False)
        key_id = keys.key_id(key)
        assert key_id is not None
        now_us = self.clock.now_us()
        commands = [
            BootstrapOperator(
                account_id="acct_operator",
                member_id="member_operator",
                key_id=key_id,
                key_sha256=keys.digest(key),
                at_us=now_us,
                environment=self.service.settings.environment,
            ),
            publish(CLOUDBENDER, version=1, effective_from_us=0, by="operator", at_us=now_us),
        ]
        self.service.ledger.handle(commands, key=None, now_us=now_us)
        return Caller(self.http, key, "acct_operator")


@contextmanager
def opened(
    database: str, folder: Path, founded: Scene | None = None, /, **settings: Any
) -> Generator[Scene, None, None]:
    """A server with a market, in production unless the settings say so: on a fresh database, or on
    a copy of the one that was `founded`.
    """
    chosen = {"requests_per_second": 1_000_000, "requests_burst": 1_000_000, **settings}
    # Nodes of a scene tell their inventory once, whatever its clock does.
    chosen = {"spec_ttl_s": 0, **chosen}
    in_force = Settings(data_dir=folder, database_url=database, **chosen)
    clock = SimulatedClock(NOW_US)
    with Service.open(in_force, clock=clock) as service:
        app: Any = create_app(service)
        with InProcess(app) as http:
            yield Scene(service, http) if founded is None else founded.at(service, http)


__all__ = ["Caller", "Provider", "Scene", "item", "opened"]
