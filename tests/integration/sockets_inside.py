# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: sockets_inside.py WHAT ARGUMENTS... prints JSON. reach: every way to a socket file of outside;
races: the same while other threads and processes change what is called with; own: what the sandbox's programs do among
themselves."""
import array
import ctypes
import errno
import json
import mmap
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE, CLONE_FILES = 56, 0x400
KINDS = {"stream": socket.SOCK_STREAM, "seqpacket": socket.SOCK_SEQPACKET, "datagram": socket.SOCK_DGRAM}


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("n", ctypes.c_size_t)]


class Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint32), ("iov", ctypes.c_void_p), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int)]


class Mmsghdr(ctypes.Structure):
    _fields_ = [("header", Msghdr), ("n", ctypes.c_uint)]


def address(path):
    return struct.pack("H", socket.AF_UNIX) + os.fsencode(path) + b"\0"


def message(name, data=b"leak"):
    """(struct mmsghdr, what has to stay alive)."""
    name_buffer, data_buffer = ctypes.create_string_buffer(name, len(name)), ctypes.create_string_buffer(data, len(data))
    piece = Iovec(ctypes.addressof(data_buffer), len(data))
    m = Mmsghdr(Msghdr(ctypes.addressof(name_buffer), len(name), ctypes.addressof(piece), 1, None, 0, 0), 0)
    return m, (name_buffer, data_buffer, piece)


def attempt(call):
    try:
        result = call()
        return "done" if result is None or result >= 0 else errno.errorcode[ctypes.get_errno()]
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))


def sendmsg(s, path):
    m, alive = message(address(path))
    return LIBC.sendmsg(s.fileno(), ctypes.byref(m.header), 0)


def sendmmsg(s, path):
    m, alive = message(address(path))
    return LIBC.sendmmsg(s.fileno(), ctypes.byref(m), 1, 0)


CALLS = {"connect": lambda s, path: s.connect(path), "sendto": lambda s, path: s.sendto(b"leak", path),
         "sendmsg": sendmsg, "sendmmsg": sendmmsg}


def calls(kind, path):
    """{call: result} for one path, by a new socket of that kind each."""
    found = {}
    for name, call in CALLS.items():
        if name != "connect" and kind != "datagram":
            continue
        with socket.socket(socket.AF_UNIX, KINDS[kind]) as s:
            found[name] = attempt(lambda: call(s, path))
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with a, b:
        if kind == "datagram":  # one that was never bound nor made by socket(2)
            found["pair"] = attempt(lambda: sendmsg(a, path))
    return found


def ways(path):
    """Other names for the socket file, as far as they can be made. The file's own folder may be nobody's here."""
    folder, name = os.path.split(path)
    mine = tempfile.mkdtemp()
    yield "path", path
    yield "other root", "/proc/self/root" + path
    fd = os.open(folder, os.O_PATH)
    yield "descriptor of the folder", f"/proc/self/fd/{fd}/{name}"
    fd = os.open(path, os.O_PATH)
    yield "descriptor of the file", f"/proc/self/fd/{fd}"
    yield "thread's descriptor", f"/proc/thread-self/fd/{fd}"
    yield "descriptor in /dev", f"/dev/fd/{fd}"
    os.symlink(path, mine + "/symlink")
    yield "symbolic link", mine + "/symlink"
    try:
        os.link(path, mine + "/hard")
        yield "hard link", mine + "/hard"
    except OSError:
        pass
    here = os.getcwd()
    os.chdir(folder)
    yield "relative", name
    yield "relative, up", "../" + os.path.basename(folder) + "/" + name
    os.chdir(here)
    shutil.rmtree(mine)


def reach(*named):
    """named: KIND=PATH..."""
    found = {}
    for kind, path in (n.split("=", 1) for n in named):
        for way, name in ways(path):
            for call, result in calls(kind, name).items():
                found[f"{kind} {os.path.basename(path)} {way} {call}"] = result
    return found


def in_thread(function):
    """While it runs there is more than one thread."""
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    try:
        return function()
    finally:
        end.set()
        other.join()


def with_shared_table(function):
    """While it runs another process has the same table of descriptors."""
    pid = LIBC.syscall(CLONE, CLONE_FILES | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    try:
        return function()
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def flip(memory, one, other, end):
    """Another process: changes the address all the time. Never returns."""
    while time.monotonic() < end:
        for _ in range(200):
            memory[:len(one)] = one
            memory[:len(other)] = other
    os._exit(0)


def race_address(own, outer, seconds, kind):
    """connect() or sendmsg() whose address changes between that of a socket of ours and of one of outside."""
    one, other = address(own).ljust(110, b"\0"), address(outer).ljust(110, b"\0")
    memory = mmap.mmap(-1, 4096)
    memory[:len(one)] = one
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    end = time.monotonic() + seconds
    flipper = os.fork()
    if flipper == 0:
        flip(memory, one, other, end)
    tries = {"done": 0, "failed": 0}
    m, alive = message(b"x")
    m.header.name, m.header.namelen = base, 110
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX, KINDS[kind]) as s:
            s.setblocking(False)
            if kind == "datagram":
                result = LIBC.sendmsg(s.fileno(), ctypes.byref(m.header), 0)
            else:
                result = LIBC.connect(s.fileno(), ctypes.c_void_p(base), 110)
        tries["done" if result >= 0 else "failed"] += 1
    os.waitpid(flipper, 0)
    return tries


def race_path(own, outer, seconds, kind):
    """A symbolic link that leads now here and now there."""
    link, end = own + "-link", time.monotonic() + seconds
    flipper = os.fork()
    if flipper == 0:
        while time.monotonic() < end:
            for target in (own, outer):
                os.symlink(target, link + "-new")
                os.rename(link + "-new", link)
        os._exit(0)
    tries = {}
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX, KINDS[kind]) as s:
            s.setblocking(False)
            result = attempt(lambda: s.sendto(b"leak", link) if kind == "datagram" else s.connect(link))
        tries[result] = tries.get(result, 0) + 1
    os.waitpid(flipper, 0)
    return tries


def race_descriptor(own, outer, seconds, kind):
    """A descriptor that is now of a TCP or UDP socket, with which a call may go on, and now of a Unix socket."""
    end = time.monotonic() + seconds
    harmless = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    place = os.dup(harmless.fileno())
    name = address(outer)
    m, alive = message(name)
    buffer = ctypes.create_string_buffer(name, len(name))

    def swap():
        while time.monotonic() < end:
            with socket.socket(socket.AF_UNIX, KINDS[kind]) as s:
                for _ in range(50):
                    LIBC.dup2(s.fileno(), place)
                    LIBC.dup2(harmless.fileno(), place)

    def child():
        pid = LIBC.syscall(CLONE, CLONE_FILES | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            swap()
            os._exit(0)
        return lambda: os.waitpid(pid, 0)

    def thread():
        t = threading.Thread(target=swap)
        t.start()
        return t.join

    tries = {}
    for start in (thread, child):
        end = time.monotonic() + seconds / 2
        wait = start()
        while time.monotonic() < end:
            if kind == "datagram":
                result = attempt(lambda: LIBC.sendmsg(place, ctypes.byref(m.header), 0))
            else:
                result = attempt(lambda: LIBC.connect(place, buffer, len(name)))
            tries[result] = tries.get(result, 0) + 1
        wait()
    return tries


def serve_quietly(path, kind):
    """A socket of ours that takes what comes, in a process of its own."""
    s = socket.socket(socket.AF_UNIX, KINDS[kind])
    s.bind(path)
    if kind != "datagram":
        s.listen(64)
    pid = os.fork()
    if pid == 0:
        while True:
            if kind == "datagram":
                s.recv(1000)
            else:
                s.accept()[0].close()
    s.close()
    return pid


def races(seconds, *named):
    found, mine = {}, tempfile.mkdtemp()
    for kind, outer in (n.split("=", 1) for n in named):
        own = f"{mine}/{kind}"
        server = serve_quietly(own, kind)
        for race in (race_address, race_path, race_descriptor):
            found[f"{race.__name__} {kind}"] = race(own, outer, float(seconds), kind)
        os.kill(server, 9)
        os.waitpid(server, 0)
    shutil.rmtree(mine)
    return found


def dialogue(kind, name, other=None):
    """Two sockets of ours say something to each other, in every way there is."""
    with socket.socket(socket.AF_UNIX, KINDS[kind]) as server, socket.socket(socket.AF_UNIX, KINDS[kind]) as client:
        server.bind(name)
        if other:
            client.bind(other)
        if kind == "datagram":
            client.sendto(b"to", name)
            sendmsg_named = client.sendmsg([b"m", b"sg"], [], 0, name)
            m, alive = message(address(name) if name[0] != "\0" else struct.pack("H", 1) + os.fsencode(name), b"mm")
            sent = LIBC.sendmmsg(client.fileno(), ctypes.byref(m), 1, 0)
            client.connect(name)
            client.send(b"connected")
            got = [server.recvfrom(100) for _ in range(4)]
            if other:
                server.sendto(b"back", got[0][1])
                assert client.recv(100) == b"back"
                assert [g[1] for g in got] == [other if other[0] != "\0" else other.encode()] * 4, got
            assert (sendmsg_named, sent, m.n) == (3, 1, 2)
            return [g[0].decode() for g in got]
        server.listen(4)
        client.connect(name)
        peer, _ = server.accept()
        with peer:
            credentials = struct.unpack("iII", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            assert credentials[0] > 0 and credentials[1:] == (os.geteuid(), os.getegid()), credentials
            client.sendmsg([b"a", b"b"])
            got = [peer.recv(100).decode()]
            r, w = os.pipe()
            peer.sendmsg([b"fd"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w]))])
            data, fds, _, _ = socket.recv_fds(client, 10, 2)
            os.write(fds[0], b"through the pipe")
            got += [data.decode(), os.read(r, 100).decode()]
            for fd in (r, w, *fds):
                os.close(fd)
        return got


def pair(kind):
    a, b = socket.socketpair(socket.AF_UNIX, KINDS[kind])
    with a, b:
        b.setsockopt(socket.SOL_SOCKET, 16, 1)  # SO_PASSCRED
        a.sendmsg([b"pair"])
        data, control, _, _ = b.recvmsg(100, 100)
        ids = struct.unpack("iII", control[0][2])
        assert ids[1:] == (os.getuid(), os.getgid()) and ids[0] > 0, ids
        a.send(b"x")
        b.recv(10)
        return data.decode()


def blocked_stream():
    """More than fits, sent by one call that waits until it is read."""
    a, b = socket.socketpair()
    data = os.urandom(3_000_000)
    got = bytearray()

    def read():
        while len(got) < len(data):
            got.extend(b.recv(65536))
    reader = threading.Thread(target=read)
    reader.start()
    n = a.sendmsg([data[:1_700_000], data[1_700_000:]])
    reader.join(20)
    return n == len(data) and bytes(got) == data


def blocked_datagram():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    got = []
    reader = threading.Thread(target=lambda: [(time.sleep(0.001), got.append(b.recv(10))) for _ in range(300)])
    reader.start()
    for i in range(300):
        a.sendmsg([b"%d" % i])
    reader.join(20)
    return got == [b"%d" % i for i in range(300)]


def interrupted():
    """A signal ends a send that waits."""
    def alarm(*_):
        raise TimeoutError
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    begin = time.monotonic()
    try:
        while True:
            a.sendmsg([b"x" * 1000])
    except TimeoutError:
        return time.monotonic() - begin > 0.3


def broken_pipe():
    seen = []
    signal.signal(signal.SIGPIPE, lambda *_: seen.append(1))
    a, b = socket.socketpair()
    b.close()
    result = attempt(lambda: a.sendmsg([b"x"]))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return result == "EPIPE"


def tcp():
    """Sockets that are not Unix sockets, connected by name and without."""
    with socket.socket() as server, socket.socket() as waits, socket.socket() as not_waiting:
        server.bind(("127.0.0.1", 0))
        server.listen(4)
        waits.connect(server.getsockname())
        waits.sendmsg([b"tc", b"p"])
        not_waiting.setblocking(False)
        result = not_waiting.connect_ex(server.getsockname())
        assert result in (0, errno.EINPROGRESS), result
        assert waits.getblocking()
        refused = attempt(lambda: socket.socket().connect(("127.0.0.1", 9)))
        got = server.accept()[0].recv(10).decode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b:
        a.bind(("127.0.0.1", 0))
        b.sendto(b"u", a.getsockname())
        b.sendmsg([b"d", b"p"], [], 0, a.getsockname())
        got += a.recv(10).decode() + a.recv(10).decode()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        request = struct.pack("=IHHIIBxHiII", 32, 18, 0x301, 1, 0, 0, 0, 0, 0, 0)
        s.sendto(request, (0, 0))
        got += str(struct.unpack("=IHHII", s.recv(65536)[:16])[1])
    return got + " " + refused


def own(folder):
    """{what: {how many threads: result}}"""
    found = {}
    for where, around in (("alone", lambda f: f()), ("threads", in_thread), ("shared", with_shared_table)):
        at = f"{folder}/{where}"
        cases = {f"{kind} {name}": lambda kind=kind, name=name: dialogue(
                    kind, {"path": f"{at}-{kind}", "abstract": f"\0{at}-{kind}"}[name],
                    {"path": f"{at}-{kind}-c", "abstract": f"\0{at}-{kind}-c"}[name] if kind == "datagram" else None)
                 for kind in KINDS for name in ("path", "abstract")}
        cases.update({f"pair {kind}": lambda kind=kind: pair(kind) for kind in KINDS})
        cases.update({f.__name__: f for f in (blocked_stream, blocked_datagram, interrupted, broken_pipe, tcp)})
        for name, case in cases.items():
            try:
                found[f"{name} {where}"] = around(case)
            except (OSError, AssertionError) as e:
                found[f"{name} {where}"] = repr(e)
    return found


def cost(path, seconds):
    """connect and close per second, to a server of ours."""
    server = serve_quietly(path, "stream")
    end, n = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
        n += 1
    os.kill(server, 9)
    os.waitpid(server, 0)
    os.unlink(path)
    return n / float(seconds)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
