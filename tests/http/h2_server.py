#!/usr/bin/env python3
"""A server that speaks HTTP/2 alone:  h2_server.py CERT KEY

Listens on 127.0.0.1, prints its port and ends when its standard input closes. Every request is
answered with an event stream: first "connection C stream S", then 200 events. Frames and the little
of HPACK that a reply needs (RFC 9113, RFC 7541); requests are not read beyond their end.
"""
import os
import socket
import ssl
import struct
import sys
import threading

DATA, HEADERS, RST, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def exactly(connection, n):
    data = b""
    while len(data) < n:
        piece = connection.recv(n - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def answer(connection, number, stream):
    head = b"\x88" + literal(b"content-type", b"text/event-stream")
    connection.sendall(frame(HEADERS, END_HEADERS, stream, head))
    connection.sendall(frame(DATA, 0, stream, b"data: connection %d stream %d\n\n" % (number, stream)))
    for i in range(200):
        connection.sendall(frame(DATA, 0, stream, b"data: token %d\n\n" % i))
    connection.sendall(frame(DATA, END_STREAM, stream))


def serve(connection, number):
    if exactly(connection, 24) != b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":
        return
    connection.sendall(frame(SETTINGS, 0, 0))
    while True:
        head = exactly(connection, 9)
        length = int.from_bytes(head[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        payload = exactly(connection, length)
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            connection.sendall(frame(PING, ACK, 0, payload))
        elif kind in (HEADERS, DATA) and flags & END_STREAM:
            answer(connection, number, stream)
        elif kind == GOAWAY:
            return


def one(raw, context, number):
    try:
        with context.wrap_socket(raw, server_side=True) as connection:
            serve(connection, number)
    except (EOFError, OSError):
        pass  # clients that leave early


def accept(listener, context):
    number = 0
    while True:
        raw, _ = listener.accept()
        number += 1
        threading.Thread(target=one, args=(raw, context, number), daemon=True).start()


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    context.set_alpn_protocols(["h2"])
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=accept, args=(listener, context), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
