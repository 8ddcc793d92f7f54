# SPDX-License-Identifier: Apache-2.0
"""The listener and the reader of the tests' origins, which control every byte that they read from a connection."""
import os
import socket
import ssl
import threading


class Listener:
    """Listens in the current network namespace, by TLS if there is a folder with a key. peer(connection, protocol) makes what run() serves it."""

    def __init__(self, address, port, folder, protocols):
        self.lock, self.connections, self.context = threading.Lock(), 0, None
        self.protocol = protocols[0] if protocols else None  # of a connection without TLS
        if folder:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server.key"))
            self.context.set_alpn_protocols(list(protocols))
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((address, port))
        self.listener.listen(128)
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # or accept() would hold it for ever
        self.listener.close()

    def serve(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.connection, args=(c,), daemon=True).start()

    def connection(self, c):
        self.connections += 1
        c.settimeout(20)
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self.context:
                c = self.context.wrap_socket(c, server_side=True)
            protocol = c.selected_alpn_protocol() if self.context else self.protocol
            self.peer(c, protocol).run()
        except (OSError, EOFError):
            pass
        c.close()


class SocketReader:
    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise EOFError
        self.data += piece

    def until(self, mark):
        """Returns the bytes before the mark, and consumes the mark too."""
        while mark not in self.data:
            self.more()
        head, _, self.data = self.data.partition(mark)
        return head

    def piece(self, n):
        """At most n bytes: what has come, or comes next."""
        while not self.data:
            self.more()
        part, self.data = self.data[:n], self.data[n:]
        return part

    def take(self, n):
        """Just n bytes."""
        while len(self.data) < n:
            self.more()
        part, self.data = self.data[:n], self.data[n:]
        return part
