// All tasks: { name, expected, effect, direct, code }.
//   expected  the right answer, computed from the world itself and not with its servers
//   effect    whether the world is as the task wants it, afterwards
//   direct    the calls of a model, turn by turn; see play.mjs
//   code      the same with scripts

import { FILES } from "./tasks/files.mjs";
import { GIT } from "./tasks/git.mjs";
import { MEMORY } from "./tasks/memory.mjs";
import { MIXED } from "./tasks/mixed.mjs";
import { SQLITE } from "./tasks/sqlite.mjs";

export const TASKS = [...FILES, ...GIT, ...SQLITE, ...MEMORY, ...MIXED];
