"""A host made of the official Python SDK, 1.x (legacy) or 2.x (modern): what host.mjs does, row by row.

Usage: python host.py PLAN.json     (with the python of the wanted SDK's venv)

The plan and what is printed are those of host.mjs.
"""

import json
import sys
import warnings
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version

import anyio
from mcp import StdioServerParameters, types

# Sampling, roots and logging are deprecated, and here on purpose.
warnings.simplefilter("ignore")

# Only a row that fails waits that long, also on a machine at ten times its load.
PATIENCE = 120.0
LEGACY = version("mcp").startswith("1.")
LEVEL = "info"
KINDS = ("tools", "resources", "prompts")


class Notifications:
    """What the gateway has sent, by kind; a row can wait for more of it."""

    def __init__(self):
        self.by_kind: dict[str, list] = {}
        self.arrival = anyio.Event()

    def receive(self, kind: str, params) -> None:
        self.by_kind.setdefault(kind, []).append(params)
        self.arrival.set()
        self.arrival = anyio.Event()

    def of(self, kind: str) -> list:
        return self.by_kind.get(kind, [])

    def forget(self, kind: str) -> None:
        self.by_kind.pop(kind, None)

    async def until(self, holds) -> None:
        """Looks again whenever a notification has arrived."""
        while True:
            arrival = self.arrival
            if await holds():
                return
            await arrival.wait()


async def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    notifications = Notifications()
    seen = {}
    async with (connect_v1 if LEGACY else connect_v2)(plan, notifications) as host:

        async def all_there() -> bool:
            names = {tool["name"] for tool in await host.list("tools")}
            return all(f"{server}__touch" in names for server in plan["servers"])

        with anyio.fail_after(2 * PATIENCE):
            await notifications.until(all_there)
        for server in plan["servers"]:
            seen[server] = await go_through(host, server)
        print(json.dumps(seen))


async def go_through(host, server: str) -> dict:
    rows = {
        "tools": look_at_tools,
        "resources": look_at_resources,
        "prompts": look_at_prompts,
        "completion": complete,
        "sampling": asking("sampling"),
        "elicitation form": asking("form"),
        "elicitation url": asking("url"),
        "roots": asking("roots"),
        "progress": progress,
        "cancellation": cancel,
        "logging": log,
        "pagination": list_everything,
        "list change": grow_lists,
        "resource update": subscribe,
        "tasks": work,
    }
    seen = {}
    for row, look in rows.items():
        try:
            with anyio.fail_after(PATIENCE):
                seen[row] = await look(host, server)
        except Exception as error:  # a row that fails is a result like any other
            seen[row] = {"failed": f"{type(error).__name__}: {error}"}
    return seen


async def look_at_tools(host, server: str) -> dict:
    definition = next(tool for tool in await host.list("tools") if tool["name"] == f"{server}__echo")
    result = await host.call(server, "echo", {"message": 'héllo "world" 😀'})
    failure = await host.call(server, "fail", {})
    return {
        "definition": definition,
        "result": {
            "content": result["content"],
            "structuredContent": result["structuredContent"],
            "from": result.get("_meta", {}).get("example.com/from"),
        },
        "failure": {"isError": failure["isError"], "text": failure["content"][0]["text"]},
    }


async def look_at_resources(host, server: str) -> dict:
    wanted = f"{server}://notes/third"
    return {
        "listed": next(resource for resource in await host.list("resources") if resource["uri"] == wanted),
        "text": await host.read(f"{server}://notes/watched"),
        "blob": await host.read(f"{server}://notes/pixel"),
        "byTemplate": await host.read(f"{server}://note/7"),
    }


async def look_at_prompts(host, server: str) -> dict:
    name = f"{server}__greet"
    listed = next(prompt for prompt in await host.list("prompts") if prompt["name"] == name)
    got = dump(await host.client.get_prompt(name, {"who": "Ada"}))
    return {"listed": listed, "messages": got["messages"]}


async def complete(host, server: str) -> dict:
    async def ask(ref, name: str) -> dict:
        return dump(await host.client.complete(ref, {"name": name, "value": "par"}))["completion"]

    prompt = types.PromptReference(type="ref/prompt", name=f"{server}__greet")
    template = types.ResourceTemplateReference(type="ref/resource", uri=f"{server}://note/{{id}}")
    return {"prompt": await ask(prompt, "who"), "template": await ask(template, "id")}


def asking(what: str):
    async def ask(host, server: str) -> dict:
        return json.loads(await host.say(server, "ask", {"what": what}))

    return ask


async def progress(host, server: str) -> dict:
    """The call ends when its last step is known to have come."""
    steps, texts = [], {}

    async with anyio.create_task_group() as group:

        async def proceed() -> None:
            texts["proceeded"] = await host.say(server, "proceed", {})

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append([progress, total, message])
            if len(steps) == 3:
                group.start_soon(proceed)

        result = await host.call(server, "count", {}, on_progress)
    return {"steps": steps, "text": result["content"][0]["text"], **texts}


async def cancel(host, server: str) -> dict:
    ended = "answered"
    with anyio.CancelScope() as scope:

        async def on_progress(*_) -> None:
            scope.cancel()

        request = getattr(host.client, "_request_id", None)
        await host.call(server, "wait", {}, on_progress)
    if scope.cancelled_caught:
        ended = "given up"
        if LEGACY:
            # The 1.x line tells nobody by itself, and its request ids are nowhere to be seen.
            params = types.CancelledNotificationParams(requestId=request)
            cancelled = types.CancelledNotification(method="notifications/cancelled", params=params)
            await host.client.send_notification(types.ClientNotification(cancelled))
    return {"ended": ended, "text": await host.say(server, "cancelled", {})}


async def log(host, server: str) -> list:
    """Of two messages the less serious one must not come."""
    host.notifications.forget("message")
    if LEGACY:
        await host.client.set_logging_level(LEVEL)
    await host.call(server, "log", {})

    async def arrived() -> bool:
        return bool(host.notifications.of("message"))

    await host.notifications.until(arrived)
    return host.notifications.of("message")


async def list_everything(host, server: str) -> dict:
    async def own(kind: str, key: str, start: str) -> int:
        return sum(entry[key].startswith(f"{server}{start}") for entry in await host.list(kind))

    return {
        "tools": await own("tools", "name", "__"),
        "resources": await own("resources", "uri", "://"),
        "templates": await own("resource_templates", "uriTemplate", "://"),
        "prompts": await own("prompts", "name", "__"),
        **json.loads(await host.say(server, "seen", {})),
    }


async def grow_lists(host, server: str) -> list:
    for kind in KINDS:
        host.notifications.forget(f"{kind}/list_changed")
    await host.call(server, "grow", {})
    keys = {"tools": ("name", "__grown"), "resources": ("uri", "://notes/grown"), "prompts": ("name", "__grown")}
    for kind, (key, end) in keys.items():

        async def grown() -> bool:
            if not host.notifications.of(f"{kind}/list_changed"):
                return False
            return any(entry[key] == f"{server}{end}" for entry in await host.list(kind))

        await host.notifications.until(grown)
    return list(KINDS)


async def subscribe(host, server: str) -> dict:
    uri = f"{server}://notes/watched"

    async def arrived() -> bool:
        return bool(host.notifications.of("resources/updated"))

    async with host.watching(uri):
        host.notifications.forget("resources/updated")
        await host.call(server, "touch", {})
        await host.notifications.until(arrived)
        content = await host.read(uri)
    return {"updated": host.notifications.of("resources/updated"), "text": content["text"]}


async def work(host, server: str):
    """As a task where the list says that this is one, else as a call that takes as long as it takes."""
    tool = next((tool for tool in await host.list("tools") if tool["name"] == f"{server}__work"), None)
    if tool is None:
        return "no such tool"
    if not LEGACY or not tool.get("execution", {}).get("taskSupport"):
        return {"text": await host.say(server, "work", {})}
    tasks = host.client.experimental
    created = await tasks.call_tool_as_task(tool["name"], {})
    async for _ in tasks.poll_task(created.task.taskId):
        pass
    result = await tasks.get_task_result(created.task.taskId, types.CallToolResult)
    return {"task": created.task.status, "text": result.content[0].text}


class Host:
    """What the two lines of the SDK have in common."""

    def __init__(self, client, notifications: Notifications):
        self.client, self.notifications = client, notifications

    async def list(self, kind: str) -> list:
        entries, cursor = [], None
        while True:
            result = dump(await getattr(self.client, f"list_{kind}")(**self.at(cursor)))
            entries += result["resourceTemplates" if kind == "resource_templates" else kind]
            cursor = result.get("nextCursor")
            if not cursor:
                return entries

    def at(self, cursor: str | None) -> dict:
        if not LEGACY:
            return {"cursor": cursor}
        return {"params": types.PaginatedRequestParams(cursor=cursor)} if cursor else {}

    async def call(self, server: str, tool: str, given: dict, on_progress=None) -> dict:
        return dump(await self.client.call_tool(f"{server}__{tool}", given, progress_callback=on_progress))

    async def say(self, server: str, tool: str, given: dict) -> str:
        return (await self.call(server, tool, given))["content"][0]["text"]

    async def read(self, uri: str) -> dict:
        return dump(await self.client.read_resource(uri))["contents"][0]

    @asynccontextmanager
    async def watching(self, uri: str):
        if LEGACY:
            await self.client.subscribe_resource(uri)
            yield
            await self.client.unsubscribe_resource(uri)
            return
        async with self.client.listen(resource_subscriptions=[uri]) as subscription, anyio.create_task_group() as group:
            group.start_soon(follow, subscription, self.notifications)
            yield
            group.cancel_scope.cancel()


@asynccontextmanager
async def connect_v1(plan: dict, notifications: Notifications):
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async def on_message(message) -> None:
        if isinstance(message, types.ServerNotification):
            received(notifications, message.root)

    streams = streamable_http_client(plan["url"]) if plan.get("url") else stdio_client(StdioServerParameters(**spawn(plan)))
    # Streamable HTTP brings a third: who tells the session's id.
    async with streams as opened, ClientSession(*opened[:2], message_handler=on_message, **callbacks(notifications)) as session:
        await session.initialize()
        yield Host(session, notifications)


@asynccontextmanager
async def connect_v2(plan: dict, notifications: Notifications):
    from mcp import Client

    target = plan.get("url") or StdioServerParameters(**spawn(plan))
    async with AsyncExitStack() as stack:
        client = Client(target, mode="2026-07-28", cache=None, log_level=LEVEL, **callbacks(notifications))
        await stack.enter_async_context(client)
        wanted = {f"{kind}_list_changed": True for kind in KINDS}
        subscription = await stack.enter_async_context(client.listen(**wanted))
        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(follow, subscription, notifications)
        yield Host(client, notifications)
        group.cancel_scope.cancel()


async def follow(subscription, notifications: Notifications) -> None:
    from mcp.shared.subscriptions import event_to_notification

    async for event in subscription:
        received(notifications, event_to_notification(event, {}))


def received(notifications: Notifications, notification) -> None:
    kind = notification.method.removeprefix("notifications/")
    if kind == "resources/updated":
        notifications.receive(kind, str(notification.params.uri))
    elif kind.endswith("/list_changed"):
        notifications.receive(kind, {})


def callbacks(notifications: Notifications) -> dict:
    """How the host answers server requests, and where log messages go."""

    async def sample(_, params):
        content = params.messages[0].content
        asked = content[0].text if isinstance(content, list) else content.text
        text = types.TextContent(type="text", text=f"answer to {asked}")
        return types.CreateMessageResult(role="assistant", model="matrix", content=text)

    async def elicit(_, params):
        if params.mode == "url":
            return types.ElicitResult(action="accept" if params.url.startswith("https://example.com/") else "decline")
        return types.ElicitResult(action="accept", content={"word": f"answer to {params.message}"})

    async def list_roots(_):
        return types.ListRootsResult(roots=[types.Root(uri="file:///matrix", name="matrix")])

    async def on_log(params) -> None:
        notifications.receive("message", {"level": params.level, "logger": params.logger, "data": params.data})

    return {
        "sampling_callback": sample,
        "elicitation_callback": elicit,
        "list_roots_callback": list_roots,
        "logging_callback": on_log,
    }


def spawn(plan: dict) -> dict:
    return {key: plan[key] for key in ("command", "args", "env", "cwd") if plan.get(key) is not None}


def dump(model) -> dict:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


anyio.run(main)
