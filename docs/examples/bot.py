"""A bot for chat rooms. Reads lines of the form `room: message` and prints `room: answer`.

Every room has a thread of its own, which is resumed after a restart. Commands that need approval run only if they are
on a list. bot.py [SERVER ARGUMENT...]
"""
import json
import pathlib
import shlex
import subprocess
import sys

ALLOWED = ["date", "./test.sh"]
ROOMS = pathlib.Path("rooms.json")


class Server:
    """An app-server on stdio."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.last_id = 0
        self.request("initialize", {"clientInfo": {"name": "bot", "version": "1.0"}})
        self.send({"method": "initialized"})

    def send(self, message):
        print(json.dumps(message), file=self.process.stdin, flush=True)

    def request(self, method, params):
        self.last_id += 1
        number = self.last_id
        self.send({"id": number, "method": method, "params": params})
        for message in self.messages():
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]

    def messages(self):
        """Messages of the server. Its requests are answered here."""
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.send({"id": message["id"], **answer(message["method"], message["params"])})
            yield message
        raise RuntimeError("the server has ended")

    def turn(self, thread, text):
        """Runs a turn and returns the agent's last message."""
        self.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
        said = ""
        for message in self.messages():
            params = message.get("params", {})
            if params.get("threadId") != thread:
                continue
            if message["method"] == "item/completed" and params["item"]["type"] == "agentMessage":
                said = params["item"]["text"]
            if message["method"] == "turn/completed":
                error = params["turn"]["error"]
                return f"That failed: {error['message']}" if error else said


def answer(method, params):
    """The answer to a request of the server."""
    if method == "item/commandExecution/requestApproval":
        # A shell with the script as its last argument, such as: /bin/bash -lc ./test.sh
        script = shlex.split(params.get("command") or "''")[-1]
        return {"result": {"decision": "accept" if script in ALLOWED else "decline"}}
    if method == "item/fileChange/requestApproval":
        return {"result": {"decision": "decline"}}
    return {"error": {"code": -32601, "message": f"no handler for {method}"}}


server = Server(sys.argv[1:] or ["loomd", "app-server"])
rooms = json.loads(ROOMS.read_text()) if ROOMS.exists() else {}
open_rooms = {}
for line in sys.stdin:
    room, _, text = line.strip().partition(": ")
    if room not in open_rooms:
        if room in rooms:
            opened = server.request("thread/resume", {"threadId": rooms[room]})
        else:
            opened = server.request("thread/start", {"approvalPolicy": "untrusted"})
        open_rooms[room] = rooms[room] = opened["thread"]["id"]
        ROOMS.write_text(json.dumps(rooms))
    print(f"{room}: {server.turn(rooms[room], text)}", flush=True)
