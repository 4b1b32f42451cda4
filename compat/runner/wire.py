"""A raw connection: frames, headers and the primitive types of the protocol's non-flexible versions."""

import socket
import struct


class Out:
    """Builds a request body."""

    def __init__(self):
        self._parts = []

    def data(self):
        """All bytes so far."""
        return b"".join(self._parts)

    def raw(self, data):
        """Bytes as they are."""
        self._parts.append(data)
        return self

    def pack(self, layout, *values):
        """Big-endian numbers by `struct` layout."""
        return self.raw(struct.pack(">" + layout, *values))

    def text(self, value):
        """A string with a 16-bit length; None is null."""
        if value is None:
            return self.pack("h", -1)
        data = value.encode() if isinstance(value, str) else value
        return self.pack("h", len(data)).raw(data)

    def blob(self, value):
        """Bytes with a 32-bit length; None is null."""
        if value is None:
            return self.pack("i", -1)
        return self.pack("i", len(value)).raw(value)

    def array(self, items, write):
        """An array with a 32-bit count; `write(out, item)` writes one item; None is null."""
        if items is None:
            return self.pack("i", -1)
        self.pack("i", len(items))
        for item in items:
            write(self, item)
        return self


class In:
    """Reads an answer."""

    def __init__(self, data):
        self._data, self._at = data, 0

    def left(self):
        """Bytes not read yet."""
        return len(self._data) - self._at

    def unpack(self, layout):
        """Big-endian numbers by `struct` layout; a single one is returned bare."""
        values = struct.unpack_from(">" + layout, self._data, self._at)
        self._at += struct.calcsize(">" + layout)
        return values[0] if len(values) == 1 else values

    def raw(self, size):
        """The next `size` bytes."""
        if size > self.left():
            raise ValueError(f"{size} bytes wanted, {self.left()} left")
        data = self._data[self._at : self._at + size]
        self._at += size
        return data

    def text(self):
        """A string with a 16-bit length, or None."""
        size = self.unpack("h")
        return None if size < 0 else self.raw(size).decode()

    def blob(self):
        """Bytes with a 32-bit length, or None."""
        size = self.unpack("i")
        return None if size < 0 else self.raw(size)

    def array(self, read):
        """A list; `read(in)` reads one item; a null array is None."""
        count = self.unpack("i")
        return None if count < 0 else [read(self) for _ in range(count)]


class Closed(Exception):
    """The broker closed the connection."""


class Wire:
    """One connection to a broker; requests may be sent ahead and their answers read later."""

    def __init__(self, host, port, client_id="compat-wire", seconds=20):
        self._socket = socket.create_connection((host, port), timeout=seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._next = 0

    def send(self, key, version, body):
        """Sends one request with header version 1; returns its correlation id."""
        self._next += 1
        head = Out().pack("hhi", key, version, self._next).text(self._client_id)
        frame = head.data() + body
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        return self._next

    def receive(self, correlation_id):
        """The body of the next answer, which must be the one to `correlation_id`."""
        size = struct.unpack(">i", self._exactly(4))[0]
        answer = In(self._exactly(size))
        got = answer.unpack("i")
        if got != correlation_id:
            raise ValueError(f"answer {got} came for request {correlation_id}")
        return answer

    def call(self, key, version, body):
        """Sends and receives."""
        return self.receive(self.send(key, version, body))

    def close(self):
        """Ends the connection in the ordinary way."""
        self._socket.close()

    def reset(self):
        """Ends the connection with a TCP reset, as a crashed machine's successor would."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _exactly(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise Closed(f"the broker closed the connection after {len(parts)} of {size} bytes")
            parts += part
        return bytes(parts)
