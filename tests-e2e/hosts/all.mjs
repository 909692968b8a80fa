// The hosts that can be driven; some are several, as their model, API or environment decides how they offer tools.
// `profile` is what plugbay should take each for; `hidden` says that it cannot see so, and has to be told with `--host`.

import claudeCode, { claudeCodeEager } from "./host/claude-code.mjs";
import codex from "./host/codex.mjs";
import copilotCli from "./host/copilot-cli.mjs";
import geminiCli from "./host/gemini-cli.mjs";
import goose from "./host/goose.mjs";
import opencode, { opencodeCode } from "./host/opencode.mjs";
import qwenCode from "./host/qwen-code.mjs";

export const HOSTS = [claudeCode, claudeCodeEager, ...codex, geminiCli, opencode, opencodeCode, ...copilotCli, qwenCode, goose];
