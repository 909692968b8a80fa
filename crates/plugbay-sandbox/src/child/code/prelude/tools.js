// The conversation: calls of the script become promises, answers settle them.

const KIND = { __proto__: null, tool: 0, search: 1, describe: 2, help: 3, result: 4 };
const READING = { __proto__: null, structured: 0, json: 1, text: 2, content: 3, jsonEach: 4 };

// Proxies that stand for names.
const proxies = new WeakSet();

// Calls under way, by number.
const pending = { __proto__: null };

// Marks what only an answer makes.
const CALL = Symbol();
let callOf;

class ToolError extends Error {
  #call;

  constructor(message, more) {
    super(message);
    if (more === undefined || more === null) return;
    this.server = more.server;
    this.tool = more.tool;
    this.code = more.code;
    this.result = more.result;
    defineProperty(this, "raw", hidden(more.result));
    if (more[CALL] === undefined) return;
    this.#call = more[CALL].number;
    defineProperty(this, "stack", hidden(more[CALL].stack));
  }

  static #of(error) {
    return typeof error === "object" && error !== null && #call in error ? error.#call : undefined;
  }

  static {
    callOf = (error) => ToolError.#of(error);
  }
}
defineProperty(ToolError.prototype, "name", hidden("ToolError"));
// No other constructor above it.
freeze(ToolError);

const nameOfTool = (server, tool) => {
  const member = (name) => matches(IDENTIFIER, name) ? `.${name}` : `[${quoted(name)}]`;
  return server === undefined ? `tools${member(tool)}` : `tools${member(server)}${member(tool)}`;
};

// Makes a call, and its promise.
const ask = (kind, server, tool, text) => {
  const stack = stackHere();
  const number = hostCall(kind, server, tool, text);
  const entry = { __proto__: null, number, server, tool, stack, isSettled: false };
  const promise = new PromiseOf((resolve, reject) => {
    entry.resolve = resolve;
    entry.reject = reject;
  });
  defineProperty(promise, "raw", { __proto__: null, get: () => rawOf(entry), configurable: true });
  pending[number] = entry;
  return promise;
};

// A promise of the whole result, made when somebody asks for it.
const rawOf = (entry) => {
  if (entry.raw === undefined) {
    entry.raw = new PromiseOf((resolve, reject) => {
      entry.resolveRaw = resolve;
      entry.rejectRaw = reject;
    });
    if (entry.isSettled) settleRaw(entry);
  }
  return entry.raw;
};

const settleRaw = (entry) => {
  if (entry.raw === undefined) return;
  if (entry.error === undefined) entry.resolveRaw(entry.result);
  else entry.rejectRaw(entry.error);
};

// An answer of the parent: `first` is a value, or the message of an error.
const settle = (number, isError, first, second, third) => {
  const entry = pending[number];
  if (entry === undefined) return;
  delete pending[number];
  entry.isSettled = true;
  if (isError) {
    const { server, tool } = entry;
    entry.error = new ToolError(first, { __proto__: null, server, tool, code: second, result: third, [CALL]: entry });
    entry.reject(entry.error);
  } else {
    entry.result = first;
    entry.resolve(second === undefined ? first : valueOf(first, second));
  }
  settleRaw(entry);
};

const settleUnknown = (number) => settle(number, false, placeholder(`‹result of call ${number + 1}›`));

// The value of a call: the part of its result that matters.
const valueOf = (result, reading) => {
  const value = partOf(result, reading);
  if (typeof value === "object" && value !== null && !owns(value, "raw")) {
    defineProperty(value, "raw", hidden(result));
  }
  return value;
};

const partOf = (result, reading) => {
  if (reading === READING.structured) return result.structuredContent;
  const content = isArray(result.content) ? result.content : [];
  if (reading === READING.content) return content;
  let joined;
  const each = [];
  for (let index = 0; index < content.length; index += 1) {
    const text = blockText(content[index]);
    if (text === undefined) continue;
    joined = joined === undefined ? text : `${joined}\n${text}`;
    if (reading === READING.jsonEach) defineProperty(each, each.length, member(parsed(text)));
  }
  if (reading === READING.jsonEach) return each;
  if (reading === READING.text) return joined === undefined ? "" : joined;
  return parsed(joined);
};

// An ordinary member.
const member = (value) => ({ __proto__: null, value, enumerable: true, configurable: true, writable: true });

// The text of a block, or that of an embedded resource.
const blockText = (block) => {
  if (typeof block !== "object" || block === null) return undefined;
  const { type, text, resource } = block;
  if ((type === undefined || type === "text") && typeof text === "string") return text;
  if (typeof resource === "object" && resource !== null && typeof resource.text === "string") return resource.text;
  return undefined;
};

const parsed = (text) => {
  try {
    return apply(parse, undefined, [text]);
  } catch {
    return text;
  }
};

// Arguments of a tool: one plain object, or none.
const toolCall = (server, tool, values) => {
  const name = nameOfTool(server, tool);
  const usage = `write ${name}({ name: value })`;
  if (values.length > 1) throw new TypeErrorOf(`${name} takes one object, not ${values.length} values: ${usage}`);
  const value = values[0];
  if (value === undefined) return ask(KIND.tool, server, tool, "{}");
  const text = argumentsJson(value, name);
  if (text[0] !== "{" && placeholderText(value) === undefined) {
    const kind = typeof value;
    const given = value === null ? "null" : isArray(value) ? "an array" : kind === "object" ? "another value" : `a ${kind}`;
    throw new TypeErrorOf(`${name} takes one object, not ${given}: ${usage}`);
  }
  return ask(KIND.tool, server, tool, text);
};

const unknown = "there is no list of tools here: `await search(\"what it should do\")` finds tools, " +
  "`await describe(\"server.tool\")` tells their arguments";

const refuse = (message) => () => {
  throw new TypeErrorOf(message);
};

// A proxy for names: nothing but `get` and calls makes sense.
const named = (target, message, get, call) => {
  const refused = refuse(message);
  const made = new ProxyOf(target, {
    __proto__: null,
    get: (_, key) => {
      // As a text it would be called.
      if (key === Symbol.toPrimitive) return refused;
      if (typeof key === "symbol" || key === "then") return undefined;
      if (key === "toJSON") return refused();
      return get(wellFormed(key));
    },
    apply: call === undefined ? refuse(message) : (_, self, values) => call(values),
    construct: refused,
    ownKeys: refused,
    has: refused,
    getOwnPropertyDescriptor: refused,
    set: refused,
    defineProperty: refused,
    deleteProperty: refused,
    setPrototypeOf: refused,
    preventExtensions: refused,
    getPrototypeOf: () => null,
  });
  apply(addTo, proxies, [made]);
  return made;
};

const tools = named({ __proto__: null }, unknown, (server) => named(
  () => undefined, unknown,
  (tool) => named(
    () => undefined, unknown,
    (more) => {
      if (more === "call" || more === "apply" || more === "bind") return bound(more, server, tool);
      if (more === "name") return tool;
      throw new TypeErrorOf(
        `${nameOfTool(server, tool)} is a tool and has no members: write await ${nameOfTool(server, tool)}({…}); ` +
          `a name with dots is written tools[${quoted(server)}][${quoted(`${tool}.${more}`)}]`,
      );
    },
    (values) => toolCall(server, tool, values),
  ),
  (values) => toolCall(undefined, server, values),
));

// Methods of functions, for scripts that treat a tool as one.
const bound = (method, server, tool) => {
  if (method === "apply") return (self, values) => toolCall(server, tool, values === undefined ? [] : values);
  if (method === "call") return (self, value) => toolCall(server, tool, [value]);
  return () => (value) => toolCall(server, tool, [value]);
};

const resultsRefusal = "the results have no list here: write await results[\"r_…\"] with a handle that you were told";
const handles = { __proto__: null };
const results = named({ __proto__: null }, resultsRefusal, (handle) => {
  if (handles[handle] === undefined) {
    handles[handle] = ask(KIND.result, undefined, "results", `{"result":${quoted(handle)}}`);
  }
  return handles[handle];
});

const search = (query, options) => {
  if (typeof query !== "string") throw new TypeErrorOf("search takes a text: await search(\"create an issue\")");
  const isGiven = typeof options === "object" && options !== null && !isArray(options);
  if (options !== undefined && !isGiven) {
    throw new TypeErrorOf("the options of search are an object: await search(\"create an issue\", { limit: 5 })");
  }
  const rest = isGiven ? argumentsJson(options, "search") : "{}";
  const text = `{"query":${quoted(query)}${rest === "{}" ? "}" : `,${tail(rest)}`}`;
  return ask(KIND.search, undefined, "search", text);
};

const { substring } = String.prototype;
const tail = (text) => apply(substring, text, [1]);

const describe = (...names) => {
  const given = names.length === 1 && isArray(names[0]) ? names[0] : names;
  if (given.length === 0) throw new TypeErrorOf("describe takes names of tools: await describe(\"server.tool\")");
  for (let index = 0; index < given.length; index += 1) {
    if (typeof given[index] !== "string") throw new TypeErrorOf("describe takes names of tools: await describe(\"server.tool\")");
  }
  return ask(KIND.describe, undefined, "describe", `{"names":${argumentsJson(given, "describe")}}`);
};

const help = (about) => {
  const text = about === undefined ? "{}" : `{"about":${argumentsJson(about, "help")}}`;
  return ask(KIND.help, undefined, "help", text);
};
