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
  "section",
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

/** The lines of ingredients, each section below a line of its own: "For the sauce:". */
export function sectionedLines(ingredients) {
  let section = null;
  return ingredients.flatMap((ingredient) => {
    const begins = ingredient.section && ingredient.section !== section;
    section = ingredient.section ?? null;
    return begins ? [`${section}:`, lineOf(ingredient)] : [lineOf(ingredient)];
  });
}

/** Ingredients for lines: a line that was there before stays what it was, any other is a text. */
export function ingredientsOf(lines, before) {
  const known = remembered(before, lineOf);
  let section = null;
  return lines.flatMap((line, place) => {
    if (line.endsWith(":") && place + 1 < lines.length) {
      section = line.slice(0, -1).trim() || null;
      return [];
    }
    const found = known.get(line)?.shift();
    const parts = found === undefined ? { text: line } : kept({ ...found, section: null });
    if (section) return [{ ...parts, section }];
    return [found === undefined ? line : parts];
  });
}

/** The steps of a recipe with their sections, which parsed recipes have beside the texts. */
export function sectionedSteps(recipe) {
  return (recipe.steps ?? []).map((step, place) => ({
    text: textOf(step),
    section: step.section ?? recipe.step_sections?.[place] ?? null,
  }));
}

/** Steps for texts: one that was there before stays in its section. */
export function stepsOf(texts, before) {
  const known = remembered(before, (step) => step.text.trim());
  return texts.map((text) => {
    const section = known.get(text)?.shift()?.section;
    return section ? { text, section } : text;
  });
}

function remembered(parts, keyOf) {
  const known = new Map();
  for (const part of parts) known.set(keyOf(part), [...(known.get(keyOf(part)) ?? []), part]);
  return known;
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
