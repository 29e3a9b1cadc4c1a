#!/usr/bin/env python3
"""A server that speaks OpenAI's Chat Completions, streamed and whole, on this machine, with faults on request and
a ledger of what it would bill. No framework, one thread, so that hundreds of requests run at once.

    mock.py --ledger FILE [--faults 0.2] [--seed 1] [--delay-ms 2] [--port 0] [--slow-s 30]

Prints its port. The ledger gets a JSON line for each request: id, key (a hash of the messages' texts), fault, tokens by
class, and when the last byte went out (CLOCK_MONOTONIC, ns). A token is four bytes, rounded up.
"""
import argparse
import asyncio
import hashlib
import json
import random
import re
import time

FAULTS = ["rate", "overloaded", "unavailable", "cut", "html", "timeout", "refused", "length"]
KERNEL = """```cuda
//@ launch k grid=(1) block=(32) args=(rows, rows)
__global__ void k(long long a, long long b)
{{
    // reply {mark}
{filler}}}
```
"""


def tokens(text):
    return (len(text.encode()) + 3) // 4


class Mock:
    def __init__(self, options):
        self.options, self.rng = options, random.Random(options.seed)
        self.ledger = open(options.ledger, "a", buffering=1)
        self.count = self.busy = self.most = 0
        self.half = {}  # conversation -> the text whose beginning was sent

    def note(self, number, key, fault, n_in=0, n_out=0, said=True, mark=None):
        self.ledger.write(json.dumps({"id": number, "key": key, "fault": fault, "input": n_in, "output": n_out,
                                      "said": said, "mark": mark, "end_ns": time.monotonic_ns()}) + "\n")

    def reply_of(self, messages, number):
        prompt = messages[-1]["content"]
        if "Propose " in prompt:
            wanted = int(re.search(r"Propose (\d+) idea", prompt).group(1))
            return "".join(f"- [memory] Idea {number}.{i}: move the data in yet another order.\n" for i in range(wanted))
        return KERNEL.format(mark=number, filler="".join(f"    // line {i} of reply {number}\n" for i in range(12)))

    async def answer(self, reader, writer):
        try:
            while await self.one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = int(re.search(r"(?i)content-length: (\d+)", head).group(1))
        body = json.loads(await reader.readexactly(length))
        self.count += 1
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            return await self.respond(body, self.count, writer)
        finally:
            self.busy -= 1

    async def respond(self, body, number, writer):
        messages = body["messages"]
        key = hashlib.sha256("\0".join(m["content"] for m in messages).encode()).hexdigest()[:16]
        fault = self.rng.choice(FAULTS) if self.rng.random() < self.options.faults else None
        await asyncio.sleep(self.options.delay_ms * 1e-3)
        if fault in ("rate", "overloaded", "unavailable", "html"):
            self.note(number, key, fault)
            return await self.refuse(writer, fault)
        n_in = sum(tokens(m["content"]) for m in messages)
        if fault == "timeout":
            self.note(number, key, fault, n_in, 0, said=False)
            await asyncio.sleep(self.options.slow_s)
            return False
        text, finish = self.reply_of(messages, number), "stop"
        if len(messages) > 2 and "Go on from that exact place" in messages[-1]["content"]:
            text = self.half.pop(messages[-2]["content"], text)
        if fault == "length":
            half = len(text) // 2
            self.half[text[:half]] = text[half:]
            text, finish = text[:half], "length"
        if fault == "refused":
            text, finish = "", "content_filter"
        cut = len(text) // 2 if fault == "cut" else None
        usage = {"prompt_tokens": n_in, "completion_tokens": tokens(text), "total_tokens": n_in + tokens(text)}
        if cut is not None:
            return await self.cut_off(writer, body, text, cut, number, key, n_in)
        await self.send(writer, body, text, finish, usage, number)
        self.note(number, key, fault, n_in, tokens(text), mark=number)
        return True

    async def refuse(self, writer, fault):
        status, headers, body = {
            "rate": (429, "retry-after-ms: 5\r\n", b'{"error":{"message":"slow down","type":"rate_limit"}}'),
            "overloaded": (529, "retry-after-ms: 5\r\n", b'{"error":{"message":"overloaded","type":"overloaded_error"}}'),
            "unavailable": (503, "retry-after-ms: 5\r\n", b'{"error":{"message":"loading"}}'),
            "html": (502, "retry-after-ms: 5\r\nContent-Type: text/html\r\n", b"<html>a proxy's page</html>")}[fault]
        writer.write(f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return True

    def head(self, stream, length):
        kind = "text/event-stream\r\nTransfer-Encoding: chunked" if stream else f"application/json\r\nContent-Length: {length}"
        return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()

    def event(self, number, delta, finish=None, usage=None):
        choices = [] if usage else [{"index": 0, "delta": delta, "finish_reason": finish}]
        data = {"id": f"c-{number}", "model": "mock-1", "choices": choices} | ({"usage": usage} if usage else {})
        line = f"data: {json.dumps(data)}\n\n".encode()
        return f"{len(line):x}\r\n".encode() + line + b"\r\n"

    async def send(self, writer, body, text, finish, usage, number):
        if body.get("stream"):
            pieces = [text[i:i + 120] for i in range(0, len(text), 120)]
            data = self.head(True, 0) + b"".join(self.event(number, {"content": piece}) for piece in pieces)
            data += self.event(number, {}, finish) + self.event(number, {}, usage=usage)
            done = b"data: [DONE]\n\n"
            data += f"{len(done):x}\r\n".encode() + done + b"\r\n0\r\n\r\n"
        else:
            whole = json.dumps({"id": f"c-{number}", "model": "mock-1", "usage": usage, "choices": [
                {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}]}).encode()
            data = self.head(False, len(whole)) + whole
        writer.write(data)
        await writer.drain()

    async def cut_off(self, writer, body, text, cut, number, key, n_in):
        if body.get("stream"):
            writer.write(self.head(True, 0) + self.event(number, {"content": text[:cut]}))
        else:
            writer.write(self.head(False, 100000) + b'{"choices":')
        await writer.drain()
        self.note(number, key, "cut", n_in, tokens(text[:cut]), said=False)
        return False


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ledger", required=True)
    parser.add_argument("--faults", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delay-ms", type=float, default=2)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slow-s", type=float, default=30)
    mock = Mock(parser.parse_args())
    server = await asyncio.start_server(mock.answer, "127.0.0.1", mock.options.port, limit=1 << 24, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
