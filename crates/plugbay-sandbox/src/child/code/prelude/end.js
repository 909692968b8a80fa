// What the engine asks: a beginning, the value of the run, and the words for an exception.

// All that differs from one run to the next. The rest is made before there is a script.
const begin = (time, seedLow, seedHigh, input) => {
  now = time;
  a = seedLow | 0;
  b = seedHigh | 0;
  for (let round = 0; round < 12; round += 1) random();
  put("input", input);
};

const finish = (value) => {
  if (value === undefined) return "";
  try {
    return toJson(value);
  } catch (error) {
    if (error instanceof NotJson) return { __proto__: null, what: error.what };
    throw error;
  }
};

const explain = (error) => {
  const isError = typeof error === "object" && error !== null && inherits(error, ErrorOf.prototype);
  let call = callOf(error);
  let message = isError ? shownError(error) : `it threw ${shown(error)}`;
  if (isError && isArray(error.errors)) message += causes(error.errors);
  if (isError && error.cause !== undefined) {
    if (call === undefined) call = callOf(error.cause);
    message += ` (cause: ${shown(error.cause)})`;
  }
  return {
    __proto__: null,
    message: wellFormed(message),
    stack: isError && typeof error.stack === "string" ? wellFormed(error.stack) : "",
    call: typeof call === "number" ? call : -1,
    isDry,
  };
};

// The errors of an AggregateError.
const causes = (errors) => {
  let text = "";
  for (let index = 0; index < errors.length && index < 5; index += 1) {
    text += `${index === 0 ? ": " : "; "}${shown(errors[index])}`;
  }
  return text;
};

return { __proto__: null, begin, settle, settleUnknown, finish, explain };
