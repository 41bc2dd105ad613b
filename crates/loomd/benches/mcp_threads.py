#!/usr/bin/env python3
"""What one configured stdio MCP server costs: processes of many threads, and the start of a thread.

    mcp_threads.py "target/release/loomd app-server" ["codex app-server" ...]

Servers are measured in interleaved rounds; read the ratios. Needs nothing but the Python standard library.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "conformance"))
from appserver import AppServer  # noqa: E402
from mcpserver import StdioMcp, tool  # noqa: E402

THREADS, STARTS, ROUNDS = 100, 50, 5


def open_server(command, place, table):
    home = Path(tempfile.mkdtemp(dir=place))
    (home / "config.toml").write_text('model = "m"\nmodel_provider = "p"\n[model_providers.p]\nname = "p"\nbase_url = "http://127.0.0.1:9"\n' + table)
    server = AppServer(home, cmd=command)
    server.request("initialize", {"clientInfo": {"name": "bench", "version": "1"}})
    server.notify("initialized")
    return server


def start(server):
    begin = time.perf_counter()
    server.request("thread/start", {})
    return (time.perf_counter() - begin) * 1000


def processes(mcp):
    """Live processes of the MCP server."""
    wanted = str(mcp.spec_path).encode()
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            found += entry.name.isdigit() and wanted in (entry / "cmdline").read_bytes()
        except OSError:
            pass
    return found


def stop(server):
    server.proc.stdin.close()
    server.proc.wait(20)


def main():
    commands = [argument.split() for argument in sys.argv[1:]] or [[str(ROOT / "target/release/loomd"), "app-server"]]
    figures = {(" ".join(command), kind): [] for command in commands for kind in ("without", "with")}
    with tempfile.TemporaryDirectory() as place:
        mcp = StdioMcp(place, "srv", [tool("one")])
        for _ in range(ROUNDS):
            for command in commands:
                for kind, table in (("without", ""), ("with", mcp.table())):
                    server = open_server(command, place, table)
                    start(server)
                    # The interpreter of the MCP server starts beside; its CPU time is not the server's.
                    time.sleep(1)
                    figures[" ".join(command), kind] += [start(server) for _ in range(STARTS)]
                    stop(server)
        for command in commands:
            server = open_server(command, place, mcp.table())
            for _ in range(THREADS):
                start(server)
            time.sleep(2)
            print(f"{' '.join(command)}: {THREADS} threads, {processes(mcp)} server processes")
            stop(server)
    for (command, kind), times in figures.items():
        print(f"{command}: thread/start {kind} the server: median {statistics.median(times):.2f} ms, p95 {sorted(times)[int(len(times) * 0.95)]:.2f} ms")


if __name__ == "__main__":
    main()
