// A recipe between the API and a form: lines of text here, lists and numbers there.

const INGREDIENT_FIELDS = [
  "text",
  "quantity_display",
  "quantity_value",
  "quantity_to",
  "unit",
  "name",
  "note",
  "line",
];

/** An ingredient as the line a cook reads: the page's own, or the amount before what it is. */
export function lineOf(ingredient) {
  if (ingredient.line) return tidy(ingredient.line);
  const amount = tidy([ingredient.quantity_display, ingredient.unit].filter(Boolean).join(" "));
  const text = tidy(ingredient.text ?? "");
  // Some write the amount in the text as well.
  return text.toLowerCase().startsWith(amount.toLowerCase()) ? text : tidy(`${amount} ${text}`);
}

/** A step's text: parsed ones are texts, saved ones have a number, too. */
export function textOf(step) {
  return typeof step === "string" ? step : step.text;
}

/** A tag's name, in the same way. */
export function nameOf(tag) {
  return typeof tag === "string" ? tag : tag.name;
}

/** The lines of a text that say something. */
export function linesOf(text) {
  return text.split("\n").map(tidy).filter(Boolean);
}

/** Ingredients for lines: a line that was there before stays what it was, any other is a text. */
export function ingredientsOf(lines, before) {
  const known = new Map();
  for (const ingredient of before) {
    const line = lineOf(ingredient);
    known.set(line, [...(known.get(line) ?? []), ingredient]);
  }
  return lines.map((line) => {
    const found = known.get(line)?.shift();
    return found === undefined ? line : kept(found);
  });
}

export function tagsOf(text) {
  return [...new Set(text.split(/[,\n]/).map(tidy).filter(Boolean))];
}

/** An address to go to, if it is one of the web; anything else stays a text. */
export function webAddress(text) {
  try {
    const address = new URL(text);
    return ["http:", "https:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

export function hostOf(text) {
  const address = webAddress(text);
  return address && new URL(address).host;
}

function kept(ingredient) {
  const pairs = INGREDIENT_FIELDS.map((name) => [name, ingredient[name] ?? null]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== null));
}

function tidy(text) {
  return text.replace(/\s+/g, " ").trim();
}
