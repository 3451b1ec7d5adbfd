"""A passkey in a real browser: the lines of the page `docs/howto/passkeys.md`, run as they stand.

The authenticator is the browser's own virtual one. Needs Chromium, as `test_console.py` does.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.cli.test_remote import Server, server
from tests.e2e.pages.browser import CHROMIUM, browsing

__all__ = ["server"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "passkeys.md"
MAKE, ASSERT = re.findall(r"```js\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def page(tmp_path: Path) -> Generator[Page, None, None]:
    with browsing(tmp_path) as found:
        yield found


class Terminal:
    """Standard input of a person who takes the challenge to the browser and pastes its answer."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def readline(self) -> str:
        told = sys.stderr
        assert isinstance(told, io.StringIO), "captured by tallystick()"
        (challenge,) = re.findall(r"challenge ([0-9a-f]{64});", told.getvalue())
        return str(self._page.evaluate(ASSERT.replace("0" * 64, challenge))) + "\n"


@pytest.mark.guides(
    "tests/api/authority/test_passkeys.py"
    "::test_passkeys_enrol_vote_and_sign_acts_and_an_export_shows_it"
)
def test_a_browsers_passkey_enrols_and_votes_as_the_page_says(
    server: Server, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = server.url.rpartition(":")[2].rstrip("/")
    page.goto(f"http://localhost:{port}/v1/health")
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    key = page.evaluate(MAKE)
    assert key.endswith(f"@http://localhost:{port}")
    mine, other = tmp_path / "me.key", tmp_path / "other.key"
    assert server.run("governor", "make-key", mine, "--passkey", key[:-1] + "/").code == 2
    assert server.run("governor", "make-key", mine, "--passkey", key).code == 0
    monkeypatch.setattr(sys, "stdin", Terminal(page))
    told = server.run("governor", "enrol", "--key", mine, "--json")
    assert told.document["governors"][0]["key"] == key, told
    assert server.run("governor", "make-key", other).code == 0
    assert server.run("governor", "enrol", "--key", other).code == 0
    voted = server.run("governor", "approve", 1, "--key", mine, "--json").document
    assert (voted["version"], len(voted["governors"])) == (2, 2)
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}\n"))
    assert server.run("governor", "enrol", "--key", mine).code == 2, "this is no assertion"
