"""A docker client for tests: it really runs the command, on this machine, and knows no image.

It keeps what it was asked in `asked`, its own variables in `environment`, and of its one container
the process and the labels. With a file `fails` beside them, `run` and `pull` answer what that
holds, as where an image cannot be pulled; with `created`, the container was made and has not begun.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
KNOWN = HERE / "container.json"


def main(words: list[str]) -> int:
    with (HERE / "asked").open("a") as asked:
        asked.write(json.dumps(words) + "\n")
    actions = {"run": run, "inspect": inspect, "stop": stop, "rm": remove}
    return {**actions, "image": pull, "pull": pull}[words[0]](words)


def pull(_words: list[str]) -> int:
    if not (HERE / "fails").exists():
        return 0
    sys.stderr.write((HERE / "fails").read_text())
    return 1


def run(words: list[str]) -> int:
    if (HERE / "fails").exists():
        sys.stderr.write((HERE / "fails").read_text())
        return 125
    assert not KNOWN.exists(), "its name is taken"
    at = words.index("--")
    named = [words[i + 1] for i in range(at) if words[i] == "--env"]
    reads_file = "--env-file" in words and words[words.index("--env-file") + 1] == "/dev/stdin"
    lines = sys.stdin.read().split("\n") if reads_file else []
    filed = dict(line.split("=", 1) for line in lines if line)
    (HERE / "environment").write_text(json.dumps(dict(os.environ)))
    labels = dict(words[i + 1].split("=") for i in range(at) if words[i] == "--label")
    script = f'cd {HERE}; "$@" >> printed 2>&1; echo $? > new; mv new code'
    (HERE / "code").unlink(missing_ok=True)  # before: a short command has ended at once
    process = subprocess.Popen(
        ["sh", "-c", script, "sh", *words[at + 2 :]],
        env={"PATH": os.environ["PATH"], **filed, **{name: os.environ[name] for name in named}},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    KNOWN.write_text(json.dumps({"pid": process.pid, "labels": labels}))
    return 0


def inspect(_words: list[str]) -> int:
    if not KNOWN.exists():
        sys.stderr.write("Error: No such container\n")
        return 1
    labels = json.loads(KNOWN.read_text())["labels"]
    code = (HERE / "code").read_text().strip() if (HERE / "code").exists() else None
    state = "running 0" if code is None else f"exited {code}"
    state = "created 0" if (HERE / "created").exists() else state
    told = state, labels["tallystick.boot"], labels["tallystick.deployment"]
    sys.stdout.write(" ".join(told) + "\n")
    return 0


def stop(_words: list[str]) -> int:
    pid = json.loads(KNOWN.read_text())["pid"]
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.01)
    if not (HERE / "code").exists():
        (HERE / "code").write_text("137")
    return 0


def remove(words: list[str]) -> int:
    if KNOWN.exists():
        stop(words)
        KNOWN.unlink()
        (HERE / "created").unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
