// A user without a browser: goes through the same pages as `browser.mjs` with plain HTTP, on machines without Chromium.
// It sends cookies and forms and follows redirects, and that is all.

const MOST_STEPS = 20;

// Like `visit` of browser.mjs, without a screenshot.
export async function visit(url, { user = "ada", consent = true, unreachable = false } = {}) {
    const redirect = new URL(url).searchParams.get("redirect_uri");
    if (!redirect) throw new Error(`no redirect_uri in ${url}`);
    const cookies = new Map();
    let step = { url };
    for (let steps = 0; steps < MOST_STEPS; steps += 1) {
        const arrived = step.url.startsWith(redirect);
        if (arrived && unreachable) return { url: step.url, status: 200, title: "", text: "not reachable", elsewhere: [] };
        const response = await send(step, arrived ? new Map() : cookies);
        const page = await response.text();
        if (arrived) return { url: step.url, status: response.status, ...shown(page), elsewhere: [] };
        const location = response.headers.get("location");
        step = location ? { url: new URL(location, step.url).href } : actOn(page, step.url, user, consent);
    }
    throw new Error(`still at ${step.url} after ${MOST_STEPS} steps`);
}

async function send({ url, body }, cookies) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const method = body ? "POST" : "GET";
    const response = await fetch(url, { method, body, redirect: "manual", headers: cookie ? { cookie } : {} });
    for (const set of response.headers.getSetCookie()) {
        const [pair] = set.split(";");
        const at = pair.indexOf("=");
        cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return response;
}

function actOn(page, at, user, consent) {
    const action = page.match(/<form[^>]* action="([^"]+)"/)?.[1];
    const cancel = page.match(/<a href="([^"]+)">\[ Cancel \]/)?.[1];
    if (!action || !cancel) throw new Error(`no page of a login at ${at}: ${shown(page).text}`);
    const url = (path) => new URL(path, at).href;
    if (page.includes('name="login"')) return { url: url(action), body: new URLSearchParams({ prompt: "login", login: user, password: "any" }) };
    return consent ? { url: url(action), body: new URLSearchParams({ prompt: "consent" }) } : { url: url(cancel) };
}

function shown(page) {
    const title = page.match(/<title>([^<]*)/)?.[1] ?? "";
    const text = page.replace(/<(style|script|title)[^]*?<\/\1>/g, " ").replace(/<[^>]+>/g, " ").replace(/\s+/g, " ").trim();
    return { title, text };
}
