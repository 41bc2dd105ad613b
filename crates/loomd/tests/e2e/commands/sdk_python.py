"""Calls every method of the client of codex-sdk-python once, and prints what came of each as JSON.

Arguments: the program, its home, the user's home, a working directory. The provider answers every call with a message, and
the third does not end.
"""

import asyncio
import base64
import inspect
import json
import os
import sys
from pathlib import Path

from codex_sdk import AppServerClient, AppServerOptions, ApprovalDecisions

program, home, user_home, work = sys.argv[1], *map(Path, sys.argv[2:5])

SKILL = work / ".agents" / "skills" / "release-notes" / "SKILL.md"
MARKETPLACE = work / ".agents" / "plugins" / "marketplace.json"


def prepare():
    SKILL.parent.mkdir(parents=True)
    SKILL.write_text("---\ndescription: Draft release notes\n---\nTHE STEPS\n")
    plugin = work / "plugins" / "tools"
    (plugin / ".codex-plugin").mkdir(parents=True)
    (plugin / ".codex-plugin" / "plugin.json").write_text(json.dumps({"name": "tools"}))
    MARKETPLACE.parent.mkdir(parents=True)
    source = {"source": "local", "path": "./plugins/tools"}
    MARKETPLACE.write_text(json.dumps({"name": "shelf", "plugins": [{"name": "tools", "source": source}]}))


async def main():
    outcomes, facts = {}, {}
    options = AppServerOptions(
        codex_path_override=program,
        env={"CODEX_HOME": str(home), "HOME": str(user_home), "PATH": os.environ["PATH"]},
        experimental_api_enabled=True,
        auto_initialize=False,
        request_timeout=30,
    )
    async with AppServerClient(options) as client:

        async def call(method, *args, **kwargs):
            try:
                result = await getattr(client, method)(*args, **kwargs)
                outcomes.setdefault(method, "ok")
                return result
            except Exception as error:
                outcomes[method] = str(error)[:200]
                return {}

        async def ended(method, where=lambda params: True):
            while True:
                notification = await asyncio.wait_for(client.next_notification(), 30)
                if notification.method == method and where(notification.params or {}):
                    outcomes.setdefault("next_notification", "ok")
                    return notification.params

        await call("initialize")
        await call("notify", "initialized")

        # Skills and plugins.
        listed = await call("skills_list", cwds=[work], force_reload=True)
        facts["skills"] = [skill["name"] for skill in listed["data"][0]["skills"] if skill["scope"] == "repo"]
        facts["effective"] = await call("skills_config_write", path=str(SKILL), enabled=False)
        await call("skills_config_write", path=str(SKILL), enabled=True)
        for name, kwargs in [("list", {}), ("read", {}), ("write", {"hazelnut_id": "x", "is_preload": False}), ("export", {"hazelnut_id": "x", "is_preload": False})]:
            await call(f"skills_remote_{name}", **kwargs)
        plugins = await call("plugin_list", cwds=[work])
        facts["plugins"] = [plugin["id"] for shelf in plugins["marketplaces"] for plugin in shelf["plugins"]]
        await call("plugin_list")
        await call("plugin_read", marketplace_path=MARKETPLACE, plugin_name="tools")
        await call("plugin_install", marketplace_path=MARKETPLACE, plugin_name="tools")
        await call("plugin_uninstall", plugin_id="tools@shelf")
        await call("app_list")

        # Threads and turns.
        thread = (await call("thread_start", cwd=str(work)))["thread"]["id"]
        session = await call("turn_session", thread, "please $release-notes", approvals=ApprovalDecisions(command_execution="accept"))
        async with session:
            facts["session"] = [notification.method async for notification in session.notifications()][-1]
            await session.wait()
        await call("turn_start", thread, [{"type": "skill", "name": "release-notes", "path": str(SKILL)}, {"type": "text", "text": "again"}])
        await ended("turn/completed")
        turn = (await call("turn_start", thread, "steered"))["turn"]["id"]
        await ended("item/agentMessage/delta")
        await call("turn_steer", thread, turn, "more")
        await call("turn_interrupt", thread, turn)
        await ended("turn/completed")
        await call("thread_shell_command", thread, command="true")
        await ended("turn/completed")
        await call("review_start", thread, target={"type": "custom", "instructions": "look"})
        await ended("turn/completed")
        await call("thread_compact_start", thread)
        await ended("turn/completed")
        await call("thread_background_terminals_clean", thread)
        await call("thread_name_set", thread, name="named")
        await call("thread_metadata_update", thread, git_info={"branch": "b"})
        await call("thread_read", thread, include_turns=True)
        await call("thread_list", cwd=work)
        await call("thread_loaded_list")
        await call("thread_rollback", thread, num_turns=1)
        fork = (await call("thread_fork", thread))["thread"]["id"]
        await call("thread_unsubscribe", fork)
        await call("thread_resume", thread)
        await call("thread_archive", thread)
        await call("thread_unarchive", thread)

        # Configuration and models.
        await call("config_read", include_layers=True, cwd=work)
        await call("config_requirements_read")
        await call("config_value_write", key_path="personality", value="friendly", merge_strategy="replace")
        await call("config_batch_write", edits=[{"keyPath": "personality", "value": "pragmatic", "mergeStrategy": "replace"}])
        await call("model_list")
        await call("collaboration_mode_list")
        await call("experimental_feature_list")
        await call("experimental_feature_enablement_set", feature_enablement={"apps": True})
        await call("external_agent_config_detect", include_home=True)
        await call("external_agent_config_import", migration_items=[])
        await call("windows_sandbox_setup_start", mode="unelevated")
        await call("feedback_upload", classification="bug")
        await call("mcp_server_status_list")
        await call("mcp_server_refresh")
        await call("mcp_server_oauth_login", name="missing")

        # Files and commands.
        await call("fs_create_directory", path=work / "d")
        await call("fs_write_file", path=work / "d" / "f", data_base64=base64.b64encode(b"text").decode())
        watch = await call("fs_watch", path=work / "d")
        await call("fs_unwatch", watch_id=watch["watchId"])
        await call("fs_read_file", path=work / "d" / "f")
        await call("fs_read_directory", path=work / "d")
        await call("fs_get_metadata", path=work / "d" / "f")
        await call("fs_copy", source_path=work / "d", destination_path=work / "e", recursive=True)
        await call("fs_remove", path=work / "e", recursive=True)
        running = asyncio.create_task(call("command_exec", command=["cat"], process_id="p", tty=True, size={"rows": 24, "cols": 80}, cwd=work))
        await asyncio.sleep(0)
        while outcomes.get("command_exec_write") != "ok":
            outcomes.pop("command_exec_write", None)
            await call("command_exec_write", process_id="p", delta_base64=base64.b64encode(b"hi\n").decode())
        await call("command_exec_resize", process_id="p", size={"rows": 30, "cols": 90})
        await call("command_exec_terminate", process_id="p")
        await running

        # The account.
        await call("account_read")
        await call("account_rate_limits_read")
        await call("account_login_cancel", login_id="00000000-0000-0000-0000-000000000000")
        await call("account_login_start", params={"type": "apiKey", "apiKey": "key"})
        await call("account_logout")

    inner = {"close", "start", "request", "notifications", "requests", "next_request", "respond"}
    methods = {name for name, _ in inspect.getmembers(AppServerClient, inspect.isfunction) if not name.startswith("_")}
    facts["missed"] = sorted(methods - inner - outcomes.keys())
    facts["failed"] = {method: outcome for method, outcome in outcomes.items() if outcome != "ok"}
    print(json.dumps(facts))


prepare()
asyncio.run(main())
