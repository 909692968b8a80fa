"""A client made of the official Python SDK, 1.x or 2.x: connects over stdio or HTTP, lists, calls, prints.

Usage: python py_client.py PLAN.json     (with the python of the wanted SDK's venv)

The plan and what is printed are those of ts-client.mjs; "sdk" follows from the venv.
"""

import asyncio
import json
import sys
import time
from importlib.metadata import version

# Only a test that fails waits that long, also on a machine at ten times its load.
PATIENCE = 240.0
LOOK_EVERY = 0.2


async def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    run = run_v1 if version("mcp").startswith("1.") else run_v2
    print(json.dumps(await run(plan)))


async def run_v1(plan: dict) -> dict:
    from mcp import ClientSession

    async with connect_v1(plan) as streams:
        # Streamable HTTP brings a third: who tells the session's id.
        async with ClientSession(*streams[:2]) as session:
            opened = await session.initialize()
            tools = await list_until(plan["expect"], lambda: list_v1(session))
            results = [await call(session.call_tool, item) for item in plan["calls"]]
            await list_until(plan.get("afterwards", []), lambda: list_v1(session))
            looked = await look(session, plan.get("look"), complete_v1)
            version = opened.protocolVersion
            return {"version": version, "era": "legacy", "tools": tools, "results": results, "looked": looked}


async def complete_v1(session, params: dict):
    from mcp.types import PromptReference, ResourceTemplateReference

    kind = PromptReference if params["ref"]["type"] == "ref/prompt" else ResourceTemplateReference
    return await session.complete(kind(**params["ref"]), params["argument"])


def connect_v1(plan: dict):
    from mcp import StdioServerParameters
    from mcp.client.sse import sse_client
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if plan.get("type") == "sse":
        return sse_client(plan["url"])
    if plan.get("url"):
        return streamable_http_client(plan["url"])
    return stdio_client(StdioServerParameters(**spawn(plan)))


async def list_v1(session) -> list:
    from mcp.types import PaginatedRequestParams

    tools, cursor = [], None
    while True:
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += [dump(tool) for tool in page.tools]
        cursor = page.nextCursor
        if not cursor:
            return tools


async def run_v2(plan: dict) -> dict:
    from mcp import Client

    mode = "auto" if plan["era"] == "modern" else "legacy"
    async with Client(target_v2(plan), mode=mode, cache=None) as client:
        tools = await list_until(plan["expect"], lambda: list_v2(client))
        results = [await call(client.call_tool, item) for item in plan["calls"]]
        await list_until(plan.get("afterwards", []), lambda: list_v2(client))
        spoken = client.protocol_version
        era = "modern" if spoken >= "2026" else "legacy"
        looked = await look(client, plan.get("look"), complete_v1)
        return {"version": spoken, "era": era, "tools": tools, "results": results, "looked": looked}


def target_v2(plan: dict):
    from mcp import StdioServerParameters
    from mcp.client.sse import sse_client

    if plan.get("type") == "sse":
        return sse_client(plan["url"])
    return plan.get("url") or StdioServerParameters(**spawn(plan))


async def list_v2(client) -> list:
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += [dump(tool) for tool in page.tools]
        cursor = page.next_cursor
        if not cursor:
            return tools


async def look(client, wanted: dict | None, complete) -> dict | None:
    if wanted is None:
        return None
    asks = [(client.read_resource, (uri,)) for uri in wanted["reads"]]
    asks += [(client.get_prompt, (prompt["name"], prompt["arguments"])) for prompt in wanted["prompts"]]
    asks += [(complete, (client, params)) for params in wanted["completions"]]
    asked = []
    for ask, arguments in asks:
        try:
            asked.append({"result": dump(await ask(*arguments))})
        except Exception as error:  # as above
            data = getattr(error, "error", error)
            asked.append({"error": {"code": getattr(data, "code", None), "message": getattr(data, "message", str(error))}})
    templates = dump(await client.list_resource_templates())
    return {
        "resources": dump(await client.list_resources())["resources"],
        "templates": templates["resourceTemplates"],
        "prompts": dump(await client.list_prompts())["prompts"],
        "asked": asked,
    }


def spawn(plan: dict) -> dict:
    return {key: plan[key] for key in ("command", "args", "env", "cwd") if plan.get(key) is not None}


async def list_until(expected: list, list_all) -> list:
    """What a gateway lists may still grow while its servers start for the first time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        tools = await list_all()
        listed = {tool["name"] for tool in tools}
        missing = [name for name in expected if name not in listed]
        if not missing:
            return tools
        if time.monotonic() > deadline:
            raise SystemExit(f"never listed: {missing}; listed: {sorted(listed)}")
        await asyncio.sleep(LOOK_EVERY)


async def call(call_tool, item: dict) -> dict:
    steps = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append({"progress": progress, "total": total, "message": message})

    try:
        result = await call_tool(item["name"], item["arguments"], progress_callback=on_progress)
        return {"result": dump(result), "progress": steps}
    except Exception as error:  # the SDKs' error types differ; what they carry does not
        data = getattr(error, "error", error)
        seen = {"code": getattr(data, "code", None), "message": getattr(data, "message", str(error))}
        return {"error": seen, "progress": steps}


def dump(model) -> dict:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


asyncio.run(main())
