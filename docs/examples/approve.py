"""Runs one turn; asks before commands and file changes: approve.py PROMPT [SERVER ARGUMENT...]"""
import json
import subprocess
import sys

prompt, *command = sys.argv[1:]
server = subprocess.Popen(command or ["loomd", "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def send(message):
    print(json.dumps(message), file=server.stdin, flush=True)


def until(is_wanted):
    for message in map(json.loads, server.stdout):
        method, params = message.get("method"), message.get("params")
        if method in ("item/commandExecution/requestApproval", "item/fileChange/requestApproval"):
            print(f"\nAllow {params.get('command') or 'the changes'}? [y/N] ", end="", flush=True)
            decision = "accept" if sys.stdin.readline().strip() == "y" else "decline"
            send({"id": message["id"], "result": {"decision": decision}})
        elif method and "id" in message:
            send({"id": message["id"], "error": {"code": -32601, "message": f"no handler for {method}"}})
        elif method == "item/agentMessage/delta":
            print(params["delta"], end="", flush=True)
        if is_wanted(message):
            return message
    sys.exit("the server has ended")


def request(number, method, params):
    send({"id": number, "method": method, "params": params})
    answer = until(lambda message: message.get("id") == number and "method" not in message)
    return answer["result"] if "result" in answer else sys.exit(answer["error"]["message"])


request(1, "initialize", {"clientInfo": {"name": "approve", "version": "1.0"}})
send({"method": "initialized"})
thread = request(2, "thread/start", {"approvalPolicy": "untrusted"})["thread"]
request(3, "turn/start", {"threadId": thread["id"], "input": [{"type": "text", "text": prompt}]})
print("\n" + until(lambda message: message.get("method") == "turn/completed")["params"]["turn"]["status"])
