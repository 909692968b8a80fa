"""A FastMCP server over HTTP: legacy with the FastMCP 3 of one venv, both eras with the FastMCP 4 of the other.

Usage: PORT=8000 python fastmcp_server.py [sse]     (Streamable HTTP at /mcp, or SSE at /sse)
"""

import base64
import os
import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image

# The smallest PNG there is: one transparent pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)

server = FastMCP("fastmcp", instructions="Five tools.")


@dataclass
class Weather:
    place: str
    degrees: float


@server.tool
def echo(message: str) -> str:
    """Says it back."""
    return message


@server.tool
async def count(to: int, context: Context) -> str:
    """Counts and tells how far it is."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"{number} of {to}")
    return f"counted to {to}"


@server.tool(annotations={"readOnlyHint": True}, tags={"sky"})
def weather(place: str) -> Weather:
    """The same weather for every place."""
    return Weather(place=place, degrees=21.5)


@server.tool
def picture() -> Image:
    """One pixel."""
    return Image(data=PIXEL, format="png")


@server.tool
def fail() -> str:
    """Never works."""
    raise ToolError("as it always does")


transport = sys.argv[1] if len(sys.argv) > 1 else "http"
server.run(transport=transport, host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
