// Scenario: every command that could tell a secret, with all that can be logged. Like every scenario it fails if a secret
// is found; see canary.mjs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { filesWith } from "./canary.mjs";
import { visit } from "./user.mjs";
import { later } from "./world.mjs";

const LOUD = ["-vv"];
const CLIENT = {
    client_id: "confidential",
    client_secret: "canary-secret-of-a-confidential-client",
    redirect_uris: ["http://127.0.0.1/callback"],
    application_type: "native",
    grant_types: ["authorization_code", "refresh_token"],
};

export const secrets = {
    "no secret in any output, log or file": everything,
};

async function everything(world) {
    const oauth = { clientId: CLIENT.client_id, clientSecret: CLIENT.client_secret };
    await world.open({ issuer: ["--lifetime", "4", "--client", JSON.stringify(CLIENT)], oauth });
    const audit = join(world.home, "audit.jsonl");
    const onUrl = ({ url }) => {
        visit(url).catch(() => {});
        return { action: "accept" };
    };
    const host = await world.host({ onUrl, args: ["--no-daemon", "--audit", audit, ...LOUD] });
    assert.equal((await host.call("whoami")).failed, false);
    for (const command of ["list", "status", "doctor", "logs", "get notes", "auth status", "list --json", "status --json", "auth status --json"]) {
        await world.run([...command.split(" "), ...LOUD]);
    }
    // A refresh, one that fails, a call that is refused, and a login that is.
    await later(5_000);
    await world.run(["call", "notes.whoami", ...LOUD]);
    await world.issuer.behave({ status: 503 });
    await later(5_000);
    await world.run(["call", "notes.whoami", ...LOUD]);
    await world.issuer.behave();
    await world.run(["call", "notes.write_note", "text=x", ...LOUD]);
    await world.login({ consent: false, more: LOUD });
    await world.login({ more: LOUD });
    await host.call("whoami");
    await world.issuer.revokeAll();
    await world.server.refuseTokens();
    await host.call("whoami");
    await world.login({ more: LOUD });
    // The search would find them: they are in the store, and only there.
    const places = filesWith(await world.issuer.secrets(), world.home);
    assert.ok(places.length > 0 && places.every((place) => place.startsWith("state/plugbay/auth/")), places.join());
    await world.run(["auth", "logout", "notes", ...LOUD]);
    await world.run(["logs", ...LOUD]);
    assert.match(readFileSync(audit, "utf8"), /whoami/);
}
