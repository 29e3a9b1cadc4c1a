#!/usr/bin/env python3
"""The program of test_program.c: answers lines, or misbehaves as its first word says."""
import os
import signal
import sys
import time

out, err = sys.stdout, sys.stderr


def say(text, stream=out):
    stream.write(text)
    stream.flush()


def forever():
    while True:
        time.sleep(1)


def child(ignoring):
    """A grandchild that outlives its parent unless the group is killed; prints its number."""
    pid = os.fork()
    if pid == 0:
        if ignoring:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        forever()
    return pid


def answer(line):
    word, _, rest = line.partition(" ")
    if word == "echo":
        say(rest + "\n")
    elif word == "env":
        say(os.environ.get(rest, "(none)") + "\n")
    elif word == "fds":
        say(" ".join(sorted(name for name in os.listdir("/proc/self/fd")
                            if os.path.exists(f"/proc/self/fd/{name}"))) + "\n")
    elif word == "group":
        say(f"{os.getpid()} {os.getpgid(0)} {os.getppid()}\n")
    elif word == "child":
        say(f"{child(True)} {os.getpid()}\n")
    elif word == "big":
        say("x" * int(rest) + "\n")
    elif word == "endless":
        while True:
            say("x" * 65536)
    elif word == "unfinished":
        say("no newline")
        forever()
    elif word == "stderr":
        say("e" * int(rest) + "\nthe last word\n", err)
        say("done\n")
    elif word == "flood":
        while True:
            say("f" * 65536 + "\n", err)
    elif word == "escape":
        say("\x1b[31mred\x07\n", err)
        sys.exit(7)
    elif word == "exit":
        say("good bye\n", err)
        sys.exit(int(rest))
    elif word == "kill":
        os.kill(os.getpid(), int(rest))
    elif word == "kill_keeper":
        os.kill(os.getppid(), signal.SIGKILL)
        forever()
    elif word == "close_output":
        os.close(1)
        forever()
    elif word == "close_input":
        os.close(0)
        forever()
    elif word == "early":
        say("one\ntwo\n")
    elif word == "hang":
        forever()


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    if word == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        forever()
    if word == "dies":
        say("could not start\n", err)
        sys.exit(3)
    if word == "stay":  # ignores the end of its input
        for line in sys.stdin:
            answer(line.rstrip("\n"))
        forever()
    if word == "copy":  # run_once
        data = sys.stdin.buffer.read()
        say("copied\n", err)
        sys.stdout.buffer.write(data)
        sys.exit(int(sys.argv[2]))
    if word == "stray":  # run_once: a child keeps the output open
        child(True)
        say("done")
        return
    for line in sys.stdin:
        answer(line.rstrip("\n"))


main()
