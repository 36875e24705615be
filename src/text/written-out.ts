/** Characters that hide, move or steer what stands around them: names and messages come from other machines too. */

/**
 * Controls, marks that take no place or turn the direction of writing, fillers that are blank (Unicode has them as ignorable by default), separators of lines,
 * and U+FFFE and U+FFFF, which are no characters and which YAML does not take; what joins emoji, and letters of some scripts, and what chooses their form, is
 * seen.
 */
const UNSEEN = /(?!\u200c|\u200d|\p{VS})[\p{Cc}\p{Cf}\p{DI}\p{Zl}\p{Zp}\ufffe\uffff]/gu

/** `text` with those written as JSON writes them (`\u001b`), so that JSON stays the JSON it was, or as `write` does; those in `kept` stay. */
export function writtenOut(text: string, kept = '', write = written): string {
  return text.replace(UNSEEN, (character) => (kept.includes(character) ? character : write(character)))
}

function written(character: string): string {
  let text = ''
  for (let i = 0; i < character.length; i++) text += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
  return text
}
