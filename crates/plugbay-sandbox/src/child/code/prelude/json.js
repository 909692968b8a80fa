// Values as JSON. What JSON cannot carry is an error that names its path; in text for people it is described instead.

const DEEPEST = 1000;
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

// What a value is that JSON cannot carry.
class NotJson {
  constructor(at, what) {
    this.what = `${pathOf(at) || "it"} ${what}`;
  }
}

// `at` is a list from a value up to the outermost one: { key, value, up, depth }.
const pathOf = (at) => {
  let path = "";
  for (let step = at; step !== null && step.up !== null; step = step.up) {
    const key = step.key;
    if (typeof key === "number") path = `[${key}]${path}`;
    else path = (matches(IDENTIFIER, key) ? `.${key}` : `[${quoted(key)}]`) + path;
  }
  return path;
};

const step = (key, value, up) => {
  const depth = up === null ? 0 : up.depth + 1;
  if (depth > DEEPEST) throw new RangeErrorOf("Maximum call stack size exceeded");
  return { __proto__: null, key, value, up, depth };
};

// Kinds of objects that JSON would lose, each with a remedy.
const KINDS = [
  [Date.prototype, "is a Date: write .toISOString()"],
  [Map.prototype, "is a Map: write Object.fromEntries(map) or [...map]"],
  [Set.prototype, "is a Set: write [...set]"],
  [Promise.prototype, "is a promise: write await before it"],
  [Error.prototype, "is an Error: write .message"],
  [RegExp.prototype, "is a RegExp: write .source"],
  [WeakMap.prototype, "is a WeakMap"],
  [WeakSet.prototype, "is a WeakSet"],
  [ArrayBuffer.prototype, "is an ArrayBuffer: write Array.from(new Uint8Array(buffer))"],
  [getPrototypeOf(Uint8Array.prototype), "is a typed array: write Array.from(array)"],
  [DataView.prototype, "is a DataView"],
  [Iterator.prototype, "is an iterator: write [...iterator]"],
  [getPrototypeOf(getPrototypeOf((async function* () {}).prototype)), "is an async iterator: use for await"],
];
const KIND_COUNT = KINDS.length;

const lossOf = (value) => {
  for (let index = 0; index < KIND_COUNT; index += 1) {
    const kind = KINDS[index];
    if (inherits(value, kind[0])) return kind[1];
  }
  return undefined;
};

// JSON of a value. `isShown`: for people, who rather read a description than an error.
const written = (value, at, isShown) => {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "boolean":
      return value ? "true" : "false";
    case "number":
      if (value - value === 0) return value === 0 ? "0" : `${value}`;
      return isShown ? `${value}` : lost(at, `is ${value}: write null or a text`);
    case "undefined":
      return isShown ? "undefined" : lost(at, "is undefined: write null");
    case "bigint": {
      const digits = apply(bigIntText, value, []);
      return isShown ? `${digits}n` : lost(at, "is a BigInt: write Number(value) or String(value)");
    }
    case "symbol":
      return isShown ? apply(symbolText, value, []) : lost(at, "is a symbol");
    case "function":
      return writtenFunction(value, at, isShown);
    default:
      return value === null ? "null" : writtenObject(value, at, isShown);
  }
};

const lost = (at, what) => {
  throw new NotJson(at, what);
};

const writtenFunction = (value, at, isShown) => {
  const placeholder = placeholderText(value);
  if (placeholder !== undefined) return quoted(placeholder);
  if (apply(isIn, proxies, [value])) {
    return isShown ? "[tool]" : lost(at, "is a tool: call it, await tools.server.tool({…})");
  }
  return isShown ? "[function]" : lost(at, "is a function: call it");
};

const writtenObject = (value, at, isShown) => {
  for (let up = at.up; up !== null; up = up.up) {
    if (up.value === value) return isShown ? "[cycle]" : lost(at, "refers back to an object that contains it");
  }
  if (isArray(value)) return writtenArray(value, at, isShown);
  const prototype = getPrototypeOf(value);
  if (prototype !== objectPrototype && prototype !== null) {
    const loss = lossOf(value);
    if (loss !== undefined) return isShown ? shownKind(value, at, loss) : lost(at, loss);
  }
  const { toJSON } = value;
  if (typeof toJSON === "function" && at.isConverted !== true) {
    const other = apply(toJSON, value, [`${at.key}`]);
    const converted = step(at.key, other, at.up);
    converted.isConverted = true;
    return written(other, converted, isShown);
  }
  const keys = keysOf(value);
  const count = keys.length;
  let text = "";
  for (let index = 0; index < count; index += 1) {
    const key = keys[index];
    const member = value[key];
    if (member === undefined && !isShown) continue;
    const one = typeof member === "object" || typeof member === "function"
      ? written(member, step(key, member, at), isShown)
      : writtenPlain(member, key, at, isShown);
    text += (text === "" ? "" : ",") + quoted(key) + ":" + one;
  }
  return `{${text}}`;
};

// A member that has no members. Its step is made only for an error.
const writtenPlain = (member, key, at, isShown) => {
  if (typeof member === "string") return quoted(member);
  return written(member, { __proto__: null, key, value: member, up: at, depth: 0 }, isShown);
};

const writtenArray = (value, at, isShown) => {
  const count = value.length;
  let text = "";
  for (let index = 0; index < count; index += 1) {
    const member = value[index];
    const one = typeof member === "object" || typeof member === "function"
      ? written(member, step(index, member, at), isShown)
      : writtenPlain(member, index, at, isShown);
    text += (index === 0 ? "" : ",") + one;
  }
  return `[${text}]`;
};

const shownKind = (value, at, loss) => {
  if (inherits(value, KINDS[0][0])) {
    const time = apply(getTime, value, []);
    return time === time ? quoted(apply(toISOString, value, [])) : "[invalid date]";
  }
  if (inherits(value, ErrorOf.prototype)) return quoted(shownError(value));
  if (inherits(value, KINDS[1][0])) {
    const pairs = [];
    apply(forEachOfMap, value, [(member, key) => defineProperty(pairs, pairs.length, {
      __proto__: null, value: [key, member], enumerable: true, configurable: true, writable: true,
    })]);
    return writtenArray(pairs, step(at.key, pairs, at), true);
  }
  if (inherits(value, KINDS[2][0])) {
    const members = [];
    apply(forEachOfSet, value, [(member) => defineProperty(members, members.length, {
      __proto__: null, value: member, enumerable: true, configurable: true, writable: true,
    })]);
    return writtenArray(members, step(at.key, members, at), true);
  }
  const words = apply(exec, /^is an? ([\w ]+)/, [loss]);
  return words === null ? "[object]" : `[${words[1]}]`;
};

const shownError = (error) => {
  const name = textOf(error.name), message = textOf(error.message);
  return message === "" ? name || "Error" : `${name || "Error"}: ${message}`;
};

// A value for people: texts as they are, errors by their message, all else as JSON.
const shown = (value) => {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null && inherits(value, ErrorOf.prototype)) return shownError(value);
  const placeholder = placeholderText(value);
  return placeholder === undefined ? written(value, step("", value, null), true) : placeholder;
};

// Whether the engine's own JSON says all: plain objects, arrays, texts, finite numbers.
const isPlain = (value, depth) => {
  if (typeof value === "number") return value - value === 0;
  if (typeof value !== "object") return typeof value === "boolean" || typeof value === "string";
  if (value === null) return true;
  if (depth > DEEPEST || value.toJSON !== undefined) return false;
  if (isArray(value)) {
    const count = value.length;
    for (let index = 0; index < count; index += 1) {
      const member = value[index];
      if (typeof member !== "string" && !isPlain(member, depth + 1)) return false;
    }
    return true;
  }
  const prototype = getPrototypeOf(value);
  if (prototype !== objectPrototype && prototype !== null) return false;
  const keys = keysOf(value);
  const count = keys.length;
  for (let index = 0; index < count; index += 1) {
    const member = value[keys[index]];
    if (typeof member !== "string" && member !== undefined && !isPlain(member, depth + 1)) return false;
  }
  return true;
};

// The JSON of what the script hands out. Throws NotJson. The engine writes half a character pair as an escape, which
// readers refuse.
const toJson = (value) => {
  if (isPlain(value, 0)) {
    try {
      const text = apply(stringify, undefined, [value]);
      if (!apply(includes, text, ["\\ud"])) return text;
    } catch {
      // The script has changed what the engine uses.
    }
  }
  return written(value, step("", value, null), false);
};

// The JSON of arguments, with an error that names the call.
const argumentsJson = (value, name) => {
  try {
    return toJson(value);
  } catch (error) {
    if (error instanceof NotJson) throw new TypeErrorOf(`the arguments of ${name} are not JSON: ${error.what}`);
    throw error;
  }
};
