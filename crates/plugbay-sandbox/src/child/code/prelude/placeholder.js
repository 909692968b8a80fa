// Values of a dry run: nobody knows them, and the script goes on with them as far as it can.

const placeholders = new WeakSet();
let isDry = false;

const placeholder = (text) => {
  isDry = true;
  const asText = () => text;
  const once = function* () {
    yield placeholder(text);
  };
  const onceAsync = async function* () {
    yield placeholder(text);
  };
  const traps = {
    __proto__: null,
    get: (_, key) => {
      switch (key) {
        case "then":
          return undefined;
        case "length":
        case "size":
          return 1;
        case "toString":
        case "toJSON":
        case Symbol.toPrimitive:
          return asText;
        case TEXT:
          return text;
        case Symbol.iterator:
          return once;
        case Symbol.asyncIterator:
          return onceAsync;
        default:
          return typeof key === "symbol" ? undefined : placeholder(text);
      }
    },
    apply: (_, self, values) => {
      for (let index = 0; index < values.length; index += 1) {
        const value = values[index];
        if (typeof value === "function" && placeholderText(value) === undefined) {
          apply(value, undefined, [placeholder(text), placeholder(text), placeholder(text)]);
          break;
        }
      }
      return placeholder(text);
    },
    construct: () => placeholder(text),
    has: () => true,
    set: () => true,
    deleteProperty: () => true,
    ownKeys: () => [text],
    getOwnPropertyDescriptor: () => ({
      __proto__: null, value: placeholder(text), enumerable: true, configurable: true, writable: true,
    }),
  };
  const made = new ProxyOf(() => undefined, traps);
  apply(addTo, placeholders, [made]);
  return made;
};

const TEXT = Symbol();

// The text of a placeholder; undefined for any other value.
const placeholderText = (value) =>
  typeof value === "function" && apply(isIn, placeholders, [value]) ? value[TEXT] : undefined;
