"""A job gets no right it was not granted: files, variables, network, processes, time. For real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from node_reporter.__main__ import main
from node_reporter.executor import launch
from node_reporter.executor.gpu_files import DeviceFiles
from node_reporter.executor.runner import Grant, Limits, NotStarted, RunnerUnusable
from node_reporter.executor.sandbox import PATH, SandboxRunner, TrustedRunner, job_user
from tests.node_reporter.confined import MIB, Ground, finished, ground, needs_walls, processes_with

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's"),
    needs_walls,
]
PYTHON = "/usr/bin/python3"
needs_python = pytest.mark.skipif(not Path(PYTHON).exists(), reason=f"no {PYTHON}")
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        for number in range(3):
            os.close(number)
        os.execvp("sleep", ["sleep", sys.argv[1]])
    os._exit(0)
os.wait()
"""


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


def test_a_job_runs_and_its_exit_code_comes_back(here: Ground) -> None:
    done = here.sh("echo out; echo err >&2; exit 7")
    assert (done.code, done.out, done.err) == (7, "out\n", "err\n")
    assert here.sh("kill -9 $$").code == 137
    assert here.run("no-such-program").code != 0


def test_a_job_cannot_read_the_executors_key_nor_anybodys_home(
    here: Ground, tmp_path: Path
) -> None:
    secret = tmp_path / "executor.key"
    secret.write_text("ts_exec_secret")
    secret.chmod(0o644)  # its mode alone does not protect it
    places = [
        secret,
        Path.home(),
        Path("/root"),
        Path("/home"),
        Path("/etc/shadow"),
        Path("/var"),
        Path("/run"),
        here.jobs,
        Path("/proc/1/root", "home"),
    ]
    for place in places:
        done = here.sh(f"cat {place}/* {place} || ls {place}/")
        assert done.code != 0, place
        assert "ts_exec_secret" not in done.out + done.err
    assert here.sh("cat /proc/*/environ | tr '\\0' '\\n' | grep -c TALLYSTICK").out == "0\n"


def test_a_job_sees_its_granted_variables_and_no_other(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_EXECUTOR_SECRET", "hunter2")
    done = here.run("env", environment={"HF_TOKEN": "granted"})
    names = {line.partition("=")[0] for line in done.out.splitlines()}
    assert names <= {"PATH", "HF_TOKEN", "PWD"}
    assert "HF_TOKEN=granted" in done.out
    assert "hunter2" not in here.sh("cat /proc/*/environ; env").out


def test_granted_values_are_in_no_command_line(here: Ground) -> None:
    run = here.start("sleep", "30", environment={"HF_TOKEN": "value-nobody-else-reads"})
    assert processes_with("value-nobody-else-reads") == []
    run.end()
    finished(run)


@needs_python
def test_a_job_has_no_network_unless_granted(here: Ground) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ask = f"import socket; socket.create_connection(('127.0.0.1', {port}), 3); print('in')"
        threading.Thread(target=lambda: _accept(server), daemon=True).start()
        walled = here.run(PYTHON, "-c", ask)
        assert walled.code != 0
        assert "in" not in walled.out.split()
        assert here.run(PYTHON, "-c", ask, network=True).out == "in\n"
    interfaces = here.run(PYTHON, "-c", "import socket; print(socket.if_nameindex())")
    assert interfaces.out == "[(1, 'lo')]\n"


def _accept(server: socket.socket) -> None:
    try:
        connection, _ = server.accept()
        connection.close()
    except OSError:
        return


@needs_python
def test_a_job_reaches_no_socket_of_the_machine(here: Ground) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0tallystick-test-socket")
        server.listen()
        ask = "import socket; socket.socket(socket.AF_UNIX).connect('\\0tallystick-test-socket')"
        assert here.run(PYTHON, "-c", ask).code != 0


def test_a_job_writes_in_its_folder_and_nowhere_else(here: Ground) -> None:
    places = "/ /usr /etc /dev /proc/sys/kernel/core_pattern /lib /bin"
    done = here.sh(
        f"for p in {places}; do (echo x > $p/x || echo x > $p) 2>/dev/null && echo wrote $p; done;"
        " echo kept > kept; echo kept > /tmp/kept; cat kept /tmp/kept"
    )
    assert done.out == "kept\nkept\n"
    assert not Path("/tmp/kept").exists()
    made = here.jobs / "lease_test" / "work" / "kept"
    assert made.read_text() == "kept\n"
    assert made.stat().st_uid != 0, "root runs no jobs"
    assert made.stat().st_mode & 0o077 == 0


def test_a_job_sees_no_process_and_no_device_of_the_machine(here: Ground) -> None:
    done = here.sh("ls -d /proc/[0-9]* | wc -l; ls /dev")
    count, *devices = done.out.split()
    assert int(count) <= 5
    assert set(devices) <= {
        "console",
        "core",
        "fd",
        "full",
        "null",
        "ptmx",
        "pts",
        "random",
        "shm",
        "stderr",
        "stdin",
        "stdout",
        "tty",
        "urandom",
        "zero",
    }


def test_a_job_has_no_capability_and_gains_none(here: Ground) -> None:
    status = here.run("cat", "/proc/self/status").out
    told = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert {told[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert told["NoNewPrivs"] == "1"
    assert here.run("unshare", "--user", "--map-root-user", "true").code != 0, "no nested walls"
    assert here.sh("mount -t tmpfs none /mnt").code != 0


@needs_python
@pytest.mark.parametrize("by", ["stop", "its own end"])
def test_v_14_no_child_survives_its_lease(by: str, here: Ground) -> None:
    """fork, fork, setsid, closed files: the whole tree is one lease's, and ends with it."""
    mark = f"{1000 + os.getpid()}.{len(by)}"
    more = "; sleep 300" if by == "stop" else "; sleep 1"
    run = here.start("sh", "-c", f"{PYTHON} -c '{DAEMON}' {mark}{more}")
    ends = time.monotonic() + 10
    while not processes_with(f"sleep {mark}"):
        assert time.monotonic() < ends, "it never started"
        time.sleep(0.01)
    if by == "stop":
        run.end()
    finished(run)
    assert processes_with(f"sleep {mark}") == []


def test_a_job_is_asked_to_stop_before_it_is_ended(here: Ground) -> None:
    run = here.start("sh", "-c", "trap 'echo saved; exit 3' TERM; echo up; sleep 60 & wait")
    time.sleep(0.3)
    run.ask_to_stop()
    done = finished(run)
    assert (done.code, done.out) == (3, "up\nsaved\n")


@needs_python
def test_limits_bite(here: Ground) -> None:
    small = Limits(memory_bytes=64 * MIB, processes=20, folder_bytes=MIB, open_files=16)
    memory = here.run(PYTHON, "-c", "x = bytearray(512 * 1024 * 1024)", limits=small)
    assert "MemoryError" in memory.err
    files = here.sh("head -c 8000000 /dev/zero > big; stat -c %s big", limits=small)
    assert int(files.out or 0) <= MIB
    shared = here.sh("head -c 64000000 /dev/zero > /dev/shm/big", limits=small)
    assert shared.code != 0
    opened = here.run(PYTHON, "-c", "x = [open('/dev/null') for _ in range(99)]", limits=small)
    assert "Too many open files" in opened.err
    bomb = "import os,time\nfor _ in range(99):\n  if os.fork() == 0: time.sleep(5); os._exit(0)"
    assert "BlockingIOError" in here.run(PYTHON, "-c", bomb, limits=small).err
    spin = here.run(PYTHON, "-c", "while True: pass", limits=Limits(cpu_seconds=1))
    assert spin.code in (137, 152), "SIGXCPU or SIGKILL"


def test_what_the_owner_lets_be_read_is_read_only(here: Ground, tmp_path: Path) -> None:
    shared = tmp_path / "models"
    shared.mkdir(mode=0o755)
    (shared / "weights").write_text("w")
    (shared / "weights").chmod(0o666)
    done = here.sh(f"cat {shared}/weights; echo x > {shared}/weights", read_only=(str(shared),))
    assert done.out == "w"
    assert done.code != 0
    assert (shared / "weights").read_text() == "w"


def test_a_job_does_not_begin_under_an_executor_that_has_ended(tmp_path: Path) -> None:
    """It died while the launcher was starting, so that nobody tells the launcher of its end."""
    done = tmp_path / "done"
    told = {"argv": ["touch", str(done)], "limits": {}, "variables": ["PATH"]}
    for executor, code in ((os.getpid(), 0), (1, -signal.SIGKILL)):
        launcher = [sys.executable, "-I", "-S", launch.__file__]
        words = [*launcher, json.dumps({**told, "executor": executor})]
        ran = subprocess.run(words, env={"PATH": PATH}, check=False)
        assert (ran.returncode, done.exists()) == (code, code == 0)
        done.unlink(missing_ok=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests are not root's: the others show it")
@needs_python
def test_walls_stand_without_root(tmp_path: Path) -> None:
    """The same runner, as the user nobody would start it: user namespaces need no root."""
    home = Path("/tmp") / f"tallystick-walls-{os.getpid()}"
    shutil.rmtree(home, ignore_errors=True)
    room = home / "node_reporter" / "executor"
    room.mkdir(parents=True)
    shutil.copy(Path(launch.__file__).parents[1] / "__init__.py", room.parent)
    for module in ("__init__", "launch", "nameless", "runner", "sandbox", "seccomp", "usage"):
        shutil.copy(Path(launch.__file__).with_name(f"{module}.py"), room)
    (home / "jobs").mkdir(mode=0o777)
    script = (
        "from pathlib import Path\nfrom node_reporter.executor.runner import *\n"
        "from node_reporter.executor.sandbox import *\n"
        "jobs = Path('jobs').resolve()\nrunner = SandboxRunner(jobs)\nrunner.check()\n"
        "folder = make_folder(jobs, 'lease_x', None)\n"
        "command = ('sh', '-c', 'id -u; sleep 1; ls /tmp /home /root')\n"
        "grant = Grant(lease_id='lease_x', command=command,"
        " image=None, environment={'PATH': PATH}, folder=folder, device_ids=())\n"
        "import time\nrun = runner.start(grant)\ntime.sleep(0.5)\nusing = run.using()\n"
        "assert using.processes >= 2 and not using.unseen, using\n"
        "out, err = run._process.communicate()\nprint(out.decode(), run.poll())\n"
    )
    for path in [home, *home.rglob("*")]:
        os.chmod(path, 0o777 if path.is_dir() else 0o644)
    done = subprocess.run(
        [PYTHON, "-c", script],
        cwd=home,
        user=65_534,
        group=65_534,
        extra_groups=[],
        env={"PATH": PATH, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    shutil.rmtree(home, ignore_errors=True)
    assert done.stdout.split()[0] == "1000", done.stderr
    assert done.stdout.split()[-1] != "0", "there is no home to list"
    del tmp_path


# --- without walls ------------------------------------------------------------------------------


def test_without_a_confinement_that_works_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "executor"
    folder.mkdir()
    (folder / "executor.toml").write_text(
        'url = "http://127.0.0.1:1"\nnode_id = "node_12345678"\nexecutor = "e0e0e0e0e0e0e0e0"\n'
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["exec", "--executor-state", str(folder), "--seconds", "1"]) == 1
    said = capsys.readouterr().err
    assert "bubblewrap is not installed" in said
    assert "--trusted" in said
    with pytest.raises(RunnerUnusable):
        SandboxRunner(tmp_path).check()
    with pytest.raises(NotStarted):
        SandboxRunner(tmp_path).start(
            Grant(
                lease_id="x",
                command=("true",),
                image=None,
                environment={},
                folder=tmp_path,
                device_ids=(),
            )
        )


@needs_python
def test_a_trusted_job_has_limits_and_leaves_nothing_behind_and_that_is_all(
    here: Ground, tmp_path: Path
) -> None:
    here.runner = TrustedRunner(job_user(None))
    assert here.sh("exit 7").code == 7
    assert here.run("no-such-program").code == 127
    seen = tmp_path / "seen"
    seen.write_text("open")
    seen.chmod(0o644)
    assert here.run("cat", str(seen)).out == "open", "no walls: only for renters who are trusted"
    small = Limits(memory_bytes=64 * MIB)
    done = here.run(PYTHON, "-c", "x = bytearray(512 * 1024 * 1024)", limits=small)
    assert "MemoryError" in done.err
    mark = f"{2000 + os.getpid()}.5"
    run = here.start("sh", "-c", f"{PYTHON} -c '{DAEMON}' {mark}; sleep 300")
    ends = time.monotonic() + 10
    while not processes_with(f"sleep {mark}"):
        assert time.monotonic() < ends, "it never started"
        time.sleep(0.01)
    run.end()
    assert finished(run).code == 137
    assert processes_with(f"sleep {mark}") == []


# --- devices ---------------------------------------------------------------------------------


def test_a_job_gets_the_files_of_its_own_gpus_only(tmp_path: Path) -> None:
    """The form of the driver's files is NVIDIA's (580.x); there is no GPU on this machine."""
    driver = tmp_path / "gpus"
    for minor, bus in enumerate(("0000:07:00.0", "0000:0a:00.0")):
        folder = driver / bus
        folder.mkdir(parents=True)
        (folder / "information").write_text(
            f"Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-{minor}\nBus Type: \t PCIe\n"
            f"Device Minor: \t {minor}\nGPU Excluded:\t No\n"
        )
    dev = tmp_path / "dev"
    dev.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (dev / name).touch()
    files = DeviceFiles(driver, tmp_path)
    assert files.of(["GPU-1"]) == ("/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidiactl")
    assert files.of(["GPU-sim"]) == ()
