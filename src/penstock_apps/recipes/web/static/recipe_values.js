// A recipe between the API and a form: lines of text here, lists and numbers there.

const INGREDIENT_FIELDS = ["text", "quantity", "quantity_to", "unit", "name", "note"];

/** An ingredient as the line a cook reads. */
export function lineOf(ingredient) {
  if (typeof ingredient === "string") return tidy(ingredient);
  if (ingredient.text) return tidy(ingredient.text);
  const { quantity, quantity_to: most, unit, name, note } = ingredient;
  const amount = quantity ?? null;
  const range = amount !== null && (most ?? null) !== null ? `${amount}-${most}` : amount;
  const line = [range, unit, name].filter((part) => part !== null && part !== undefined && part !== "").join(" ");
  return tidy(note ? `${line}, ${note}` : line);
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
  if (typeof ingredient === "string") return ingredient;
  const pairs = INGREDIENT_FIELDS.map((name) => [name, ingredient[name] ?? null]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== null));
}

function tidy(text) {
  return text.replace(/\s+/g, " ").trim();
}
