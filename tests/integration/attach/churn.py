# SPDX-License-Identifier: Apache-2.0
"""What test_churn.py needs: containers by each way of each engine, and threads that kill meanwhile. All adapters are called by scripts
that first tell their process id on a FIFO; the dice say which of these processes is killed, and when."""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time

import cni_engines
import guests
import lab
import support
from bundles import PROGRAM
from cni_engines import Chain
from support import SLOW, sh, wait_until

STEP_S = 0.15  # an adapter is killed within this time, most of them soon: about as long as one of its calls takes
CALL_S = 0.8   # the same of an engine's command
PATIENCE_S = 3  # for a command, where nothing is slow
NETWORK = "churned"  # of vethguard-docker


class Strikes(threading.Thread):
    """Kills a share of the processes that tell their ids."""

    def __init__(self, dice, share):
        super().__init__(daemon=True)
        self.dice, self.share, self.told, self.killed, self.over = dice, share, 0, 0, False
        self.path = support.LAB.path("churn-fifo")
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR)  # never empty of writers, and none of the scripts waits

    def script(self, place, program, *argv):
        """The program, under this path, behind the FIFO."""
        with open(place, "w") as f:
            f.write(f'#!/bin/sh\necho $$ 1<>{self.path}\nexec {program} {" ".join(argv)} "$@"\n')
        os.chmod(place, 0o755)
        return place

    def run(self):
        rest = b""
        while not self.over:
            if select.select([self.fd], [], [], 0.1)[0]:
                *whole, rest = (rest + os.read(self.fd, 65536)).split(b"\n")
                for word in whole:
                    self.told += 1
                    if self.dice.random() < self.share:
                        self.strike(int(word), self.dice.random() ** 3 * STEP_S)

    def strike(self, pid, after):
        """Not another process of that id: the descriptor is one of this process."""
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return

        def kill():
            if not select.select([fd], [], [], 0)[0]:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
                self.killed += 1
            os.close(fd)
        threading.Timer(after, kill).start()

    def stop(self):
        self.over = True
        self.join()
        time.sleep(2 * STEP_S)
        os.close(self.fd)


class Way:
    """How a container is started and removed, as words of an engine's command."""

    def __init__(self, name, engine, *words):
        self.name, self.engine, self.words = name, engine, words

    def command(self, *argv):
        return [self.engine.name, *argv]

    def run(self, container, *argv):
        before = [w for w in self.words if isinstance(w, tuple)]  # of podman itself
        return [self.engine.name, *(word for words in before for word in words), "run", "-d", "--name", container,
                *(w for w in self.words if isinstance(w, str)), self.engine.IMAGE, *argv]

    def remove(self, container):
        return self.command("rm", "-f", *(["-t", "0"] if self.engine.name == "podman" else []), container)

    def popen(self, argv):
        return subprocess.Popen(argv, env=self.engine.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def there(self):
        """Names of all containers of the engine; of pods see churn_cri.Way."""
        return sh(*self.command("ps", "-a", "--format", "{{.Names}}"), env=self.engine.env).split()


def runtime_config(daemon, policies, directory):
    return support.LAB.write("churn-runtime.yaml", f"policies: {policies}\nsocket: {daemon.socket}\ndirectory: {directory}\n"
                                                   f"runtime: {shutil.which('runc')}\n")


def docker_ways(config, strikes):
    """(engine, ways): the runtime, without a network of Docker's and with one, and the network of vethguard-docker, whose program has
    to be there before it is used."""
    program = strikes.script(support.LAB.path("churn-docker-runtime"), PROGRAM, "--vethguard-config=" + config)
    engine = guests.Engine("docker", {"vethguard": {"path": program}})
    guarded = ["--runtime", "vethguard", "-e", "VETHGUARD_POLICY=agent"]
    return engine, [Way("docker, runtime", engine, *guarded, "--network", "none"), Way("docker, runtime, its own network", engine, *guarded),
                    Way("docker, network", engine, "--network", NETWORK)]


def podman_ways(config, strikes, daemon, policies):
    """(engine, ways, chains of CNI)."""
    bin_dir, hooks = support.LAB.path("churn-cni"), support.LAB.path("churn-hooks")
    for folder in (bin_dir, hooks):
        os.makedirs(folder)
    strikes.script(bin_dir + "/vethguard-cni", cni_engines.PLUGIN)
    for name in os.listdir(cni_engines.PLUGINS):
        if name != "vethguard-cni":
            strikes.script(f"{bin_dir}/{name}", f"{cni_engines.PLUGINS}/{name}")
    program = strikes.script(support.LAB.path("churn-podman-runtime"), PROGRAM, "--vethguard-config=" + config)
    with open(os.path.join(lab.ROOT, "contrib/runtime/oci-hooks.json")) as f, open(hooks + "/vethguard.json", "w") as out:
        out.write(f.read().replace("/usr/libexec/vethguard/vethguard-runtime", program))
    engine = cni_engines.PodmanCni(bin_dir)
    plugin = cni_engines.guard(daemon.socket, policies)
    chains = [Chain("alone", [plugin]), Chain("behind", [cni_engines.bridge("chnbr0", "10.82.0.0/16"), plugin])]
    for chain in chains:
        engine.network(chain.conflist())
    none = ["--network", "none"]
    return engine, [
        Way("podman, runtime", engine, ("--runtime", program), *none, "-e", "VETHGUARD_POLICY=agent"),
        Way("podman, hook", engine, ("--hooks-dir", hooks), *none, "--annotation", "org.vethguard.policy=agent"),
        *(Way("podman, CNI: " + chain.name, engine, "--network", chain.name) for chain in chains)], chains


class Storm(threading.Thread):
    """Kills the daemon, vethguard-docker, dockerd and the containerd of pods now and then, and starts them again after a while in which they are missed."""

    def __init__(self, dice, daemon, driver, engine, pods):
        super().__init__(daemon=True)
        self.dice, self.over, self.killed, self.failed = dice, threading.Event(), {}, None
        self.who = [("vethguardd", 4, daemon.kill, daemon.start), ("vethguard-docker", 3, driver.kill, driver.start),
                    ("dockerd", 1, engine.kill_dockerd, engine.start_dockerd), ("containerd", 2, pods.kill, pods.start)]

    def run(self):
        try:
            while not self.over.wait(self.dice.uniform(1.5, 5)):
                name, _, kill, start = self.dice.choices(self.who, [w[1] for w in self.who])[0]
                kill()
                self.killed[name] = self.killed.get(name, 0) + 1
                time.sleep(self.dice.uniform(0, 1))
                start()
        except BaseException as e:
            self.failed = e
            raise

    def stop(self):
        self.over.set()
        self.join()


class Lives:
    """Containers that come and go in several threads at once, until there were enough and the time is over."""

    def __init__(self, ways, dice, count, seconds, at_once, argv):
        self.ways, self.dice, self.count, self.argv = ways, dice, count, argv
        self.begun, self.started, self.killed, self.refused, self.hung = 0, dict.fromkeys((w.name for w in ways), 0), 0, {}, []
        self.lock, self.began = threading.Lock(), time.monotonic()
        self.end, self.bound = self.began + seconds, self.began + 10 * max(seconds, 60)
        self.at_once, self.threads = at_once, []

    def next(self):
        """(number, way, dice of its own); None: it is over."""
        with self.lock:
            now = time.monotonic()
            if now > self.bound or (now > self.end and self.begun >= self.count):
                return None
            self.begun += 1
            return self.begun, self.dice.choice(self.ways), type(self.dice)(self.dice.random())

    def command(self, way, argv, dice):
        """An engine's command, which may be killed meanwhile; its status."""
        p = way.popen(argv)
        if dice.random() < 0.15:
            try:
                p.wait(dice.random() * CALL_S)
            except subprocess.TimeoutExpired:
                p.kill()
                with self.lock:
                    self.killed += 1
        try:
            said, _ = p.communicate(timeout=PATIENCE_S * SLOW)
        except subprocess.TimeoutExpired:  # Podman waits for a conmon that waits for whoever was killed
            p.kill()
            said, _ = p.communicate()
            with self.lock:
                self.hung.append(" ".join(argv[:3]))
        return p.returncode, said

    def live(self, number, way, dice):
        name = f"churn{number}"
        status, said = self.command(way, way.run(name, *self.argv), dice)
        with self.lock:
            self.started[way.name] += status == 0
            if status > 0:
                reason = said.strip()[-160:]
                self.refused[reason] = self.refused.get(reason, 0) + 1
        time.sleep(dice.random() * 1.5)
        self.command(way, way.remove(name), dice)

    def work(self):
        while one := self.next():
            self.live(*one)

    def run(self):
        """Says how far it is now and then."""
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(self.at_once)]
        for t in self.threads:
            t.start()
        said = time.monotonic()
        while any(t.is_alive() for t in self.threads):
            time.sleep(0.2)
            if time.monotonic() - said > 30:
                said = time.monotonic()
                guests.say(self.text())

    def text(self):
        return f"{time.monotonic() - self.began:.0f} s: {self.begun} containers, {sum(self.started.values())} of them started"


def processes(folder):
    """{name: how many} of vethguard's programs whose command line or parent's is of this folder's daemon, zombies not."""
    found = {}
    for pid, row in support.process_table().items():
        try:
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if program.startswith(lab.BIN + "/") and row[2] not in "ZX" and of_lab(pid, folder):
            found[row[0]] = found.get(row[0], 0) + 1
    return found


def of_lab(pid, folder):
    """Its own command line names the folder, or that of whoever has started it."""
    for _ in range(8):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if folder.encode() in f.read():
                    return True
        except OSError:
            return False
        row = support.process_row(pid)
        if not row or row[1] <= 1:
            return False
        pid = row[1]
    return False


def traces(daemon, driver, directory):
    """The machine's links, namespaces, mounts, addresses, rules, processes and records. Those of dockerd and Podman themselves are
    the same before and after."""
    with open("/proc/self/mountinfo") as f:
        mounts = sorted(w for w in (line.split()[4] for line in f) if w.startswith(("/run/netns", daemon.state, directory)))
    deleted = os.path.join(daemon.state, "cni-deleted")
    return {"links": sorted(link["ifname"] for link in json.loads(sh("ip", "-j", "link"))), "mounts": mounts,
            "namespaces": sorted(n for n in os.listdir("/run/netns") if n != "outside"),
            "addresses": sorted(n for _, _, names in os.walk(support.LAB.path("ipam")) for n in names if n[0].isdigit() or ":" in n),
            "rules": [line for line in sh("nft", "list", "ruleset").splitlines() if "vethguard" in line or "vgd" in line],
            "sandboxes": sorted(s["name"] for s in daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]),
            **{what: sorted(os.listdir(os.path.join(daemon.state, what))) for what in ("netns", "names")}, "records": os.listdir(daemon.state + "/sandboxes"),
            "entries": sorted(n for n in os.listdir(directory) if n != ".lock") if os.path.isdir(directory) else [],
            "networks": sorted(os.listdir(driver.state)), "notes": sorted(os.listdir(deleted)) if os.path.isdir(deleted) else [],
            "processes": processes(support.LAB.dir)}


def leases():
    """(network, id) of the containers that have an address of host-local's."""
    found = set()
    for folder, _, names in os.walk(support.LAB.path("ipam")):
        for name in names:
            if name[0].isdigit() or ":" in name:
                with open(os.path.join(folder, name)) as f:
                    found.add((os.path.basename(folder), f.readline().strip()))
    return found


def remove_links():
    """Pairs of Docker's own bridge ("veth" and seven digits); how many."""
    names = re.findall(r"(?m)^\d+: (veth[0-9a-f]{7})@", sh("ip", "-o", "link"))
    return sum(subprocess.run(["ip", "link", "del", n], capture_output=True, check=False).returncode == 0 for n in names)


def end_waiting(directory):
    """Ends first processes of containers that the runtime knows and no engine; how many."""
    ended = 0
    for name in os.listdir(directory) if os.path.isdir(directory) else []:
        state = f"{directory}/{name}/state.json"
        if name != ".lock" and os.path.exists(state):
            with open(state) as f:
                state = json.load(f)
            # vethguard-runtime's own states, and runc's
            pid, started = state.get("pid", state.get("init_process_pid")), state.get("start_time", state.get("init_process_start"))
            row = support.process_row(pid)
            if row and row[3] == started:
                os.kill(pid, signal.SIGKILL)
                subprocess.run(["runc", "delete", "--force", state["id"]], capture_output=True, check=False)  # Podman's, of /run/runc
                ended += 1
    return ended


def holders():
    """Who is in a network namespace besides this test's own and the machine's (namespace, process, state, program and command line of each),
    and the mounts of namespaces."""
    others, lines = [os.readlink(f"/proc/{pid}/ns/net") for pid in ("self", 1)], []
    for pid, row in support.process_table().items():
        try:
            place = os.readlink(f"/proc/{pid}/ns/net")
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if place not in others and lab.BIN not in words:
            lines.append(f"{place} {pid} (of {row[1]}) {row[2]} {row[0]}: {words[:200]}")
    with open("/proc/self/mountinfo") as f:
        mounts = [line.split()[4] for line in f if " - nsfs " in line]
    return "\n".join(["in other network namespaces:", *sorted(lines), "mounts of namespaces:", *mounts])


def settled(take, seconds=60):
    """The traces, once they stay the same for a second (pools fill themselves)."""
    last = []

    def same():
        last.append(take())
        return len(last) > 4 and all(t == last[-1] for t in last[-5:])
    wait_until(same, seconds * SLOW, 0.25)
    return last[-1]
