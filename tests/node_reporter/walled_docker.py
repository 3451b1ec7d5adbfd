"""A docker client for tests, a simulator: what it runs are real processes behind bubblewrap, as the
user and with the mounts, variables and command that `docker run` was asked for. Its images have no
files of their own: each is this machine's /usr. Nothing is limited here, and there is no network.

    python walled_docker.py FOLDER run|inspect|kill|rm|image|version ...

FOLDER holds `here` and `registry`, lines with names of images, and `pull_seconds`; of each
container its process and id, and `asked`, a line for each call.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

FLAGS = ("--rm", "--init", "--read-only")


def main(folder: Path, words: list[str]) -> int:
    with (folder / "asked").open("a") as asked:
        asked.write(json.dumps(words) + "\n")
    match words[0]:
        case "run":
            run(folder, words[1:])
        case "inspect":
            return inspect(folder, words[-1])
        case "kill" | "rm":
            return end(folder, words[-1], signal.SIGTERM if words[0] == "kill" else signal.SIGKILL)
        case "image" if words[1] == "inspect":
            return 0 if words[-1] in lines(folder / "here") else 1
    return 0


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def run(folder: Path, words: list[str]) -> NoReturn:
    at = words.index("--")
    options, image, command = words[:at], words[at + 1], words[at + 2 :]
    told: dict[str, list[str]] = {}
    number = 0
    while number < len(options):
        if options[number] in FLAGS:
            number += 1
            continue
        told.setdefault(options[number], []).append(options[number + 1])
        number += 2
    variables = filed(told.get("--env-file", []))  # read first of all, as the client does
    if image not in lines(folder / "here"):
        if image not in lines(folder / "registry"):
            sys.stderr.write(f"Unable to find image '{image}' locally\npull access denied\n")
            sys.exit(125)
        time.sleep(float((folder / "pull_seconds").read_text()))
        with (folder / "here").open("a") as here:
            here.write(f"{image}\n")
    for one in told.get("--env", []):
        name, found, value = one.partition("=")
        variables[name] = value if found else os.environ[name]
    (name,) = told["--name"]
    known = {"pid": os.getpid(), "id": hashlib.sha256(name.encode()).hexdigest()}
    (folder / f"{name}.json").write_text(json.dumps(known))
    uid, gid = told["--user"][0].split(":")
    argv = ["setpriv", "--reuid", uid, "--regid", gid, "--clear-groups"] if os.getuid() == 0 else []
    argv += ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    for link in ("bin", "lib", "lib64"):
        argv += ["--symlink", f"usr/{link}", f"/{link}"]
    argv += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for one in told.get("--volume", []):
        source, path, *mode = one.split(":")
        argv += ["--ro-bind" if mode == ["ro"] else "--bind", source, path]
    argv += ["--chdir", told["--workdir"][0], "--", *command]
    os.execvpe(argv[0], argv, {"PATH": "/usr/bin:/bin", **variables})


def filed(paths: list[str]) -> dict[str, str]:
    found = (line.split("=", 1) for path in paths for line in Path(path).read_text().split("\n"))
    return {pair[0]: pair[1] for pair in found if len(pair) == 2}


def inspect(folder: Path, name: str) -> int:
    file = folder / f"{name}.json"
    if not file.exists():
        sys.stderr.write("Error: No such container\n")
        return 1
    known = json.loads(file.read_text())
    sys.stdout.write(f"{known['pid']} {known['id']}\n")
    return 0


def end(folder: Path, name: str, number: int) -> int:
    file = folder / f"{name}.json"
    if file.exists():
        with suppress(ProcessLookupError):
            os.kill(json.loads(file.read_text())["pid"], number)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
