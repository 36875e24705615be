/** Where a hub is reached, as a person writes it and a server tells it. */

/** Longest address of a server, characters. */
export const MAX_ADDRESS_LENGTH = 256

/**
 * Reads the address of a hub: http or https, host and port, and the path below which a proxy serves it, if it does. Throws TypeError, whose
 * message says what the address is, must or must not.
 */
export function hubAddress(text: string): URL {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    const port = /^[a-z]+:\/\/[^/?#]*:(\d+)(?:[/?#]|$)/i.exec(text)?.[1]
    if (Number(port) > 65_535) throw new TypeError(`has the port ${port}: ports end at 65535`)
    throw new TypeError('is no address; write it as in https://hub.example:8769')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError('must begin with http:// or https://')
  }
  if (url.username !== '' || url.password !== '') throw new TypeError('must hold no user name or password')
  if (url.search !== '' || url.hash !== '') throw new TypeError('must hold no ? and no #')
  return url
}
