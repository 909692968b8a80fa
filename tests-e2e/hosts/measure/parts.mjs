// The parts of a measurement, by name.

import { activation } from "./part/activation.mjs";
import { changes } from "./part/changes.mjs";
import { code } from "./part/code.mjs";
import { crash, interrupt } from "./part/failures.mjs";
import { limits } from "./part/limits.mjs";
import { deferral, opening } from "./part/opening.mjs";
import { tokens } from "./part/tokens.mjs";

export const PARTS = { opening, deferral, tokens, activation, limits, changes, interrupt, crash, code };
