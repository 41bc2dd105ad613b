"""Uses what the official Python SDK offers, its newer options included, and prints what came of it as JSON.

Arguments: the program, its home, the user's home, a working directory.
"""

import json
import os
import sys

from openai_codex import ApprovalMode, Codex, CodexConfig, ExternalMessage, Sandbox, TextInput

program, home, user_home, work = sys.argv[1:5]
env = {"CODEX_HOME": home, "HOME": user_home, "PATH": os.environ["PATH"]}
config = CodexConfig(codex_bin=program, cwd=work, env=env)
told = {}

with Codex(config) as codex:
    told["version"] = codex.metadata.serverInfo.version
    told["models"] = len(codex.models(include_hidden=True).data)
    told["account"] = codex.account().account
    thread = codex.thread_start(cwd=work, sandbox=Sandbox.workspace_write, approval_mode=ApprovalMode.deny_all)
    first = thread.run("first")
    told["first"] = [first.final_response, first.status.value, first.duration_ms is not None]
    told["items"] = [item.root.type for item in first.items]
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"], "additionalProperties": False}
    second = thread.run([TextInput("second")], output_schema=schema, turn_service_tier="flex")
    told["structured"] = json.loads(second.final_response)
    handle = thread.turn("third")
    told["streamed"] = sorted({event.method for event in handle.stream()})
    thread.set_name("A name")
    told["name"] = thread.read().thread.name
    told["turns"] = len(thread.read(include_turns=True).thread.turns)
    told["resumed"] = codex.thread_resume(thread.id, include_turns=False).run("fourth").final_response
    fork = codex.thread_fork(thread.id, include_turns=False, ephemeral=True)
    told["fork"] = [fork.id != thread.id, fork.run("fifth").final_response]
    told["listed"] = [listed.id == thread.id for listed in codex.thread_list(sort_direction="asc").data]
    told["external"] = thread.run(ExternalMessage("mail", "sixth")).final_response
    thread.compact()
    codex.thread_archive(thread.id)
    told["archived"] = len(codex.thread_list(archived=True).data)
    told["unarchived"] = codex.thread_unarchive(thread.id).id == thread.id

print(json.dumps(told))
