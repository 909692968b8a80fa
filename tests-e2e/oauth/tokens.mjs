// Scenarios: tokens that expire, an authorization server in trouble, access that is withdrawn, and the end of a login.

import assert from "node:assert/strict";

import { filesWith } from "./canary.mjs";
import { later } from "./world.mjs";

const LIFETIME_S = 5;
const SHORT = ["--lifetime", String(LIFETIME_S)];

export const tokens = {
    "tokens of 5 s, three gateways in one home for 20 s": refreshTogether,
    "tokens of 5 s, one command after another": refreshInTurn,
    "authorization server killed and restarted": survivesRestart,
    "authorization server slow during a refresh": survivesDelay,
    "authorization server answers 503 during a refresh": survivesFailure,
    "the user withdraws all access": withdrawn,
    "logout": (world) => logOut(world),
    "logout without a revocation endpoint": (world) => logOut(world, ["--no-revocation"]),
    "logout while the authorization server is down": logOutAlone,
};

// Three processes share each refreshed token: together they need one refresh per lifetime.
async function refreshTogether(world) {
    const [seconds, at_most] = [20, 20 / LIFETIME_S + 4];
    await world.open({ issuer: SHORT });
    await world.loggedIn();
    const hosts = await Promise.all([1, 2, 3].map((number) => world.host({ era: number === 1 ? "legacy" : "modern" })));
    const end = Date.now() + seconds * 1000;
    let calls = 0;
    const work = async (host) => {
        for (; Date.now() < end; calls += 1) {
            const { text, failed } = await host.call("whoami");
            assert.equal(failed, false, `after ${calls} calls: ${text}`);
            await later(250);
        }
    };
    await Promise.all(hosts.map(work));
    const metrics = await eachTokenOnce(world);
    assert.ok(metrics.refreshes >= seconds / LIFETIME_S - 1, `only ${metrics.refreshes} refreshes`);
    assert.ok(metrics.refreshes <= at_most, `${metrics.refreshes} refreshes in ${seconds} s, more than ${at_most}`);
    return `${calls} calls, ${metrics.refreshes} refreshes`;
}

async function refreshInTurn(world) {
    await world.open({ issuer: SHORT });
    await world.loggedIn();
    for (let round = 0; round < 3; round += 1) {
        await world.whoami();
        await later(LIFETIME_S * 1000);
    }
    await world.whoami();
    const { refreshes } = await eachTokenOnce(world);
    assert.ok(refreshes >= 3 && refreshes <= 5, `${refreshes} refreshes`);
    return `${refreshes} refreshes`;
}

// One login, and no refresh token was sent twice.
async function eachTokenOnce(world) {
    const metrics = await world.issuer.metrics();
    const { codeExchanges, reuseDetections, refreshTokens, errors } = metrics;
    assert.deepEqual({ codeExchanges, reuseDetections, errors }, { codeExchanges: 1, reuseDetections: 0, errors: {} });
    assert.equal(new Set(refreshTokens).size, refreshTokens.length, "a refresh token was sent twice");
    return metrics;
}

async function survivesRestart(world) {
    await trouble(world, () => world.issuer.kill(), () => world.issuer.start());
}

async function survivesFailure(world) {
    await trouble(world, () => world.issuer.behave({ status: 503 }), () => world.issuer.behave());
}

// A token expires while the authorization server does not work. Commands and sessions fail without asking for a login,
// and work again as soon as the server does.
async function trouble(world, begin, end) {
    await world.open({ issuer: SHORT });
    await world.loggedIn();
    const host = await world.host();
    assert.equal((await host.call("whoami")).failed, false);
    await begin();
    await later((LIFETIME_S + 1) * 1000);
    const { code, stdout, stderr } = await world.call("whoami");
    assert.equal(code, 1, `a call without a valid token must fail: ${stdout}`);
    assert.doesNotMatch(stdout + stderr, /auth login/, "a login would not help");
    const { text, failed } = await host.call("whoami");
    assert.ok(failed && !/auth login/.test(text), text);
    assert.equal((await world.status()).state, "logged in");
    await end();
    await world.whoami();
    const again = await host.call("whoami");
    assert.equal(again.failed, false, again.text);
    assert.equal((await world.issuer.metrics()).codeExchanges, 1, "nobody had to log in again");
}

async function survivesDelay(world) {
    await world.open({ issuer: SHORT });
    await world.loggedIn();
    await later((LIFETIME_S + 1) * 1000);
    // Shorter than the life of the token that comes.
    await world.issuer.behave({ delayMs: 3_000 });
    const answers = await Promise.all([world.call("whoami"), world.call("whoami")]);
    for (const { code, stdout, stderr } of answers) assert.equal(code, 0, `${stdout}${stderr}`);
    await world.issuer.behave();
    const { refreshes } = await eachTokenOnce(world);
    return `${refreshes} refreshes`;
}

async function withdrawn(world) {
    await world.open();
    await world.loggedIn();
    const host = await world.host();
    assert.equal((await host.call("whoami")).failed, false);
    await world.issuer.revokeAll();
    await world.server.refuseTokens();
    await world.needsLogin();
    const { text, failed } = await host.call("whoami");
    assert.ok(failed, text);
    assert.match(text, /plugbay auth login notes/);
    assert.equal((await world.status()).state, "needs login");
    await world.loggedIn();
    await world.whoami();
    const again = await host.call("whoami");
    assert.equal(again.failed, false, `the session must go on after the login: ${again.text}`);
}

async function logOut(world, issuer = []) {
    await world.open({ issuer });
    await world.loggedIn();
    await world.whoami();
    const { code, stdout, stderr } = await world.run(["auth", "logout", "notes"]);
    assert.equal(code, 0, `${stdout}${stderr}`);
    await forgotten(world);
    const { revocations } = await world.issuer.metrics();
    assert.equal(revocations > 0, issuer.length === 0, `${revocations} revocations`);
    await world.loggedIn();
    await world.whoami();
}

async function logOutAlone(world) {
    await world.open();
    await world.loggedIn();
    await world.issuer.kill();
    const { code, stdout, stderr } = await world.run(["auth", "logout", "notes"]);
    assert.equal(code, 0, `${stdout}${stderr}`);
    await world.issuer.start();
    await forgotten(world);
}

// Nothing of the login is left in the home.
async function forgotten(world) {
    assert.deepEqual(filesWith(await world.issuer.secrets(), world.home), []);
    assert.equal((await world.status()).state, "no login");
    await world.needsLogin();
}
