/** Lengths of texts in characters of Unicode, as people count them and JSON Schema does: an emoji is one, and two of a JavaScript string. */

export function isLonger(text: string, most: number): boolean {
  if (text.length <= most) return false
  // Each character takes two places at most.
  if (text.length > 2 * most) return true
  let count = 0
  for (const _ of text) if (++count > most) return true
  return false
}

/** Where to cut `text` so that its first part has `most` places of a JavaScript string at most, and no character is in halves. */
export function cutAt(text: string, most: number): number {
  if (text.length <= most) return text.length
  const last = text.charCodeAt(most - 1)
  const isFirstHalf = last >= 0xd800 && last < 0xdc00
  return isFirstHalf ? most - 1 : most
}
