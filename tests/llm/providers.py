#!/usr/bin/env python3
"""Each provider's plugin through `rung run`, against a server of ours on this machine that speaks the
provider's dialect: faults are ridden out, tokens and money are exact, a key that is refused ends the run
at once, and the key is nowhere afterwards. usage: providers.py RUNG"""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY = "test-key-0123456789abcdef"
KERNEL = (ROOT / "tests/sound/online_fast_exp.cu").read_text()
# One text for both roles: a list for those who want ideas, a kernel for those who want code.
REPLY = f"- [memory] Find maximum and sum in one read of the row.\n\n```cuda\n{KERNEL}```\n"
PIPELINE = """
task = "%s/config/tasks/softmax_small.cfg";
llm = ( { plugin = "%s"; model = "mock-1"; url = "http://127.0.0.1:%d"; %s
          price = { input = 2.0; output = 10.0; cache_read = 0.5; }; } );
search = { plugin = "branching"; rounds = 1; ideas = 1; branches = 2; keep = 1; repairs = 0; tune = 1; };
workers = ( { device = "ptx"; count = 1; } );
limits = { llm_parallel = 1; };
budget = { usd = 5.0; evaluations = 3; };
"""
# Every reply: 700 uncached, 300 cached, 120 visible, 80 of reasoning; (700*2 + 300*0.5 + 200*10) / 10^6 USD.
USD = 3550e-6


def openai(text):
    return {"id": "c-1", "model": "mock-1", "choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "<think>hm</think>" + text}}], "usage": {
            "prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200,
            "prompt_tokens_details": {"cached_tokens": 300}, "completion_tokens_details": {"reasoning_tokens": 80}}}


def anthropic(text):
    return {"id": "m-1", "type": "message", "role": "assistant", "model": "mock-1", "stop_reason": "end_turn",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": text}],
            "usage": {"input_tokens": 700, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 0,
                      "output_tokens": 200, "output_tokens_details": {"thinking_tokens": 80}}}


def gemini(text):
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": text}]},
                            "finishReason": "STOP"}], "modelVersion": "mock-1", "responseId": "r-1",
            "usageMetadata": {"promptTokenCount": 1000, "cachedContentTokenCount": 300, "candidatesTokenCount": 120,
                              "thoughtsTokenCount": 80}}


def responses(text):
    return {"id": "r-1", "object": "response", "status": "completed", "model": "mock-1", "error": None, "output": [
        {"type": "reasoning", "id": "rs-1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}], "usage": {
            "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 300}, "output_tokens": 200,
            "output_tokens_details": {"reasoning_tokens": 80}}}


# ---- The same as streams ----

def pieces(text):
    return [text[i:i + 97] for i in range(0, len(text), 97)]


def openai_stream(text):
    whole = openai(text)
    for piece in pieces("<think>hm</think>" + text):
        yield {"id": "c-1", "model": "mock-1", "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
    yield {"id": "c-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {"id": "c-1", "choices": [], "usage": whole["usage"]}
    yield "[DONE]"


def anthropic_stream(text):
    whole = anthropic(text)
    yield {"type": "message_start", "message": {"id": "m-1", "model": "mock-1", "usage": whole["usage"] | {"output_tokens": 1}}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in pieces(text):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def gemini_stream(text):
    whole = gemini(text)
    for piece in pieces(text):
        yield {"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}}]}
    yield whole | {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]}


def responses_stream(text):
    for piece in pieces(text):
        yield {"type": "response.output_text.delta", "output_index": 1, "delta": piece}
    yield {"type": "response.completed", "response": responses(text)}


GEMINI = "/v1beta/models/mock-1:"
DIALECTS = {
    "openai": (openai, openai_stream, "/v1/chat/completions", "authorization", "Bearer " + KEY, "messages"),
    "openai_responses": (responses, responses_stream, "/v1/responses", "authorization", "Bearer " + KEY, "input"),
    "anthropic": (anthropic, anthropic_stream, "/v1/messages", "x-api-key", KEY, "messages"),
    "bedrock": (anthropic, None, "/model/mock-1/invoke", "authorization", "Bearer " + KEY, "messages"),
    "gemini": (gemini, gemini_stream, GEMINI + "streamGenerateContent?alt=sse", "x-goog-api-key", KEY, "contents"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer_events(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            line = b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        reply, stream, path, header, value, talk = DIALECTS[self.server.dialect]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        problems = self.server.problems
        if self.path != path:
            problems.append(f"path {self.path}")
        if self.headers.get(header) != (value if self.server.keyed else None):
            problems.append(f"header {header} is {self.headers.get(header)}")
        if not body.get(talk) or bool(body.get("stream")) != (stream is not None and talk != "contents"):
            problems.append(f"body {list(body)}")
        self.server.seen += 1
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault == "drop":
            self.close_connection = True
        elif fault == "short":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"choices\":")
            self.close_connection = True
        elif fault == "rate":
            self.answer(429, {"error": {"message": "slow down"}}, [("retry-after-ms", "20")])
        elif fault == "html":
            self.answer(502, b"<html>a proxy \xff of somebody's</html>", [("retry-after", "0")])
        elif fault == "key":
            self.answer(401, {"error": {"message": f"{value} is no key of ours"}})
        elif stream:
            self.answer_events(stream(REPLY))
        else:
            self.answer(200, reply(REPLY))


def serve(dialect, faults, keyed):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.dialect, server.faults, server.keyed = dialect, faults, keyed
    server.seen, server.problems = 0, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def run(rung, dialect, faults, folder, keyed=True):
    server = serve(dialect, faults, keyed)
    config = pathlib.Path(folder) / f"{dialect}.cfg"
    config.write_text(PIPELINE % (ROOT, dialect, server.server_port, 'key = "env:RUNG_MOCK_KEY";' if keyed else ""))
    done = subprocess.run([rung, "run", str(config), "--json", "--out", f"{folder}/run"], capture_output=True,
                          text=True, timeout=300, env=os.environ | {"RUNG_MOCK_KEY": KEY})
    server.shutdown()
    assert not server.problems, server.problems
    written = [path.read_bytes() for path in pathlib.Path(folder, "run").rglob("*") if path.is_file()]
    assert written and not any(KEY.encode() in data for data in written), "the key is in the run's folder"
    assert KEY not in done.stdout + done.stderr, "the key was printed"
    return done, server


def rides_out_faults(rung, dialect, keyed):
    faults = ["rate", "html", "drop"] + (["rate", "short"] if dialect == "openai" else [])
    n_faults = len(faults)
    with tempfile.TemporaryDirectory() as folder:
        done, server = run(rung, dialect, faults, folder, keyed)
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    result = json.loads(done.stdout)
    good = server.seen - n_faults
    assert result["best"] and good >= 2, result
    assert abs(result["cost_usd"] - good * USD) < 1e-9, (good, result)
    assert result["tokens"] == {"input": good * 1000, "output": good * 200}, (good, result)
    return good, result["verdicts"]


def a_refused_key_ends_the_run(rung, dialect):
    with tempfile.TemporaryDirectory() as folder:
        done, server = run(rung, dialect, ["key"] * 9, folder)
    assert done.returncode == 3, (done.returncode, done.stderr[-3000:])
    assert "trying again" not in done.stderr, done.stderr
    assert server.seen <= 2, server.seen  # the first decision may hold two requests
    assert "RUNG_MOCK_KEY" in done.stderr + done.stdout and "*** is no key" in done.stderr + done.stdout, done.stderr


def main():
    rung = sys.argv[1]
    for dialect in DIALECTS:
        good, verdicts = rides_out_faults(rung, dialect, dialect != "openai")
        a_refused_key_ends_the_run(rung, dialect)
        print(f"{dialect}: {good} replies, {verdicts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
