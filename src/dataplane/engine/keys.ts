/** Cipher keys as they are written in configurations. */

/** The bytes of `hex` or `base64:…` text; null when it is neither. */
export function keyBytes(text: string): Uint8Array | null {
  if (text.startsWith('base64:')) {
    const encoded = text.slice(7)
    if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded)) return null
    return new Uint8Array(Buffer.from(encoded, 'base64'))
  }
  return /^(?:[0-9a-fA-F]{2})+$/.test(text) ? new Uint8Array(Buffer.from(text, 'hex')) : null
}
