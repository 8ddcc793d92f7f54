#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A file system of FUSE with a few small files, whose server can be stopped: whoever looks at it then waits for good.

    with SlowFiles("/somewhere", {"policy.yaml": "text"}) as files:
        files.stop()   # nobody answers any more
        files.go_on()

The protocol of /dev/fuse as in linux/fuse.h, as much of it as reading files takes. Needs root; SlowFiles.works() tells whether
the kernel has it."""
import ctypes
import os
import signal
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS = (
    1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29, 34)
ENOENT, ENOSYS = 2, 38
DIRECTORY, REGULAR = 0o40755, 0o100644
REQUEST_MAX = 1 << 17
libc = ctypes.CDLL(None, use_errno=True)


def attributes(ino, size, mode):
    return struct.pack("<QQQQQQIIIIIIIIII", ino, size, 0, 1, 1, 1, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class Server:
    def __init__(self, fd, files):
        self.fd = fd
        self.files = dict(enumerate([(n, t.encode()) for n, t in files.items()], 2))  # by inode

    def attr(self, ino):
        if ino == 1:
            return attributes(1, 0, DIRECTORY)
        return attributes(ino, len(self.files[ino][1]), REGULAR)

    def answer(self, opcode, ino, body):
        """The body of the answer, an errno, or None for no answer. Nothing is cached by the kernel: each look asks."""
        if opcode == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0)
        if opcode == LOOKUP:
            for number, (name, _) in self.files.items():
                if name == body.rstrip(b"\0").decode():
                    return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self.attr(number)
            return ENOENT
        if opcode == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attr(ino)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.files[ino][1][offset:offset + size]
        if opcode == STATFS:
            return bytes(80)
        if opcode in (RELEASE, RELEASEDIR, FLUSH, ACCESS, READDIR):
            return b""
        return None if opcode == FORGET else ENOSYS

    def serve(self):
        while True:
            request = os.read(self.fd, REQUEST_MAX)
            _, opcode, unique, ino = struct.unpack_from("<IIQQ", request)
            answer = self.answer(opcode, ino, request[40:])
            if answer is None:
                continue
            error, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
            try:
                os.write(self.fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
            except FileNotFoundError:  # whoever asked has been killed
                pass


class SlowFiles:
    def __init__(self, path, files):
        self.path, self.pid = path, None
        os.makedirs(path, exist_ok=True)
        fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"slow", path.encode(), b"fuse", 0, options) != 0:
            error = ctypes.get_errno()
            os.close(fd)
            raise OSError(error, os.strerror(error))
        self.pid = os.fork()
        if self.pid == 0:
            try:
                Server(fd, files).serve()
            except BaseException:  # the mount is gone, as a rule
                pass
            os._exit(0)
        os.close(fd)

    @staticmethod
    def works(path):
        try:
            with SlowFiles(path, {"x": "y"}), open(os.path.join(path, "x")) as f:
                return f.read() == "y"
        except OSError:
            return False

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def close(self):
        """Calls that still wait get an error."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = None
            libc.umount2(self.path.encode(), 2)  # MNT_DETACH

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    print(SlowFiles.works(sys.argv[1]))
