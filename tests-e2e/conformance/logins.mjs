// What the suite's scenarios of authorization need besides a host: settings for the server, and a user with a browser.

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const PATIENCE_MS = 60_000;
const HOPS = 10;

// The document of a client that the suite's authorization server knows without reading it.
const CLIENT_METADATA = "https://conformance-test.local/client-metadata.json";

// The suite's authorization server does something that a client must not accept.
const REFUSED = [
    "auth/resource-mismatch",
    "auth/metadata-issuer-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
];
export const isRefused = (scenario) => REFUSED.includes(scenario);

// plugbay gets a token there by itself.
const WITHOUT_USER = [
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
];
export const needsUser = (scenario) => scenario.startsWith("auth/") && !WITHOUT_USER.includes(scenario);

// The `oauth` settings of the server, from what the suite tells a client. With `inFiles`, plugbay reads keys and tokens from
// files in `folder`.
export function settings(scenario, given, folder, inFiles) {
    const secret = (name, value) => {
        if (!inFiles) return { [name]: value };
        const file = join(folder, name);
        writeFileSync(file, value, { mode: 0o600 });
        return { [`${name}File`]: file };
    };
    const client = () => ({ clientId: given.client_id, clientSecret: given.client_secret });
    const known = {
        "auth/basic-cimd": () => ({ clientMetadataUrl: CLIENT_METADATA }),
        "auth/pre-registration": () => ({ ...client(), issuer: given.issuer }),
        "auth/client-credentials-basic": () => ({ ...client(), grant: "client_credentials" }),
        "auth/client-credentials-jwt": () => ({
            clientId: given.client_id,
            grant: "client_credentials",
            ...secret("privateKey", given.private_key_pem),
            algorithm: given.signing_algorithm,
        }),
        "auth/wif-jwt-bearer": () => ({
            clientId: given.client_id,
            grant: "workload_identity",
            ...secret("assertion", given.valid_jwt),
        }),
        "auth/enterprise-managed-authorization": () => ({
            ...client(),
            grant: "enterprise_managed",
            idp: {
                ...(inFiles ? { issuer: given.idp_issuer } : { tokenEndpoint: given.idp_token_endpoint }),
                clientId: given.idp_client_id,
                ...secret("idToken", given.idp_id_token),
            },
        }),
    };
    return known[scenario]?.() ?? {};
}

// The user logs in with plugbay's command, before a host is there or while one is. Gives its exit code and what it said.
export async function login(plugbay, config, options) {
    const args = ["auth", "login", "suite", "--no-browser", "--config", config];
    const child = spawn(plugbay, args, { ...options, stdio: "pipe" });
    const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    const ended = new Promise((resolve, reject) => {
        child.once("error", reject);
        child.once("close", (code, signal) => resolve(code ?? signal));
    });
    let [printed, complaint] = ["", ""];
    let visit;
    child.stderr.setEncoding("utf8").on("data", (text) => (complaint += text));
    child.stdout.setEncoding("utf8").on("data", (text) => {
        printed += text;
        const url = printed.match(/^(https?:\/\/\S+)\n/m)?.[1];
        // A callback that shows an error ends the login as well, and the exit code says how.
        if (url) visit ??= browse(url).catch((error) => (complaint += `the browser: ${error}\n`));
    });
    const code = await ended;
    await visit;
    clearTimeout(timer);
    return { code, said: printed + complaint };
}

// A browser without pages: the suite's authorization server asks nobody, and sends it straight to plugbay's callback.
export async function browse(url) {
    let next = url;
    for (let hop = 0; hop < HOPS; hop++) {
        const response = await fetch(next, { redirect: "manual", signal: AbortSignal.timeout(PATIENCE_MS) });
        await response.text();
        const location = response.headers.get("location");
        if (location === null) return;
        next = new URL(location, next);
    }
    throw new Error(`${url} redirects without end`);
}
