"""Drives the reference's terminal program on a server, over a websocket and in tmux, and prints what came of it as JSON.

Arguments: the terminal program, the server's program, its home, the user's home, a working directory.

A relay between the two notes the requests that got an error. The provider answers by the text of the user's last message,
as the terminal program has threads of its own, for titles. Screens go to stderr.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

terminal_program, server_program, home, user_home, work = sys.argv[1:6]
told = {"errors": [], "goals": 0}
released = threading.Event()

PATCH = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch\n"


def call(name, arguments, number):
    return {"type": "function_call", "call_id": f"call-{number}", "name": name, "arguments": json.dumps(arguments)}


def message(text):
    return {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]}


def answer(body):
    """The item that answers a request."""
    items = body["input"]
    texts = [
        part.get("text", "")
        for item in items
        if item.get("role") == "user"
        for part in item["content"]
        if isinstance(part, dict)
    ]
    last = texts[-1] if texts else ""
    is_output = items[-1]["type"].endswith("_output")
    number = len(items)
    if "title" in json.dumps(body.get("text", {})) or "tools" not in body or not body["tools"]:
        return message(json.dumps({"title": "A title"}))
    if "codex_internal_context" in last:
        told["goals"] += 1
        return message("GOAL DONE") if is_output else call("update_goal", {"status": "complete"}, number)
    match last:
        case "first" if not is_output:
            asks = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
            return call("exec_command", {"cmd": "touch asked", **asks}, number)
        case "second" if not is_output:
            return call("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}EOF"}, number)
        case "wait":
            released.wait(60)
    return message({"first": "ASKED", "second": "PATCHED", "queued": "QUEUED"}.get(last, "ANSWERED"))


class Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send(b'{"models":[]}', "application/json")

    def do_POST(self):
        item = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        events = [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        ]
        lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self.send("".join(lines).encode(), "text/event-stream")

    def send(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def start_provider():
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    Path(home, "config.toml").write_text(
        f'''model = "mock-model"
model_provider = "mock"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
[model_providers.mock]
name = "Mock"
base_url = "http://127.0.0.1:{provider.server_port}/v1"
wire_api = "responses"
[projects."{work}"]
trust_level = "trusted"
'''
    )


ENVIRONMENT = {"CODEX_HOME": home, "HOME": user_home, "PATH": os.environ["PATH"], "TERM": "xterm-256color"}


def start_server():
    """The server, and its address."""
    arguments = [server_program, "app-server", "--listen", "ws://127.0.0.1:0"]
    server = subprocess.Popen(arguments, env=ENVIRONMENT, cwd=work, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if "listening on:" in line:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, line.split()[-1]
    raise RuntimeError("the server does not listen")


async def relay(client, address):
    """Passes messages on in both directions, and notes errors with the method that they answer."""
    asked = {}
    async with connect(address, max_size=None) as server:

        async def up():
            async for text in client:
                message = json.loads(text)
                if "method" in message and "id" in message:
                    asked[message["id"]] = message
                await server.send(text)
            await server.close()

        async def down():
            async for text in server:
                message = json.loads(text)
                if "error" in message and message.get("id") in asked:
                    request = asked[message["id"]]
                    told["errors"].append([request["method"], message["error"]["message"], request.get("params")])
                await client.send(text)
            await client.close()

        try:
            await asyncio.gather(up(), down())
        except ConnectionClosed:
            pass


class Terminal:
    """A program in a terminal of 110 by 45."""

    def __init__(self, *arguments):
        self.name = f"loomd-{os.getpid()}-{time.monotonic_ns()}"
        command = ["env", "-i", *(f"{key}={value}" for key, value in ENVIRONMENT.items()), terminal_program, *arguments]
        self.tmux("new-session", "-d", "-x", "110", "-y", "45", "-s", self.name, "-c", work, *command)
        self.tmux("set-option", "-t", self.name, "remain-on-exit", "on")

    @staticmethod
    def tmux(*arguments):
        done = subprocess.run(["tmux", "-L", "loomd-test", *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"tmux {arguments}: {done.stderr}")
        return done.stdout

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", self.name)

    def keys(self, *keys):
        self.tmux("send-keys", "-t", self.name, *keys)

    async def enter(self, text):
        """Types a line. Return must not look like a part of a paste."""
        self.tmux("send-keys", "-t", self.name, "-l", text)
        await asyncio.sleep(0.5)
        self.keys("Enter")

    async def shows(self, *texts, agree=None):
        """Waits until all of the texts are on the screen. Agrees to a question that a server may ask, and need not."""
        for _ in range(300):
            screen = self.screen()
            if all(text in screen for text in texts):
                return
            if agree and agree in screen:
                self.keys("y")
            await asyncio.sleep(0.1)
        raise RuntimeError(f"no {texts} on the screen:\n{screen}")

    async def ended(self):
        for _ in range(300):
            if self.tmux("display-message", "-p", "-t", self.name, "#{pane_dead}").strip() == "1":
                return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"still runs:\n{self.screen()}")

    def close(self):
        print(self.screen(), file=sys.stderr)
        self.tmux("kill-session", "-t", self.name)


async def in_terminal(script, *arguments):
    terminal = Terminal(*arguments)
    try:
        await script(terminal)
    finally:
        terminal.close()


async def first_visit(terminal):
    await terminal.shows("Codex")
    await terminal.enter("first")
    await terminal.shows("$ touch asked", "Yes, proceed")
    terminal.keys("y")
    await terminal.shows("ASKED")
    told["approved"] = Path(work, "asked").exists()
    await terminal.enter("second")
    await terminal.shows("PATCHED", agree="retry without sandbox?")
    told["patched"] = Path(work, "new.txt").read_text()
    await terminal.enter("/status")
    await terminal.shows("Session")
    await terminal.enter("/model")
    await terminal.shows("Select Model")
    terminal.keys("Escape")
    await terminal.enter("wait")
    await terminal.shows("esc to interrupt")
    terminal.keys("Escape")
    await terminal.shows("interrupted")
    told["interrupted"] = True
    await terminal.enter("wait")
    await terminal.shows("esc to interrupt")
    terminal.tmux("send-keys", "-t", terminal.name, "-l", "queued")
    await asyncio.sleep(0.5)
    terminal.keys("Tab")
    await terminal.shows("ueued")
    released.set()
    await terminal.shows("QUEUED")
    told["queued"] = True
    await terminal.enter("/goal Make it so")
    await terminal.shows("GOAL DONE")
    await terminal.enter("/quit")
    await terminal.ended()


async def second_visit(terminal):
    await terminal.shows("QUEUED", "GOAL DONE")
    told["resumed"] = True
    await terminal.enter("/quit")
    await terminal.ended()


async def main():
    start_provider()
    server, address = start_server()
    try:
        async with serve(lambda client: relay(client, address), "127.0.0.1", 0, max_size=None) as relayed:
            remote = ["--remote", f"ws://127.0.0.1:{relayed.sockets[0].getsockname()[1]}"]
            await in_terminal(first_visit, *remote)
            await in_terminal(second_visit, "resume", "--last", *remote)
    finally:
        server.kill()


try:
    asyncio.run(main())
finally:
    print(json.dumps(told))
