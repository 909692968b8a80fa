"""A server made of the official Python SDK, 1.x (legacy) or 2.x (modern), that speaks the vocabulary beside it.

Usage: python server.py NAME     (with the python of the wanted SDK's venv)
"""

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

# Sampling, roots and logging are deprecated, and here on purpose.
warnings.simplefilter("ignore")

NAME = sys.argv[1]
LEGACY = version("mcp").startswith("1.")
PAGE = 2
WATCHED = f"{NAME}://notes/watched"
VOCABULARY = json.loads(Path(__file__).with_name("vocabulary.json").read_text("utf-8").replace("SERVER", NAME))
if not LEGACY:
    # This line of the SDK has no tasks.
    VOCABULARY["tools"] = [tool for tool in VOCABULARY["tools"] if tool["name"] != "work"]
KEYS = {"tools": "tools", "resources": "resources", "templates": "resourceTemplates", "prompts": "prompts"}

cursors: dict[str, list[str]] = {name: [] for name in KEYS}
touched = 0
proceeding: anyio.Event
cancelling: anyio.Event


def page(name: str, cursor: str | None) -> dict:
    if cursor is not None and cursor not in cursors[name]:
        cursors[name].append(cursor)
    start = int(cursor or 0)
    end = start + PAGE
    more = {"nextCursor": str(end)} if end < len(VOCABULARY[name]) else {}
    return {KEYS[name]: VOCABULARY[name][start:end], **more}


def read(uri: str) -> dict:
    if uri.endswith("/pixel"):
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": VOCABULARY["pixel"]}]}
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"{uri} touched {touched} times"}]}


def prompt(name: str, given: dict | None) -> dict:
    text = f"{name} {(given or {}).get('who', 'nobody')} from {NAME}"
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def complete(ref, argument) -> dict:
    values = [word for word in VOCABULARY["words"] if word.startswith(argument.value)]
    about = getattr(ref, "name", None) or str(ref.uri)
    return {"completion": {"values": [*values, about], "total": 9, "hasMore": True}}


async def call(tool: str, given: dict, context) -> dict:
    global touched
    match tool:
        case "echo":
            image = {"type": "image", "data": VOCABULARY["pixel"], "mimeType": "image/png"}
            return {
                "content": [{"type": "text", "text": given["message"]}, image],
                "structuredContent": {"said": given["message"]},
                "_meta": {"example.com/from": NAME},
            }
        case "fail":
            return {**said("as it always does"), "isError": True}
        case "seen":
            return said(json.dumps({"era": context.era, "cursors": cursors}))
        case "ask":
            return await context.ask(given["what"])
        case "count":
            for progress in (1, 2, 3):
                await context.step(progress, 3)
            await proceeding.wait()
            return said("counted")
        case "proceed":
            proceeding.set()
            return said("go on")
        case "wait":
            await context.step(1, 2)
            try:
                await anyio.sleep_forever()
            finally:
                cancelling.set()
        case "cancelled":
            await cancelling.wait()
            return said("a wait was cancelled")
        case "log":
            await context.log("debug", f"a detail of {NAME}")
            await context.log("warning", {"from": NAME, "n": 1.5})
            return said("logged")
        case "grow":
            for name, entry in VOCABULARY["grown"].items():
                VOCABULARY[name].append(entry)
            await context.changed()
            return said("grown")
        case "work":
            return await context.work()
        case "touch":
            touched += 1
            await context.updated(WATCHED)
            return said("touched")
    raise ValueError(f"no tool {tool}")


def request_params(what: str) -> dict:
    """The params of a server request. The host repeats words of them, so that no answer can be another's."""
    message = f"{what} of {NAME}"
    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    return {
        "sampling": {"messages": [{"role": "user", "content": {"type": "text", "text": message}}], "maxTokens": 7},
        "form": {"message": message, "requestedSchema": schema},
        "url": {"message": message, "url": f"https://example.com/{NAME}"},
    }[what]


def common(answer) -> dict:
    """The members of an answer that both eras have."""
    answer = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    wanted = ("role", "model", "content", "action", "roots")
    return said(json.dumps({key: answer[key] for key in wanted if key in answer}))


def said(text: str) -> dict:
    return {"content": [{"type": "text", "text": text}]}


class LegacyContext:
    era = "legacy"

    def __init__(self, context):
        self.session, self.meta, self.request = context.session, context.meta, context.request_id
        self.tasks = context.experimental

    async def step(self, progress: int, total: int) -> None:
        token = self.meta.progressToken
        await self.session.send_progress_notification(token, progress, total, f"{progress} of {total}", str(self.request))

    async def work(self):
        async def do(_):
            return types.CallToolResult.model_validate(said(f"worked for {NAME}"))

        return await self.tasks.run_task(do)

    async def log(self, level: str, data) -> None:
        await self.session.send_log_message(level, data, NAME)

    async def changed(self) -> None:
        await self.session.send_tool_list_changed()
        await self.session.send_resource_list_changed()
        await self.session.send_prompt_list_changed()

    async def updated(self, uri: str) -> None:
        await self.session.send_resource_updated(uri)

    async def ask(self, what: str) -> dict:
        asked = {} if what == "roots" else request_params(what)
        match what:
            case "sampling":
                messages = [types.SamplingMessage.model_validate(message) for message in asked["messages"]]
                return common(await self.session.create_message(messages, max_tokens=asked["maxTokens"]))
            case "form":
                return common(await self.session.elicit_form(asked["message"], asked["requestedSchema"]))
            case "url":
                return common(await self.session.elicit_url(asked["message"], asked["url"], f"of {NAME}"))
            case _:
                return common(await self.session.list_roots())


def legacy() -> Server:
    server = Server(NAME, "1.0.0")
    server.experimental.enable_tasks()

    def on(request, result, answer) -> None:
        async def handle(asked):
            answered = await answer(asked.params)
            return types.ServerResult(result.model_validate(answered) if isinstance(answered, dict) else answered)

        server.request_handlers[request] = handle

    def on_list(name: str, request, result) -> None:
        async def answer(params):
            return page(name, params.cursor if params else None)

        on(request, result, answer)

    on_list("tools", types.ListToolsRequest, types.ListToolsResult)
    on_list("resources", types.ListResourcesRequest, types.ListResourcesResult)
    on_list("templates", types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult)
    on_list("prompts", types.ListPromptsRequest, types.ListPromptsResult)

    async def call_tool(params):
        return await call(params.name, params.arguments or {}, LegacyContext(server.request_context))

    async def read_resource(params):
        return read(str(params.uri))

    async def get_prompt(params):
        return prompt(params.name, params.arguments)

    async def completion(params):
        return complete(params.ref, params.argument)

    async def nothing(_):
        return {}

    on(types.CallToolRequest, types.CallToolResult, call_tool)
    on(types.ReadResourceRequest, types.ReadResourceResult, read_resource)
    on(types.GetPromptRequest, types.GetPromptResult, get_prompt)
    on(types.CompleteRequest, types.CompleteResult, completion)
    for request in (types.SubscribeRequest, types.UnsubscribeRequest, types.SetLevelRequest):
        on(request, types.EmptyResult, nothing)
    return server


class ModernContext:
    def __init__(self, context, params, bus):
        self.context, self.params, self.bus = context, params, bus
        self.era = "modern" if context.protocol_version >= "2026" else "legacy"

    async def step(self, progress: int, total: int) -> None:
        await self.context.session.report_progress(progress, total, f"{progress} of {total}")

    async def log(self, level: str, data) -> None:
        await self.context.session.send_log_message(level, data, NAME)

    async def changed(self) -> None:
        from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

        for event in (ToolsListChanged(), ResourcesListChanged(), PromptsListChanged()):
            await self.bus.publish(event)

    async def updated(self, uri: str) -> None:
        from mcp.server.subscriptions import ResourceUpdated

        await self.bus.publish(ResourceUpdated(uri=uri))

    async def ask(self, what: str) -> dict:
        given = (self.params.input_responses or {}).get(what)
        if given is not None:
            return common(given)
        asks = {
            "sampling": lambda: {"method": "sampling/createMessage", "params": request_params(what)},
            "form": lambda: {"method": "elicitation/create", "params": {"mode": "form", **request_params(what)}},
            "url": lambda: {"method": "elicitation/create", "params": {"mode": "url", **request_params(what)}},
            "roots": lambda: {"method": "roots/list"},
        }
        return {"resultType": "input_required", "inputRequests": {what: asks[what]()}}


def modern() -> Server:
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

    bus = InMemorySubscriptionBus()

    def lister(name: str, result):
        async def answer(_, params):
            return result.model_validate(page(name, params.cursor if params else None))

        return answer

    async def call_tool(context, params):
        answer = await call(params.name, params.arguments or {}, ModernContext(context, params, bus))
        kind = types.InputRequiredResult if "inputRequests" in answer else types.CallToolResult
        return kind.model_validate(answer)

    async def read_resource(_, params):
        return types.ReadResourceResult.model_validate(read(str(params.uri)))

    async def get_prompt(_, params):
        return types.GetPromptResult.model_validate(prompt(params.name, params.arguments))

    async def completion(_, params):
        return types.CompleteResult.model_validate(complete(params.ref, params.argument))

    # Never asked for in this era, but it is what makes the SDK declare that the server logs.
    async def set_level(_, params):
        return types.EmptyResult()

    return Server(
        NAME,
        version="1.0.0",
        on_list_tools=lister("tools", types.ListToolsResult),
        on_list_resources=lister("resources", types.ListResourcesResult),
        on_list_resource_templates=lister("templates", types.ListResourceTemplatesResult),
        on_list_prompts=lister("prompts", types.ListPromptsResult),
        on_call_tool=call_tool,
        on_read_resource=read_resource,
        on_get_prompt=get_prompt,
        on_completion=completion,
        on_subscriptions_listen=ListenHandler(bus),
        on_set_logging_level=set_level,
    )


async def main() -> None:
    from mcp.server.lowlevel import NotificationOptions

    global proceeding, cancelling
    proceeding, cancelling = anyio.Event(), anyio.Event()
    server = legacy() if LEGACY else modern()
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    options = server.create_initialization_options(changes)
    # The SDK's 1.x line never says so by itself.
    options.capabilities.resources.subscribe = True
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, options)


anyio.run(main)
