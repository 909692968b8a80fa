// A user with a real browser: headless Chromium goes through the login and consent pages of the authorization server and
// ends on the page of the client at its redirect URI.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { load } from "./packages.mjs";

const PATIENCE_MS = 60_000;
// Login, consent, and once more each if the server asks again.
const MOST_PAGES = 6;

// Opens an authorization URL. Options: `user`; `consent: false`, where the user cancels; `screenshot`, a file for a PNG of
// the last page; `unreachable`, where the browser cannot reach the redirect URI, as on another machine.
//
// Gives {url, status, title, text, elsewhere}: of the page at the redirect URI, and the requests that left this machine.
export async function visit(url, { user = "ada", consent = true, screenshot, unreachable = false } = {}) {
    const home = mkdtempSync(join(tmpdir(), "plugbay-chromium-"));
    let browser;
    try {
        browser = await open(home);
        const page = await browser.newPage();
        page.setDefaultTimeout(PATIENCE_MS);
        return await walk(page, url, { user, consent, screenshot, unreachable });
    } finally {
        await browser?.close();
        rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    }
}

// A browser without a past. It can reach nothing but this machine: the login page asks for fonts elsewhere.
function open(home) {
    const args = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"];
    const env = { PATH: process.env.PATH, HOME: home };
    return load("playwright-core").chromium.launch({ executablePath: process.env.CHROMIUM, args, env });
}

async function walk(page, url, { user, consent, screenshot, unreachable }) {
    const redirect = new URL(url).searchParams.get("redirect_uri");
    if (!redirect) throw new Error(`no redirect_uri in ${url}`);
    const atRedirect = () => page.url().startsWith(redirect);
    const elsewhere = [];
    let last;
    page.on("response", (response) => response.request().isNavigationRequest() && (last = response));
    page.on("request", (request) => {
        const { hostname, protocol } = new URL(request.url());
        if (atRedirect() && !["127.0.0.1", "localhost"].includes(hostname) && protocol.startsWith("http")) elsewhere.push(request.url());
    });
    if (unreachable) await cutOff(page, redirect);
    await page.goto(url);
    for (let pages = 0; !atRedirect(); pages += 1) {
        if (pages === MOST_PAGES) throw new Error(`still at ${page.url()} after ${pages} pages`);
        await actOn(page, user, consent);
    }
    await page.waitForLoadState("networkidle");
    if (screenshot) await page.screenshot({ path: screenshot });
    const text = (await page.innerText("body")).trim();
    return { url: page.url(), status: last?.status(), title: await page.title(), text, elsewhere };
}

// Fills in the page that is shown and waits for the next one.
async function actOn(page, user, consent) {
    const next = page.waitForEvent("framenavigated");
    if (await page.locator("input[name=login]").count()) {
        await page.fill("input[name=login]", user);
        await page.fill("input[name=password]", "any password");
        await page.click("button[type=submit]");
    } else if (await page.locator("input[name=prompt][value=consent]").count()) {
        await (consent ? page.click("button[type=submit]") : page.click("text=[ Cancel ]"));
    } else {
        next.catch(() => {});
        throw new Error(`no page of a login at ${page.url()}: ${(await page.innerText("body")).trim()}`);
    }
    await next;
    await page.waitForLoadState();
}

// Ends requests for the redirect URI in the browser. Playwright's own routes do not see redirects.
async function cutOff(page, redirect) {
    const session = await page.context().newCDPSession(page);
    session.on("Fetch.requestPaused", ({ requestId }) =>
        session.send("Fetch.fulfillRequest", { requestId, responseCode: 200, body: Buffer.from("not reachable").toString("base64") }),
    );
    await session.send("Fetch.enable", { patterns: [{ urlPattern: `${redirect}*` }] });
}
