#!/usr/bin/env python3
"""The server that the HTTP tests talk to:  server.py [--tls CERT KEY]

Listens on 127.0.0.1, prints its port and ends when its standard input closes. Paths:
  /echo            method, path, headers and body of the request, as text
  /status/N        status N with a short body
  /redirect        302 to /echo
  /chunks/N/MS     N chunked pieces "piece I\\n", MS milliseconds apart
  /lines/N         N bytes of text, no Content-Length
  /slow/MS         nothing for MS milliseconds, then 200
  /head_only/MS    the head, nothing for MS milliseconds, then the body
  /stall/MS        half of the body, nothing for MS milliseconds, then the rest
  /drop            closes without an answer
  /garbage         an answer that is no HTTP
  /short           promises 100 bytes and sends 10
  /odd             interim replies, repeated, folded, empty and broken headers
  /many_headers    more headers than anybody needs
  /need/NAME/VALUE 200 when the request's header NAME is VALUE, else 401
  /reflect/NAME    the request's header NAME in a header and, byte for byte in chunks, in the body
  /events/NAME     an event stream of those below, as it stands
  /bytes/NAME      the same, byte by byte
  /typed/TYPE      an event stream under another Content-Type; "none": without one
  /gzip/FORCE      an event stream, gzipped where the request takes that, or when FORCE is 1; 2: named odd
  /comments/N/MS   N comments, MS milliseconds apart, then an event
  /wait/N/MS       an event, then N comments, MS milliseconds apart, then an event
  /huge/N          an event with N bytes of data
  /cut             an event and a half, then the connection is closed
  /flood/N         N events of 1000 bytes as fast as they are taken; prints how many went out
  /tokens/N/MS     N events, MS milliseconds apart
  /port            the client's port
  /once            answers, promises to keep the connection, and closes it when a request comes on it
  /count           how many requests it has seen, this one included
As a proxy it answers CONNECT with 403, its headers in the body.
"""
import gzip
import http.server
import os
import socket
import ssl
import sys
import threading
import time
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seen = 0
    lock = threading.Lock()

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def chunk(self, piece):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def begin_chunks(self, headers=()):
        self.send_response(200)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def text_of_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        head = "".join(f"{name}: {value}\n" for name, value in self.headers.items())
        return f"{self.command} {self.path}\n{head}\n".encode() + body

    def handle_one(self):
        with Handler.lock:
            Handler.seen += 1
        name, *args = [urllib.parse.unquote(part) for part in self.path.split("?")[0].split("/")[1:]]
        getattr(self, "path_" + name, self.unknown)(*args)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_one

    def do_CONNECT(self):
        with Handler.lock:
            Handler.seen += 1
        print(f"CONNECT {self.path}", *(f"{n}: {v}" for n, v in self.headers.items()),
              sep="\n", end="\n\n", flush=True)
        self.reply(403)

    def unknown(self, *args):
        self.reply(404, b"no such path")

    def path_echo(self):
        self.reply(200, self.text_of_request(), [("X-Mark", "echo")])

    def path_status(self, status):
        self.reply(int(status), b"status " + status.encode())

    def path_redirect(self):
        self.reply(302, b"over there", [("Location", "/echo")])

    def path_chunks(self, n, ms):
        self.begin_chunks()
        for i in range(int(n)):
            self.chunk(b"piece %d\n" % i)
            time.sleep(int(ms) / 1000)
        self.wfile.write(b"0\r\nX-Trailer: 1\r\nHTTP/1.1 500: a trailer too\r\n\r\n")

    def path_lines(self, n):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write((b"0123456789abcde\n" * (int(n) // 16 + 1))[:int(n)])
        self.close_connection = True

    def path_slow(self, ms):
        time.sleep(int(ms) / 1000)
        self.reply(200, b"at last")

    def path_head_only(self, ms):
        self.begin_chunks()
        time.sleep(int(ms) / 1000)
        self.chunk(b"at last")
        self.chunk(b"")

    def path_stall(self, ms):
        self.begin_chunks()
        self.chunk(b"one half, ")
        time.sleep(int(ms) / 1000)
        self.chunk(b"the other")
        self.chunk(b"")

    def path_drop(self, *args):
        self.close_connection = True

    def path_garbage(self):
        self.wfile.write(b"what do you mean?\n")
        self.close_connection = True

    def path_short(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789")
        self.close_connection = True

    def path_odd(self):
        self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
                         b"HTTP/1.1 200 Quite Fine\r\nX-Two: a\r\nX-TWO:b\t \r\nX-Empty:\r\n"
                         b"X-Latin: caf\xe9\r\nX-Bell: a\x07b\r\nX-Utf8: \xc3\xa4\r\n"
                         b"Content-Length: 2\r\n\r\nok")

    def path_many_headers(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 2000 + b"Content-Length: 0\r\n\r\n")

    def path_need(self, name, value):
        self.reply(200 if self.headers.get(name) == value else 401)

    def path_reflect(self, name):
        value = self.headers.get(name, "")
        self.begin_chunks([("X-Reflected", f"<{value}>")])
        for byte in b"<" + value.encode() + b"> and <" + value.encode() + b">":
            self.chunk(bytes([byte]))
        self.chunk(b"")

    # ---- event streams ----

    STREAMS = {
        "plain": b"data: one\n\nevent: two\ndata: 2a\ndata: 2b\n\ndata: [DONE]\n\n",
        "utf8": "data: h\u00e4 \u4e2d \U0001f600\n\n".encode(),
        "crlf": b"\xef\xbb\xbf: hello\r\ndata: one\r\n\r\ndata: two\r\n\r\ndata: thr",
        "error": b'data: one\n\nevent: error\ndata: {"error":{"type":"overloaded"}}\n\n',
        "late_json": b'{"error":{"message":"no stream for you"}}',
    }

    def begin_events(self):
        self.begin_chunks([("Content-Type", "Text/Event-Stream; charset=utf-8")])

    def path_events(self, name):
        self.begin_events()
        self.chunk(self.STREAMS[name])
        self.chunk(b"")

    def path_bytes(self, name):
        self.begin_events()
        for byte in self.STREAMS[name]:
            self.chunk(bytes([byte]))
        self.chunk(b"")

    def path_typed(self, kind):
        self.reply(200, self.STREAMS["plain"], [] if kind == "none" else [("Content-Type", kind)])

    def path_gzip(self, force):
        body, headers = self.STREAMS["plain"], [("Content-Type", "text/event-stream")]
        if force == "1" or "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
            headers.append(("Content-Encoding", "gzip"))
        elif force == "2":
            headers.append(("Content-Encoding", "odd"))
        self.reply(200, body, headers)

    def path_comments(self, n, ms):
        self.begin_events()
        for _ in range(int(n)):
            self.chunk(b": wait\n\n")
            time.sleep(int(ms) / 1000)
        self.chunk(b"data: at last\n\n")
        self.chunk(b"")

    def path_wait(self, n, ms):
        self.begin_events()
        self.chunk(b"data: first\n\n")
        for _ in range(int(n)):
            self.chunk(b": wait\n\n")
            time.sleep(int(ms) / 1000)
        self.chunk(b"data: second\n\n")
        self.chunk(b"")

    def path_huge(self, n):
        self.begin_events()
        self.chunk(b"data: " + b"x" * int(n) + b"\n\n")
        self.chunk(b"")

    def path_cut(self):
        self.begin_events()
        self.chunk(b"data: whole\n\ndata: ha")
        self.close_connection = True

    def path_flood(self, n):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        self.begin_events()
        sent = 0
        try:
            for sent in range(int(n)):
                self.chunk(b"data: " + b"x" * 1000 + b"\n\n")
            self.chunk(b"")
        finally:
            print(f"flood {sent + 1}", flush=True)

    def path_tokens(self, n, ms):
        self.begin_events()
        for i in range(int(n)):
            self.chunk(b"data: token %d\n\n" % i)
            time.sleep(int(ms) / 1000)
        self.chunk(b"")

    # ---- connections ----

    def path_port(self):
        self.reply(200, str(self.client_address[1]).encode())

    def path_once(self):
        self.reply(200, b"once")
        self.rfile.read(1)
        with Handler.lock:
            Handler.seen += 1
        self.close_connection = True

    def path_count(self):
        self.reply(200, str(Handler.seen).encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        pass  # clients that leave early are what half of the tests are about


def main():
    server = Server(("127.0.0.1", 0), Handler)
    if sys.argv[1:2] == ["--tls"]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
