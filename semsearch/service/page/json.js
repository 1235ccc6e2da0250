// JSON with exact integers: a Number would round those beyond 2 ** 53, such as ids of posts.

/** Parse JSON; integers that a Number would round become BigInt, in browsers that support it. */
export function parse(text) {
  return JSON.parse(text, (key, value, context) => {
    const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value);
    return isRounded && /^-?\d+$/.test(context?.source) ? BigInt(context.source) : value;
  });
}

export function stringify(value) {
  return JSON.stringify(value, (key, item) =>
    typeof item === "bigint" ? JSON.rawJSON(String(item)) : item,
  );
}
