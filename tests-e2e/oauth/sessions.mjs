// Scenarios: logins that a call asks for, in a session that goes on.

import assert from "node:assert/strict";

import { visit } from "./user.mjs";
import { COMMAND, eventually } from "./world.mjs";

export const sessions = {
    "a call asks for the login, modern host": (world) => onDemand(world, { era: "modern" }),
    "a call asks for the login, legacy host": (world) => onDemand(world, { era: "legacy" }),
    "a call asks for the login, through the daemon": (world) => onDemand(world, { era: "modern", args: [] }),
    "two calls ask for one login": together,
    "a call asks for the login, the user declines": (world) => notLoggedIn(world, () => ({ action: "decline" })),
    "a call asks for the login, the user denies consent": (world) => notLoggedIn(world, accept(world, { consent: false })),
    "a call asks for the login, the user closes the browser": secondTry,
    "a host without URL elicitation, modern": (world) => byCommand(world, "modern"),
    "a host without URL elicitation, legacy": (world) => byCommand(world, "legacy"),
    "a host over HTTP is not asked, modern": (world) => byCommand(world, "modern", { overHttp: true }),
    "a host over HTTP is not asked, legacy": (world) => byCommand(world, "legacy", { overHttp: true }),
    "a call needs another scope, modern host": (world) => stepUp(world, "modern"),
    "a call needs another scope, legacy host": (world) => stepUp(world, "legacy"),
    "a command needs another scope": (world) => stepUpByCommand(world, []),
    "a command needs another scope, of those that the issuer lists": (world) => stepUpByCommand(world, ["--list-scopes"]),
};

// The user agrees to open the page, and logs in while the call waits.
function accept(world, options) {
    const visits = (world.visits = []);
    return ({ url }) => {
        visits.push(visit(url, options).catch((error) => ({ failed: error.message })));
        return { action: "accept" };
    };
}

async function onDemand(world, options) {
    await world.open();
    const host = await world.host({ ...options, onUrl: accept(world) });
    const { text, failed } = await host.call("whoami");
    assert.equal(failed, false, text);
    assert.match(text, /"sub":"ada"/);
    await askedOnce(world, host);
    if (options.era === "legacy") {
        const [{ elicitationId }] = host.elicitations;
        assert.ok(elicitationId, "an elicitation in URL mode has an id");
        await eventually("notifications/elicitation/complete", () => host.completed.includes(elicitationId), 10_000);
    }
    assert.equal((await host.call("echo", { message: "once more" })).text, "once more");
    assert.ok((await host.tools()).includes("notes__whoami"));
    await world.whoami();
    assert.equal((await world.issuer.metrics()).codeExchanges, 1);
}

async function together(world) {
    await world.open();
    const host = await world.host({ onUrl: accept(world) });
    const answers = await Promise.all(["one", "two"].map((message) => host.call("echo", { message })));
    assert.deepEqual(answers, [{ text: "one", failed: false }, { text: "two", failed: false }]);
    assert.equal(new Set(host.elicitations.map(({ url }) => url)).size, 1, "both calls wait for the same login");
    assert.equal((await world.issuer.metrics()).codeExchanges, 1);
}

async function askedOnce(world, host) {
    assert.equal(host.elicitations.length, 1, JSON.stringify(host.elicitations));
    const [{ mode, url, message }] = host.elicitations;
    assert.equal(mode, "url");
    assert.ok(url.startsWith(`${world.issuer.issuer}/auth?`), url);
    assert.ok(message.length > 0, "the user must be told what the login is for");
    const [page] = await Promise.all(world.visits);
    assert.equal(page.failed, undefined);
    assert.equal(page.status, 200);
}

async function notLoggedIn(world, onUrl) {
    await world.open();
    const host = await world.host({ onUrl });
    const { text, failed } = await host.call("whoami");
    assert.ok(failed, text);
    assert.match(text, COMMAND);
    assert.equal(host.elicitations.length, 1);
    assert.equal((await world.issuer.metrics()).codeExchanges, 0);
    await Promise.all(world.visits ?? []);
}

// The host gives up the call while nobody logs in; its next call can still do it.
async function secondTry(world) {
    await world.open();
    const visiting = accept(world);
    const host = await world.host({ onUrl: (params) => (host.elicitations.length === 1 ? { action: "accept" } : visiting(params)) });
    const { text, failed } = await host.call("whoami", {}, 3_000);
    assert.ok(failed, text);
    const again = await host.call("whoami");
    assert.equal(again.failed, false, again.text);
    assert.equal((await world.issuer.metrics()).codeExchanges, 1);
}

// A gateway over HTTP may have many users: who runs it logs in, and no host is asked.
async function byCommand(world, era, { overHttp = false } = {}) {
    await world.open();
    const url = overHttp ? await world.gateway() : undefined;
    const host = await world.host({ era, url, onUrl: overHttp ? accept(world) : undefined });
    const { text, failed } = await host.call("whoami");
    assert.ok(failed, text);
    assert.match(text, COMMAND);
    assert.deepEqual(host.elicitations, []);
    await world.loggedIn();
    const again = await host.call("whoami");
    assert.equal(again.failed, false, `the session must go on after the login: ${again.text}`);
    assert.ok((await host.tools()).includes("notes__whoami"));
}

async function stepUp(world, era) {
    await world.open();
    await world.loggedIn();
    const host = await world.host({ era, onUrl: accept(world) });
    assert.deepEqual(JSON.parse((await host.call("whoami")).text).scopes, ["notes:read"]);
    const { text, failed } = await host.call("write_note", { text: "milk" });
    assert.equal(failed, false, text);
    await askedOnce(world, host);
    await written(world, ["milk"]);
}

async function stepUpByCommand(world, issuer) {
    await world.open({ issuer });
    await world.loggedIn();
    await world.needsLogin("write_note", "text=milk");
    await world.loggedIn();
    const { code, stdout, stderr } = await world.call("write_note", "text=milk");
    assert.equal(code, 0, `after a new login: ${stdout}${stderr}`);
    await written(world, ["milk"]);
}

// The call was carried out once, and the login has both scopes.
async function written(world, notes) {
    assert.deepEqual((await world.server.seen()).notes, notes);
    assert.deepEqual((await world.whoami()).scopes, ["notes:read", "notes:write"]);
}
