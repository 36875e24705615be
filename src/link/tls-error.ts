/** What an error of node:tls says of the other side. */

/**
 * Whether TLS failed because what came back was no TLS. When the answer is there before the first write is done, Node gives the code
 * EPROTO, which stands for any fault of the handshake, and tells which one in the text alone: OpenSSL's number for it is looked for there.
 */
export function speaksNoTls({ code, message }: NodeJS.ErrnoException): boolean {
  return code === 'ERR_SSL_WRONG_VERSION_NUMBER' || (code === 'EPROTO' && message.includes(WRONG_VERSION_NUMBER))
}

/** ERR_LIB_SSL (20) and SSL_R_WRONG_VERSION_NUMBER (267), as OpenSSL 3 writes an error. */
const WRONG_VERSION_NUMBER = ':error:0A00010B:'
