// The user who logs in: with Chromium where there is one.

export const { visit } = await import(process.env.CHROMIUM ? "./browser.mjs" : "./plain-user.mjs");
