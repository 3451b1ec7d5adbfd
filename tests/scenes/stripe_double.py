"""A stand-in for Stripe: a real HTTP server that keeps objects as Stripe does, and signs events.

It lets in only its own key, insists on an Idempotency-Key for what creates, answers the same key
alike, refuses it with other parameters, and reads bodies in the form encoding of Stripe's API.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

SECRET_KEY = "sk_test_double_0001"
WEBHOOK_SECRET = "whsec_double_0001"
NOW_S = 1_795_161_720


def nested(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """`a[b][0][c]=1` as dictionaries: Stripe's form encoding."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        first, *rest = name.replace("]", "").split("[")
        place = root
        for part, following in itertools.pairwise([first, *rest]):
            del following
            place = place.setdefault(part, {})
        place[[first, *rest][-1]] = value
    return root


class Double:
    """The objects, and what a test does in the place of payers, banks and Stripe itself."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, dict[str, Any]]] = {
            "checkout/sessions": {},
            "payment_intents": {},
            "refunds": {},
            "transfers": {},
        }
        self.seen: list[tuple[str, str, dict[str, Any]]] = []  # method, path, form
        self.declines: str | None = None  # what a saved card is answered
        self.is_away = False
        self.loses_answers = 0  # so many answers are lost after the work was done
        self.refund_status = "succeeded"
        self.keys: dict[str, tuple[str, int, dict[str, Any]]] = {}
        self.lock = threading.Lock()
        self._numbers = itertools.count(1)

    def id(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers):04}"

    # --- what the API answers ------------------------------------------------------------------

    def create(self, path: str, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        make = {
            "checkout/sessions": self._session,
            "payment_intents": self._intent,
            "refunds": self._refund,
            "transfers": self._transfer,
        }[path]
        status, made = make(form)
        if "id" in made:
            self.objects[path][made["id"]] = made
        return status, made

    def listed(self, path: str, query: dict[str, Any]) -> dict[str, Any]:
        wanted = {
            name: query[name]
            for name in ("customer", "payment_intent", "transfer_group")
            if name in query
        }
        since = int(query.get("created", {}).get("gte", 0))
        found = [
            one
            for one in reversed(list(self.objects[path].values()))
            if all(one.get(name) == value for name, value in wanted.items())
            and one["created"] >= since
        ]
        if "starting_after" in query:
            ids = [one["id"] for one in found]
            found = found[ids.index(query["starting_after"]) + 1 :]
        limit = min(int(query.get("limit", 10)), self.page_max)
        more = len(found) > limit
        return {"object": "list", "url": f"/v1/{path}", "has_more": more, "data": found[:limit]}

    page_max = 100

    def _session(self, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        made = self.id("cs")
        price = form["line_items"]["0"]["price_data"]
        assert price["currency"] == "usd", form
        return 200, {
            "id": made,
            "object": "checkout.session",
            "url": f"https://checkout.stripe.test/{made}",
            "amount_total": int(price["unit_amount"]),
            "metadata": form["metadata"],
            "intent": form["payment_intent_data"],
            "created": NOW_S,
            "customer_creation": form.get("customer_creation"),
        }

    def _intent(self, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        assert form["off_session"] == form["confirm"] == "true", form
        if self.declines is not None:
            error = {
                "type": "card_error",
                "code": "card_declined",
                "message": "declined",
                "decline_code": self.declines,
            }
            return 402, {"error": error}
        return 200, self._paid_intent(
            int(form["amount"]), form["metadata"], form["customer"], form["payment_method"]
        )

    def _paid_intent(
        self,
        amount: int,
        metadata: dict[str, Any],
        customer: str | None,
        method: str | None,
        future: str | None = None,
    ) -> dict[str, Any]:
        return {
            "id": self.id("pi"),
            "object": "payment_intent",
            "amount": amount,
            "currency": "usd",
            "amount_received": amount,
            "status": "succeeded",
            "metadata": metadata,
            "customer": customer,
            "payment_method": method,
            "setup_future_usage": future,
            "created": NOW_S,
        }

    def _refund(self, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, {
            "id": self.id("re"),
            "object": "refund",
            "payment_intent": form["payment_intent"],
            "amount": int(form["amount"]),
            "currency": "usd",
            "metadata": form["metadata"],
            "status": self.refund_status,
            "failure_reason": None,
            "created": NOW_S,
        }

    def _transfer(self, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, {
            "id": self.id("tr"),
            "object": "transfer",
            "amount": int(form["amount"]),
            "currency": form["currency"],
            "destination": form["destination"],
            "transfer_group": form["transfer_group"],
            "metadata": form["metadata"],
            "amount_reversed": 0,
            "created": NOW_S + len(self.objects["transfers"]),
        }

    # --- what happens at Stripe ------------------------------------------------------------------

    def pay(self, session_id: str) -> bytes:
        """Somebody pays on the page; the event that tells it."""
        session = self.objects["checkout/sessions"][session_id]
        future = session["intent"].get("setup_future_usage")
        customer = self.id("cus") if session["customer_creation"] else None
        paid = self._paid_intent(
            session["amount_total"], session["intent"]["metadata"], customer, self.id("pm"), future
        )
        self.objects["payment_intents"][paid["id"]] = paid
        return self.event("payment_intent.succeeded", paid)

    def dispute(self, intent_id: str, amount: int, dispute_id: str, kind: str) -> bytes:
        told = {
            "id": dispute_id,
            "object": "dispute",
            "amount": amount,
            "currency": "usd",
            "payment_intent": intent_id,
            "reason": "fraudulent",
        }
        return self.event(f"charge.dispute.{kind}", told)

    def event(self, kind: str, told: dict[str, Any], **more: Any) -> bytes:
        event = {
            "id": self.id("evt"),
            "object": "event",
            "type": kind,
            "created": NOW_S,
            "data": {"object": told},
            **more,
        }
        return json.dumps(event).encode()

    def last_intent(self) -> dict[str, Any]:
        return list(self.objects["payment_intents"].values())[-1]


def signed(body: bytes, at_s: int = NOW_S, secret: str = WEBHOOK_SECRET) -> str:
    """The header `Stripe-Signature`: HMAC-SHA256 over `<time>.<body>`, in hex."""
    mac = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={mac},v0=00"


class _Handler(BaseHTTPRequestHandler):
    double: Double

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve("GET", nested(parse_qsl(urlsplit(self.path).query)))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self._serve("POST", nested(parse_qsl(raw, keep_blank_values=True)))

    def _serve(self, method: str, form: dict[str, Any]) -> None:
        with self.double.lock:
            status, told = self._answer(method, urlsplit(self.path).path, form)
            lost = self.double.loses_answers > 0 and method == "POST"
            self.double.loses_answers -= lost
        if lost:
            self.close_connection = True
            return
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, method: str, path: str, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.headers.get("Authorization") != f"Bearer {SECRET_KEY}":
            error = {"type": "invalid_request_error", "message": "Invalid API Key provided"}
            return 401, {"error": error}
        if self.double.is_away:
            return 503, {"error": {"type": "api_error", "message": "down"}}
        self.double.seen.append((method, path, form))
        name = path.removeprefix("/v1/")
        if name not in self.double.objects:
            return 404, {"error": {"type": "invalid_request_error", "code": "resource_missing"}}
        if method == "GET":
            return 200, self.double.listed(name, form)
        return self._created(name, form)

    def _created(self, name: str, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        key = self.headers.get("Idempotency-Key")
        if not key:
            return 400, {"error": {"type": "invalid_request_error", "code": "no_key"}}
        mark = json.dumps([name, form], sort_keys=True)
        known = self.double.keys.get(key)
        if known is not None:
            if known[0] != mark:
                return 400, {"error": {"type": "idempotency_error", "message": "other parameters"}}
            return known[1], known[2]
        status, made = self.double.create(name, form)
        self.double.keys[key] = (mark, status, made)
        return status, made


@contextmanager
def running() -> Generator[tuple[Double, str], None, None]:
    """The double and its address."""
    double = Double()
    handler = type("Handler", (_Handler,), {"double": double})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield double, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
