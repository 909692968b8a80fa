// One run of one host with a generator as its model.

import { drive } from "../drive.mjs";
import { place, remember } from "./ground.mjs";
import { Script } from "./script.mjs";

const PATIENCE_MS = 240_000;

// `steps(script, place)` is the generator; it returns what went wrong, if anything did. `during(child, place)` may disturb.
export async function play({ host, program, plugbay }, mode, steps, { during, ...where } = {}) {
    const at = place(mode, { plugbay, host: host.name, ...where });
    let problem = "the script did not end";
    const script = new Script(function* (own) {
        problem = yield* steps(own, at);
    }, host.search);
    const disturb = during && ((child) => during(child, at));
    const ended = await drive(host, program, { ...at, player: script, during: disturb, patience: PATIENCE_MS });
    if (mode !== "none" && mode !== "direct") remember(at, host.name, where.servers);
    return { ...at, ...ended, script, problem };
}
