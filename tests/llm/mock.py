#!/usr/bin/env python3
"""The providers' plugins over the real HTTP of rung, against a server of ours that does what a script tells
it: everything that servers and proxies do to a reply on its way.   mock.py DRIVE RUNG [SCRIPT...]

A script (scripts/*.json) is a list of cases:
  { "name", "plugin", "options": {...}, "request": {...},       what llm_drive is given
    "answers": [ ANSWER... ],                                   one a request; the last one stays
    "expect": [ {...}... ], "sent": N, "longest_s": S }         a field is equal, or "~TEXT": holds it
An ANSWER is { "status" (200), "headers": {...}, "body": TEXT | "json": VALUE | "golden": FILE |
  "fill": [TEXT, N] (TEXT and N times "x", closed by "}"), "tail": TEXT, "chunk": N bytes a write (all at once),
  "delay_ms": between writes, "wait_ms": before the head, "chunked": bool, "gzip": bool, "cut": N bytes, then
  the connection is reset, "end": N bytes, then it is closed in good order, "hang": true (stays open) }
"""
import gzip
import json
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
KEY = "test-key-0123456789abcdef"


def body_of(answer):
    if "golden" in answer:
        data = (HERE / "golden" / answer["golden"]).read_bytes()
    elif "json" in answer:
        data = json.dumps(answer["json"]).encode()
    elif "fill" in answer:
        data = answer["fill"][0].encode() + b"x" * answer["fill"][1] + answer["fill"][2].encode()
    else:
        data = answer.get("body", "").encode("latin-1")
    data += answer.get("tail", "").encode()
    return gzip.compress(data) if answer.get("gzip") else data


class Server:
    """One connection after the other, by hand: a library would mend what is to be broken."""

    def __init__(self, answers):
        self.answers, self.seen, self.bodies = answers, 0, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.done = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while not self.done.is_set():
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def read(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
        return json.loads(body), headers

    def talk(self, connection):
        with connection:
            while True:
                try:
                    read = self.read(connection)
                    if not read:
                        return
                    self.bodies.append(read[0])
                    answer = self.answers[min(self.seen, len(self.answers) - 1)]
                    self.seen += 1
                    if not self.answer(connection, answer):
                        return
                except OSError:
                    return

    def answer(self, connection, answer):
        data, status = body_of(answer), answer.get("status", 200)
        time.sleep(answer.get("wait_ms", 0) / 1000)
        kind = "text/event-stream" if "golden" in answer and answer["golden"].endswith(".sse") else "application/json"
        headers = {"Content-Type": kind} | answer.get("headers", {})
        if answer.get("gzip"):
            headers["Content-Encoding"] = "gzip"
        chunked, whole = answer.get("chunked", kind == "text/event-stream"), len(data)
        headers.setdefault("Transfer-Encoding" if chunked else "Content-Length", "chunked" if chunked else str(whole))
        head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items()) + "\r\n"
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head.encode())
        cut = answer.get("cut", answer.get("end"))
        data = data if cut is None else data[:cut]
        step = answer.get("chunk") or len(data) or 1
        for at in range(0, len(data), step):
            piece = data[at:at + step]
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            if answer.get("delay_ms"):
                time.sleep(answer["delay_ms"] / 1000)
        if answer.get("hang"):
            self.done.wait(60)
        if "cut" in answer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if "end" in answer and not chunked:
            return False
        if chunked:
            connection.sendall(b"0\r\n\r\n")
        return True

    def close(self):
        self.done.set()
        self.socket.close()


def differs(got, want):
    if isinstance(want, str) and want.startswith("~"):
        return want[1:] not in str(got)
    if isinstance(want, dict) and isinstance(got, dict):
        return any(differs(got.get(name), value) for name, value in want.items())
    if isinstance(want, list) and isinstance(got, list):
        return len(want) != len(got) or any(differs(g, w) for g, w in zip(got, want))
    return got != want


def text_of(line):
    return "".join(part["text"] for part in line["parts"] if part["kind"] == 1) if "parts" in line else ""


def run(drive, rung, case):
    server = Server(case.get("answers", []) or [{}])
    options = {"model": "m-1", "key": "env:RUNG_MOCK_KEY", "url": f"http://127.0.0.1:{server.port}"}
    options |= case.get("options", {})
    began = time.monotonic()
    done = subprocess.run([drive, rung, case["plugin"], json.dumps(options), json.dumps(case.get("request", {"user": "Hi."}))],
                          capture_output=True, text=True, timeout=90, env={"RUNG_MOCK_KEY": KEY, "PATH": "/usr/bin:/bin"})
    took = time.monotonic() - began
    server.close()
    if done.returncode:
        return [f"llm_drive ended with {done.returncode}: {done.stderr[-1500:]}"]
    lines = [json.loads(line) | {} for line in done.stdout.splitlines()]
    for line in lines:
        line["text"] = text_of(line)
    problems = [f"answer {i}: {name} is {line.get(name)!r}, not {value!r}"
                for i, (line, want) in enumerate(zip(lines, case["expect"])) for name, value in want.items()
                if differs(line.get(name), value)]
    if len(lines) != len(case["expect"]):
        problems.append(f"{len(lines)} answers")
    if server.seen != case.get("sent", server.seen):
        problems.append(f"{server.seen} requests were sent")
    if took > case.get("longest_s", 30):
        problems.append(f"took {took:.1f} s")
    if KEY in done.stdout + done.stderr:
        problems.append("the key was printed")
    for name, value in case.get("body", {}).items():
        if differs(server.bodies[-1].get(name), value):
            problems.append(f"sent {name} as {server.bodies[-1].get(name)!r}")
    return problems


def main():
    drive, rung = sys.argv[1:3]
    scripts = [pathlib.Path(name) for name in sys.argv[3:]] or sorted((HERE / "scripts").glob("*.json"))
    count = failed = 0
    for script in scripts:
        for case in json.loads(script.read_text()):
            count += 1
            problems = run(drive, rung, case)
            failed += bool(problems)
            for problem in problems:
                print(f"{script.name}: {case['name']}: {problem}")
    print(f"{count} cases, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
