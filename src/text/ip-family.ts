/**
 * Which kind of IP address a text is, in a thread that has not loaded `node:net` and compiled no regular expression: the one takes 1 ms and the
 * other a quarter of it, where a thread takes 30 to start.
 */

const net = () => process.getBuiltinModule('node:net')

/** What `net.isIPv4` says: four decimal numbers below 256, without zeros in front. */
export function isIPv4(text: string): boolean {
  const numbers = text.split('.')
  return numbers.length === 4 && numbers.every(isByte)
}

/** What `net.isIPv6` says, which accepts a zone (`%eth0`). */
export function isIPv6(text: string): boolean {
  return text.includes(':') && net().isIPv6(text)
}

/** Whether `text` is a number from 0 to 255 as JavaScript writes it. */
function isByte(text: string): boolean {
  const number = Number(text)
  return number >= 0 && number <= 255 && String(number) === text
}
