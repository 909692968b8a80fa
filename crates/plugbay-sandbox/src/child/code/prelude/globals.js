// What a script finds, and what it does not find.

const put = (name, value) => defineProperty(globalThis, name, fixed(value));

// Compilers of text: the constructors of all kinds of functions. Their prototypes stay, for `instanceof`.
const noCompiler = "text is not compiled here: write the code itself";
const functionKinds = [
  function () {}, async function () {}, function* () {}, async function* () {},
];
for (const kind of functionKinds) {
  const prototype = getPrototypeOf(kind);
  const stub = function () {
    throw new TypeErrorOf(noCompiler);
  };
  defineProperty(stub, "prototype", fixed(prototype));
  defineProperty(stub, "name", fixed(prototype.constructor.name));
  defineProperty(prototype, "constructor", fixed(stub));
}
put("Function", getPrototypeOf(functionKinds[0]).constructor);
put("eval", refuse(noCompiler));

// Clocks, threads, garbage collection, stacks as objects: nothing that differs from one run to the next.
for (const name of [
  "Atomics", "FinalizationRegistry", "SharedArrayBuffer", "WeakRef", "navigator", "performance", "gc", "print", "scriptArgs",
  "queueMicrotask",
]) {
  deleteProperty(globalThis, name);
}
deleteProperty(Error, "prepareStackTrace");
deleteProperty(Error, "stackTraceLimit");

const noClock = "there is no clock here: calls are simply awaited; to try again, call again";
for (const name of ["setTimeout", "setInterval", "setImmediate", "requestAnimationFrame"]) {
  put(name, refuse(`${name}: ${noClock}`));
}
for (const name of ["clearTimeout", "clearInterval", "clearImmediate"]) put(name, () => undefined);

// An error of the function is an error of the run.
put("queueMicrotask", (job) => {
  if (typeof job !== "function") throw new TypeErrorOf("queueMicrotask takes a function");
  apply(thenOf, new PromiseOf((resolve) => resolve()), [() => { job(); }]);
});

// The time stands still.
let now = 0;
const FixedDate = function Date(...values) {
  if (new.target === undefined) return new DateOf(now).toString();
  return construct(DateOf, values.length === 0 ? [now] : values, new.target);
};
defineProperty(FixedDate, "prototype", fixed(DateOf.prototype));
defineProperty(FixedDate, "length", fixed(7));
defineProperty(FixedDate, "now", hidden(() => now));
defineProperty(FixedDate, "parse", hidden(DateOf.parse));
defineProperty(FixedDate, "UTC", hidden(DateOf.UTC));
defineProperty(DateOf.prototype, "constructor", hidden(FixedDate));
defineProperty(globalThis, "Date", hidden(FixedDate));

// Chance repeats itself: sfc32.
let a = 0, b = 0, c = 0x2545f491, d = 1;
const random = () => {
  const sum = (a + b | 0) + d | 0;
  d = d + 1 | 0;
  a = b ^ b >>> 9;
  b = c + (c << 3) | 0;
  c = (c << 21 | c >>> 11) + sum | 0;
  return (sum >>> 0) / 4294967296;
};
defineProperty(Math, "random", hidden(() => (random() * 2097152 + (random() * 2097152 >>> 0) / 2097152) / 2097152));

// Results are parsed already, and those of a dry run cannot be.
defineProperty(JSON, "parse", hidden((text, reviver) => {
  if (placeholderText(text) !== undefined) return text;
  if (typeof text === "object" && text !== null) {
    throw new TypeErrorOf("JSON.parse takes a text; this is an object already: use it as it is");
  }
  return reviver === undefined ? apply(parse, undefined, [text]) : apply(parse, undefined, [text, reviver]);
}));

// Text.
const line = (...values) => {
  let text = "";
  for (let index = 0; index < values.length; index += 1) text += (index === 0 ? "" : " ") + shown(values[index]);
  hostText(`${wellFormed(text)}\n`);
};
const nothing = () => undefined;
const assert = (condition, ...values) => {
  if (!condition) apply(line, undefined, values.length === 0 ? ["assertion failed"] : values);
};
put("console", freeze({
  log: line, info: line, warn: line, error: line, debug: line, trace: line, dir: (value) => line(value),
  table: (value) => line(value), group: line, groupCollapsed: line, groupEnd: nothing, assert,
  time: nothing, timeEnd: nothing, timeLog: nothing, count: nothing, countReset: nothing, clear: nothing,
}));
put("text", line);

put("tools", tools);
put("results", results);
put("search", search);
put("describe", describe);
put("help", help);
put("ToolError", ToolError);
