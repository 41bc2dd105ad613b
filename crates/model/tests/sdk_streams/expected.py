"""What the official SDKs make of the recorded streams in their own source packages.

Usage: expected.py CACHE. Downloads source packages and installs the SDKs into CACHE once, then writes one JSON object
per stream to standard output: where it is from, its wire, the file that holds it, and what the SDK reads in it. Exits
with 3 when the packages cannot be had.
"""

import ast
import gzip
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import threading
import urllib.parse
import urllib.request
import zlib

SOURCES = ["openai", "anthropic", "litellm", "langchain-openai", "langchain-anthropic"]
SDKS = ["openai", "anthropic", "pyyaml"]
TIMEOUT = 60
LARGEST = 4 << 20


def main(cache):
    cache.mkdir(parents=True, exist_ok=True)
    python = cache / "venv" / "bin" / "python"
    if "--read" in sys.argv:
        return read(cache)
    try:
        if not (cache / "installed").exists():
            subprocess.run([sys.executable, "-m", "venv", cache / "venv"], check=True, stdout=sys.stderr)
            subprocess.run([python, "-m", "pip", "-q", "install", *SDKS], check=True, stdout=sys.stderr, timeout=600)
            (cache / "installed").touch()
        for name in SOURCES:
            unpack(name, cache)
    except (OSError, LookupError, subprocess.SubprocessError) as error:
        print(f"no packages: {error}", file=sys.stderr)
        return 3
    return subprocess.run([python, __file__, cache, "--read"]).returncode


def unpack(name, cache):
    """Puts the files of the newest source package into the cache."""
    target = cache / "sources" / name
    if target.exists():
        return
    from pip._internal.models.index import PyPI

    said = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    index = os.environ.get("PIP_INDEX_URL") or said.stdout.strip() or PyPI.simple_url
    page = index.rstrip("/") + f"/{name}/"
    with urllib.request.urlopen(page, timeout=TIMEOUT) as answer:
        links = re.findall(r'href="([^"]+\.tar\.gz)[#"]', answer.read().decode())
    if not links:
        raise LookupError(f"no source package of {name}")
    newest = max(links, key=lambda link: [int(part) for part in re.findall(r"\d+", link.rsplit("/", 1)[1])])
    package = cache / f"{name}.tar.gz"
    with urllib.request.urlopen(urllib.parse.urljoin(page, newest), timeout=TIMEOUT) as answer:
        package.write_bytes(answer.read())
    with tarfile.open(package) as archive:
        for member in archive:
            path = pathlib.PurePosixPath(member.name)
            if member.isfile() and member.size <= LARGEST and ".." not in path.parts and not path.is_absolute():
                file = target.joinpath(*path.parts[1:])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.extractfile(member).read())


def streams(folder):
    """Every recorded stream below a folder: files, recorded calls, and texts in programs."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.stat().st_size > LARGEST:
            continue
        name, data = str(path.relative_to(folder)), path.read_bytes()
        text = as_text(data)
        if is_stream(text):
            yield name, text
        elif "cassette" in name and (".yaml" in name or ".yml" in name):
            yield from numbered(name, recorded(text))
        elif path.suffix == ".py" and "data: {" in text:
            try:
                nodes = list(ast.walk(ast.parse(text)))
            except (SyntaxError, ValueError, RecursionError):
                continue
            yield from numbered(name, (node.value for node in nodes if isinstance(node, ast.Constant)))


def numbered(name, values):
    texts = (as_text(value) for value in values if isinstance(value, (str, bytes)))
    for number, text in enumerate(text for text in texts if is_stream(text)):
        yield f"{name}#{number}", text


def recorded(text):
    """Every text in a file of recorded calls."""
    import yaml

    def walk(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                yield from walk(part)
        else:
            yield value

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return list(walk(yaml.load(text, Loader=loader)))
    except yaml.YAMLError:
        return []


def as_text(data):
    if isinstance(data, str):
        return data
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return ""
    return data.decode("utf-8", "replace")


def is_stream(text):
    return text.lstrip().startswith(("data:", "event:")) and text.count("\ndata:") + text.startswith("data:") > 1


def wire(text):
    if '"message_start"' in text:
        return "anthropic"
    if re.search(r'"object":\s*"chat\.completion\.chunk"', text):
        return "chat"
    if '"response.created"' in text:
        return "responses"
    return None


def read(cache):
    (cache / "streams").mkdir(exist_ok=True)
    number = 0
    with Replay() as replay:
        for source in SOURCES:
            for name, text in streams(cache / "sources" / source):
                if not (kind := wire(text)):
                    continue
                path = cache / "streams" / f"{number}.sse"
                path.write_bytes(text.encode())
                number += 1
                replay.body = text.encode()
                try:
                    seen = {"chat": chat, "anthropic": anthropic, "responses": responses}[kind](replay.url)
                except Exception as error:  # Whatever an SDK raises is what it makes of the stream.
                    seen = {"raised": f"{type(error).__name__}: {error}"[:200]}
                print(json.dumps({"from": f"{source}: {name}", "wire": kind, "stream": str(path), **seen}))
    return 0


def anthropic(url):
    from anthropic import Anthropic

    client = Anthropic(api_key="key", base_url=url, max_retries=0)
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [[block.name, block.input] for block in message.content if block.type == "tool_use"]
    return {"text": text, "calls": calls, "stop": message.stop_reason}


def chat(url):
    from openai import OpenAI

    client = OpenAI(api_key="key", base_url=url + "/v1", max_retries=0)
    text, calls, stop, order = "", {}, None, []
    for chunk in client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True):
        for choice in chunk.choices[:1]:
            if choice.index:
                return {"raised": "several answers"}
            text += choice.delta.content or ""
            text += getattr(choice.delta, "refusal", None) or ""
            for call in choice.delta.tool_calls or []:
                known = calls.setdefault(call.index, ["", ""])
                known[0] += (call.function and call.function.name) or ""
                known[1] += (call.function and call.function.arguments) or ""
            stop = choice.finish_reason or stop
    return {"text": text, "calls": [[name, json.loads(given or "{}")] for _, (name, given) in sorted(calls.items())], "stop": stop}


def responses(url):
    from openai import OpenAI

    client = OpenAI(api_key="key", base_url=url + "/v1", max_retries=0)
    with client.responses.stream(model="m", input="hi") as stream:
        response = stream.get_final_response()
    calls = [[item.name, json.loads(item.arguments or "{}")] for item in response.output if item.type == "function_call"]
    return {"text": response.output_text, "calls": calls, "stop": response.status}


class Replay:
    """Answers every request with one stream."""

    body = b""

    def __enter__(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
