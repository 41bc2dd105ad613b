# What a program does with weakincentives: a text, a typed output, a tool that succeeds and one that fails, a server
# that refuses, and tokens of its own. Prints what came of them as one JSON object.
import base64
import dataclasses
import json
import os
import sys
from dataclasses import dataclass

from weakincentives import MarkdownSection, Prompt
from weakincentives.adapters.codex_app_server import (
    CodexAppServerAdapter,
    CodexAppServerClientConfig,
    CodexAppServerModelConfig,
    ExternalTokenAuth,
)
from weakincentives.prompt import PromptTemplate, Tool, ToolContext, ToolResult
from weakincentives.runtime import InProcessDispatcher, Session
from weakincentives.runtime.events import PromptExecuted, PromptRendered, ToolInvoked

executable, home, user, folder = sys.argv[1:]
env = {"CODEX_HOME": home, "HOME": user, "PATH": os.environ["PATH"]}
config = CodexAppServerClientConfig(
    codex_bin=executable,
    cwd=folder,
    env=env,
    approval_policy="never",
    sandbox_mode="danger-full-access",
    client_name="wink-test",
)


def adapter_with(config):
    return CodexAppServerAdapter(
        model_config=CodexAppServerModelConfig(model="scripted-model", effort="low"), client_config=config
    )


adapter = adapter_with(config)


def token(claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"header.{payload}.signature"


id_token = token({"email": "a@b", "https://api.openai.com/auth": {"chatgpt_account_id": "account-1"}})
signed_in = adapter_with(
    dataclasses.replace(config, auth_mode=ExternalTokenAuth(id_token=id_token, access_token="access-1"))
)


@dataclass(frozen=True)
class Answer:
    answer: int


@dataclass(frozen=True)
class Look:
    name: str


@dataclass(frozen=True)
class Found:
    number: int


def look(params: Look, *, context: ToolContext) -> ToolResult[Found]:
    if params.name != "known":
        raise ValueError("nothing of this name")
    return ToolResult.ok(Found(number=42), message="found 42")


tool = Tool[Look, Found](name="look", description="Looks a number up.", handler=look)


def evaluate(template, adapter=adapter):
    """The text, the output and the events of one evaluation; or its error."""
    dispatcher = InProcessDispatcher()
    events = []
    for kind in (PromptRendered, ToolInvoked, PromptExecuted):
        dispatcher.subscribe(kind, events.append)
    session = Session(dispatcher=dispatcher)
    try:
        response = adapter.evaluate(Prompt(template), session=session)
    except Exception as error:
        return {"error": str(error), "phase": getattr(error, "phase", None)}
    # Tools of the program have a result object, those of the server what its item says.
    tools = [
        [event.name, getattr(event.result, "success", None), event.rendered_output]
        for event in events
        if isinstance(event, ToolInvoked)
    ]
    output = getattr(response.output, "answer", None)
    kinds = [type(event).__name__ for event in events]
    return {"text": response.text, "output": output, "events": kinds, "tools": tools}


def section(text, tools=()):
    return (MarkdownSection(title="Task", key="task", template=text, tools=tools),)


results = {
    "text": evaluate(PromptTemplate(ns="test", key="text", sections=section("Say something."))),
    "typed": evaluate(PromptTemplate[Answer](ns="test", key="typed", sections=section("Answer."))),
    "tools": evaluate(PromptTemplate(ns="test", key="tools", sections=section("Look it up.", (tool,)))),
    "failed": evaluate(PromptTemplate(ns="test", key="failed", sections=section("Fail."))),
    "signed in": evaluate(PromptTemplate(ns="test", key="tokens", sections=section("Say it.")), signed_in),
}
print(json.dumps(results))
