"""The node's own page: for this machine alone, nothing secret, nothing to press."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from node_reporter.agent.page import Page, Shown
from node_reporter.reports.server_view import Part, Terms, Today
from tests.node_reporter.model_server import NODE_KEY, ModelServer, serve
from tests.node_reporter.programs.test_program import ROOT, joined, running
from tests.processes import free_port

CHECK = {"name": "driver", "state": "ok", "said": "1 device(s)", "todo": ""}
DEVICE = {
    "id": "GPU-1",
    "name": "NVIDIA H200",
    "ok": True,
    "health": "ok",
    "mig_enabled": False,
    "values": {"energy_mj": "ok", "busy_ppm": "absent"},
}
CHECKED: dict[str, Any] = {
    "checks": [CHECK],
    "devices": [DEVICE],
    "verdict": None,
    "flagged": [],
    "refused": [],
}
SHOWN = Shown(
    node_id="node_1",
    server="https://tallystick.example",
    checked=CHECKED,
    today=Today(day="2026-11-20", gpu_us=5_400_000_000, earned_units=1_250_000, burn_units=0),
    at="2026-11-20 12:00:00 UTC",
    terms=Terms(
        parts=(
            Part(
                gpu_class="datacenter",
                price_units=2_500_000,
                fee_units=250_000,
                owner_units=1_125_000,
                is_burned=False,
            ),
        ),
        held_back_s=259_200,
        minimum_units=25_000_000,
    ),
)


class Looked:
    """Says what the page is told, and counts how often it asked."""

    def __init__(self) -> None:
        self.times = 0
        self.shown = SHOWN

    def __call__(self) -> Shown:
        self.times += 1
        return self.shown


@pytest.fixture
def looked() -> Looked:
    return Looked()


@pytest.fixture
def page(looked: Looked) -> Generator[Page, None, None]:
    with closing(Page(0, looked)) as page:
        yield page


def asked(
    page: Page, method: str = "GET", path: str = "/", host: str | None = None
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    with closing(connection):
        headers = {"Host": f"127.0.0.1:{page.port}" if host is None else host}
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, named, answer.read().decode()


def test_it_says_what_was_earned_and_how_the_node_is(page: Page) -> None:
    status, _, text = asked(page)
    assert status == 200
    assert "1.250000 CREDIT" in text
    assert "1.500 GPU-hours accrued on 2026-11-20" in text
    assert "https://tallystick.example" in text
    assert "NVIDIA H200" in text


def test_it_says_what_part_of_an_hour_is_the_owners_and_when_it_matures(page: Page) -> None:
    _, _, text = asked(page)
    assert "<th scope=row>datacenter<td>2.500000<td>0.250000<td>1.125000" in text
    assert "It matures 72 hours after it was earned. The smallest cash-out is 25.000000" in text


def test_without_an_offer_it_says_how_to_see_the_part_before_offering(
    page: Page, looked: Looked
) -> None:
    assert looked.shown.terms is not None
    looked.shown = replace(SHOWN, terms=replace(looked.shown.terms, parts=()))
    assert "offer create --dry-run" in asked(page)[2]


def test_a_name_that_is_not_this_machines_is_refused(page: Page) -> None:
    """A page elsewhere whose name was made to point here still sends that name."""
    for host in ("evil.example", f"evil.example:{page.port}", f"127.0.0.1.evil:{page.port}", ""):
        status, _, text = asked(page, host=host)
        assert status == 421
        assert "CREDIT" not in text
    assert asked(page, host=f"localhost:{page.port}")[0] == 200


def test_two_names_in_one_request_are_refused(page: Page) -> None:
    with socket.create_connection(("127.0.0.1", page.port), timeout=10) as raw:
        name = f"127.0.0.1:{page.port}"
        raw.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nHost: evil.example\r\n\r\n".encode())
        assert raw.recv(12) == b"HTTP/1.0 421"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"])
def test_only_get_is_answered(page: Page, looked: Looked, method: str) -> None:
    assert asked(page, method)[0] == 405
    assert looked.times == 0


def test_there_is_one_address(page: Page) -> None:
    for path in ("/../etc/passwd", "/status", "/?x=1"):
        assert asked(page, path=path)[0] == 404


def test_it_listens_on_this_machine_alone(page: Page) -> None:
    port = f"{page.port:04X}"
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("no /proc here to read the open ports from")
    listening = [
        line.split()[1] for line in table.read_text().splitlines()[1:] if line.split()[3] == "0A"
    ]
    assert [each.split(":")[0] for each in listening if each.endswith(port)] == ["0100007F"]


def test_nothing_runs_in_it_and_nothing_may_frame_it(page: Page) -> None:
    _, headers, text = asked(page)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in policy
    assert "<script" not in text
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


def test_what_a_driver_or_a_server_said_is_text_and_no_markup(page: Page, looked: Looked) -> None:
    evil = "<img src=x onerror=alert(1)>"
    checked = {
        **CHECKED,
        "checks": [{"name": evil, "state": "failed", "said": evil, "todo": evil}],
        "devices": [{**DEVICE, "id": evil, "name": evil, "health": evil}],
        "verdict": {"joinable": True, "sellable": False, "failing": [evil], "waived": []},
        "flagged": [{"seq": 1, "rule": evil, "us": None, "flags": "1"}],
        "refused": [{"lease_id": evil, "rule": evil, "us": 5_000_000, "until": ""}],
    }
    looked.shown = replace(SHOWN, node_id=evil, server=evil, checked=checked, at=evil)
    _, _, text = asked(page)
    assert "<img" not in text
    assert text.count("&lt;img") >= 9


def test_whoever_reloads_the_server_is_asked_once_a_minute(page: Page, looked: Looked) -> None:
    for _ in range(5):
        assert asked(page)[0] == 200
    assert looked.times == 1


def test_a_reader_with_a_screen_reader_finds_headings_and_headers(page: Page) -> None:
    found: list[tuple[str, dict[str, str | None]]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Tags().feed(asked(page)[2])
    tags = [tag for tag, _ in found]
    assert tags.count("h1") == tags.count("main") == 1
    assert dict(found)["html"]["lang"] == "en"
    scopes = {attributes.get("scope") for tag, attributes in found if tag == "th"}
    assert scopes == {"col", "row"}
    named = {str(attributes["aria-labelledby"]) for tag, attributes in found if tag == "section"}
    assert named == {str(attributes["id"]) for tag, attributes in found if tag == "h2"}


def test_a_node_that_runs_shows_itself_and_stays_small(tmp_path: Path) -> None:
    environment = dict(os.environ)
    with serve(ModelServer()) as url:
        joined(url, tmp_path, environment, "--backend", "sim", "--sim-gpus", "8")
        port = free_port()
        words = running(tmp_path, "--backend", "sim", "--sim-gpus", "8", "--page", str(port))
        node = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert node.stderr is not None
        line = ""
        while "this node's page" not in line:
            line = node.stderr.readline()
            assert line, "it ended without a word"
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request("GET", "/")
            text = connection.getresponse().read().decode()
        status = Path(f"/proc/{node.pid}/status")
        resident = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.exists() else None
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=20)
    assert node.returncode == 0
    assert text.count("healthy") == 8
    assert NODE_KEY not in text
    assert resident is None or int(resident[1]) <= 48 * 1024


def test_a_port_that_is_taken_costs_the_page_and_not_the_metering(tmp_path: Path) -> None:
    server = ModelServer()
    with serve(server) as url, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        joined(url, tmp_path, dict(os.environ), "--backend", "sim")
        port = str(taken.getsockname()[1])
        words = running(tmp_path, "--backend", "sim", "--page", port, "--seconds", "3")
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert f"no page: port {port}" in done.stderr
    assert server.seq > 0
