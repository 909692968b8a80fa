"""Starts a gateway with a YAML configuration, validates its OpenAPI document, and runs schemathesis against it."""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from openapi_spec_validator import validate

# The samples with arguments that schemathesis can make up.
SERVERS = ["calc", "notes", "clock"]
# 422 is the answer to arguments that do not fit the schema of a tool, which the document cannot know.
SETTINGS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "422", "429"]
"""


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with gateway(options.plugbay, folder) as url:
            document = json.loads(get(url + "/openapi.json"))
            validate(document)
            print("the document is valid")
            tools = json.loads(get(url + "/tools"))["tools"]
            (folder / "typed.json").write_text(json.dumps(typed(document, tools)))
            (folder / "schemathesis.toml").write_text(SETTINGS)
            runs = [
                ("the document", url + "/openapi.json", ["--exclude-path", "/mcp"]),
                ("each tool with its schema", "typed.json", ["--include-path", "/tools/call"]),
                ("MCP", url + "/openapi.json", ["--include-path", "/mcp", "--checks", STATUS_CHECKS]),
            ]
            failed = [name for name, *run in runs if not conforms(name, folder, url, options.examples, *run)]
    sys.exit(1 if failed else 0)


STATUS_CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"


def arguments():
    parser = argparse.ArgumentParser()
    built = pathlib.Path(__file__).parents[2] / "target/debug/plugbay"
    parser.add_argument("--plugbay", default=os.environ.get("PLUGBAY_BIN", str(built)))
    parser.add_argument("--examples", default="10")
    return parser.parse_args()


class gateway:
    """`plugbay serve --http` on a free port, until the block ends."""

    def __init__(self, plugbay, folder):
        # Arguments that only nearly fit are rejected, not repaired: a wrong value must not pass.
        servers = {name: {"command": plugbay, "args": ["__sample", name]} for name in SERVERS}
        lines = ["repair: false", "servers:"]
        for name, server in servers.items():
            lines += [f"  {name}:", f"    command: {json.dumps(server['command'])}"]
            lines += [f"    args: {json.dumps(server['args'])}"]
        config = folder / "servers.yaml"
        config.write_text("\n".join(lines) + "\n")
        homes = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"]
        env = {**os.environ, **{name: str(folder / name.lower()) for name in homes}}
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = (folder / "log").open("w+")
        address = self.url.removeprefix("http://")
        command = [plugbay, "serve", "--http", address, "--config", str(config)]
        self.process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stderr=self.log)

    def __enter__(self):
        deadline = time.monotonic() + 60
        while not answers(self.url + "/readyz"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                sys.exit(f"the gateway is not ready: {self.log.read()}")
            time.sleep(0.05)
        return self.url

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(url):
    try:
        get(url)
        return True
    except (urllib.error.URLError, ConnectionError):
        return False


def get(url):
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read()


def typed(document, tools):
    """The document with one schema of a call for each tool, so that calls reach the tools."""
    calls = [
        {
            "type": "object",
            # Without arguments a call has empty ones.
            "required": ["name", "arguments"] if tool["inputSchema"].get("required") else ["name"],
            "additionalProperties": False,
            "properties": {"name": {"const": tool["name"]}, "arguments": tool["inputSchema"]},
        }
        for tool in tools
    ]
    typed = json.loads(json.dumps(document))
    typed["components"]["schemas"]["Call"] = {"oneOf": calls}
    body = typed["paths"]["/tools/call"]["post"]["requestBody"]["content"]["application/json"]
    body.pop("example", None)
    return typed


def conforms(name, folder, url, examples, document, options):
    program = str(pathlib.Path(sys.executable).parent / "schemathesis")
    command = [program, "--config-file", "schemathesis.toml", "--no-color", "run", document, "--url", url]
    command += ["--max-examples", examples, "--seed", "1", "--generation-database", ":memory:"]
    done = subprocess.run(command + options, cwd=folder, capture_output=True, text=True, timeout=300)
    good = done.returncode == 0
    summary = [line for line in done.stdout.splitlines() if "generated," in line]
    print(f"{name}: {'as documented' if good else 'NOT as documented'}; {' '.join(summary).strip()}")
    if not good:
        print(done.stdout, done.stderr, file=sys.stderr)
    return good


if __name__ == "__main__":
    main()
