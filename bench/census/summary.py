#!/usr/bin/env python3
"""Sums up a census: usage: summary.py WORK_DIR"""

import collections
import pathlib
import re
import sys


def main():
    work = pathlib.Path(sys.argv[1])
    rows = [line.split("\t", 3) for line in (work / "census.tsv").read_text().splitlines()]
    kernels = [r for r in rows if r[1] != "-"]
    codes = collections.Counter(r[2] for r in rows)
    lacking = collections.Counter()
    for r in kernels:
        if r[2] == "device.unsupported":
            name = re.search(r"'([^']+)'", r[3])
            lacking[name[1] + r[3].split("'", 2)[2] if name else r[3]] += 1
    able = len(kernels) - codes["device.unsupported"]
    refused = {"device.unsupported", "launch.error", "launch.resources", "crash"}
    ran = sum(r[2] not in refused and not r[2].startswith("status") for r in kernels)
    print("files %d, compiled %d, kernels %d" % (len(list(work.glob("*.cu"))), len(list(work.glob("*.ptx"))),
                                                 len(kernels)))
    print("all instructions supported: %d (%.1f %%); ran: %d (%.1f %%)" % (
        able, 100 * able / max(1, len(kernels)), ran, 100 * ran / max(1, len(kernels))))
    for code, n in codes.most_common():
        print("  %-24s %d" % (code, n))
    for name, n in lacking.most_common():
        print("  lacks %3d  %s" % (n, name))


if __name__ == "__main__":
    main()
