/** Keys while something stands before a view. */

/** Views, which listen for keys on the window and the document, hear of none until the function returned is called; what a browser does by itself with a key it does all the same. */
export function keepKeys(): () => void {
  const keep = (event: Event): void => event.stopPropagation()
  addEventListener('keydown', keep, true)
  return () => removeEventListener('keydown', keep, true)
}
