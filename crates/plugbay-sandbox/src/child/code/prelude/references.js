// References of our own to what scripts may replace. After the script has begun, nothing here uses a method by its name, an
// iterator (spread, for-of, array patterns) or an object that inherits from a prototype of the script.

const { apply, construct, defineProperty, deleteProperty, getPrototypeOf } = Reflect;
const ErrorOf = Error, PromiseOf = Promise, ProxyOf = Proxy;
const RangeErrorOf = RangeError, TypeErrorOf = TypeError, DateOf = Date;
const { freeze, keys: keysOf, prototype: objectPrototype } = Object;
const { isArray } = Array;
const { stringify, parse } = JSON;
const { isPrototypeOf, hasOwnProperty } = Object.prototype;
const { exec } = RegExp.prototype;
const { includes, toWellFormed } = String.prototype;
const { toISOString, getTime } = Date.prototype;
const { forEach: forEachOfMap } = Map.prototype;
const { forEach: forEachOfSet } = Set.prototype;
const { has: isIn, add: addTo } = WeakSet.prototype;
const { then: thenOf } = Promise.prototype;
const { toString: bigIntText } = BigInt.prototype;
const { toString: symbolText } = Symbol.prototype;
const { imul } = Math;

const inherits = (value, prototype) => apply(isPrototypeOf, prototype, [value]);
const owns = (value, key) => apply(hasOwnProperty, value, [key]);
const matches = (pattern, text) => apply(exec, pattern, [text]) !== null;
// Half a character pair is in no UTF-8, and readers of JSON refuse it.
const wellFormed = (text) => apply(toWellFormed, text, []);
const quoted = (text) => apply(stringify, undefined, [wellFormed(text)]);
const hidden = (value) => ({ __proto__: null, value, enumerable: false, configurable: true, writable: true });
const fixed = (value) => ({ __proto__: null, value, enumerable: false, configurable: false, writable: false });

// A text of a value that is meant to be one.
const textOf = (value) => typeof value === "string" ? value : value === undefined ? "" : shown(value);

// The stack of whoever calls, as text.
const stackHere = () => {
  const { stack } = new ErrorOf();
  return typeof stack === "string" ? stack : "";
};
