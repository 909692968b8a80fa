// The storage of the authorization server: what oidc-provider keeps, in one JSON file if there is to be one, so that a
// restart forgets nobody.

import { existsSync, readFileSync, writeFileSync } from "node:fs";

export class Store {
    #file;
    #kept = {};

    constructor(file) {
        this.#file = file;
        if (file && existsSync(file)) this.#kept = JSON.parse(readFileSync(file, "utf8"));
    }

    // A value of this name, made once.
    async once(name, make) {
        this.#kept[name] ??= await make();
        this.#save();
        return this.#kept[name];
    }

    // The adapter that oidc-provider asks for each of its models.
    adapter(model) {
        const entries = (this.#kept[model] ??= {});
        const find = (id) => {
            const entry = entries[id];
            return entry && (entry.expires === null || entry.expires > Date.now()) ? entry.payload : undefined;
        };
        const search = (key, value) => find(Object.keys(entries).find((id) => entries[id].payload[key] === value));
        return {
            upsert: async (id, payload, seconds) => {
                entries[id] = { payload, expires: seconds ? Date.now() + seconds * 1000 : null };
                this.#save();
            },
            find: async (id) => find(id),
            findByUid: async (uid) => search("uid", uid),
            findByUserCode: async (userCode) => search("userCode", userCode),
            consume: async (id) => {
                entries[id].payload.consumed = Math.floor(Date.now() / 1000);
                this.#save();
            },
            destroy: async (id) => {
                delete entries[id];
                this.#save();
            },
            revokeByGrantId: async (grantId) => {
                for (const id of Object.keys(entries)) if (entries[id].payload.grantId === grantId) delete entries[id];
                this.#save();
            },
        };
    }

    // Ends every grant with its tokens and sessions, as a user does who withdraws access. Clients stay registered.
    revokeAll() {
        for (const model of ["Grant", "AccessToken", "RefreshToken", "AuthorizationCode", "Session"]) {
            for (const id of Object.keys(this.#kept[model] ?? {})) delete this.#kept[model][id];
        }
        this.#save();
    }

    #save() {
        if (this.#file) writeFileSync(this.#file, JSON.stringify(this.#kept), { mode: 0o600 });
    }
}
