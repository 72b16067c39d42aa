// Copying a text of the page.

/** Copy what an element says; where the browser forbids it, the text is at least selected. */
export async function copyText(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    // Pages that did not come over HTTPS have no clipboard of this kind.
    getSelection().selectAllChildren(element);
    return document.execCommand("copy");
  }
}
