# SPDX-License-Identifier: Apache-2.0
"""Stands in for Firecracker's vsock device, where neither Firecracker nor /dev/kvm is at hand. It follows what Firecracker publishes of
the device (docs/vsock.md of its repository): a connection of the guest to CID 2, port PORT, becomes a connection of the monitor to the
Unix socket UDS_PATH_PORT; where nobody listens there, the guest gets a reset. Connections of the host to UDS_PATH are not played.

    firecracker_vsock.py monitor DEVICE UDS_PATH UID GID [CHROOT]   as a jailer starts it: chroot, then that user without groups
    firecracker_vsock.py guest DEVICE PORT COMMAND...       a port 3128 of the guest's loopback, as socat makes one of VSOCK-CONNECT

DEVICE, a Unix socket, is what carries virtio's queues: a line "PORT" asks for a connection, "RESPONSE" grants it (VIRTIO_VSOCK_OP_*), the
end of the stream refuses it."""
import os
import socket
import subprocess
import sys
import threading


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def join(a, b):
    other = threading.Thread(target=pump, args=(a, b), daemon=True)
    other.start()
    pump(b, a)
    other.join()
    a.close()
    b.close()


def line(s):
    text = b""
    while not text.endswith(b"\n"):
        piece = s.recv(1)
        if not piece:
            return None
        text += piece
    return text.decode().strip()


def serve(guest, uds_path):
    port = line(guest)
    host = socket.socket(socket.AF_UNIX)
    try:
        host.connect(f"{uds_path}_{int(port)}")
    except (OSError, TypeError, ValueError) as e:
        print(f"port {port}: {e}", flush=True)
        guest.close()
        return
    guest.sendall(b"RESPONSE\n")
    join(guest, host)


def monitor(device, uds_path, uid, gid, root="/"):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(device)
    listener.listen(64)
    os.chmod(device, 0o777)
    os.chroot(root)
    os.chdir("/")
    os.setgroups([])
    os.setresgid(int(gid), int(gid), int(gid))
    os.setresuid(int(uid), int(uid), int(uid))
    print("ready", flush=True)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0], uds_path), daemon=True).start()


def connect(program, device, port):
    line_to = socket.socket(socket.AF_UNIX)
    line_to.connect(device)
    line_to.sendall(f"{port}\n".encode())
    if line(line_to) == "RESPONSE":
        join(program, line_to)
    else:
        program.close()


def guest(device, port, *command):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 3128))
    listener.listen(64)

    def accept():
        while True:
            threading.Thread(target=connect, args=(listener.accept()[0], device, port), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit({"monitor": monitor, "guest": guest}[sys.argv[1]](*sys.argv[2:]))
