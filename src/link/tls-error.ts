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

/** What TLS has failed of, as OpenSSL calls it; undefined where it is no error of OpenSSL's. */
export function tlsFault({ message }: Error): string | undefined {
  const [, fault] = OPENSSL_ERROR.exec(message) ?? []
  return fault === undefined ? undefined : `TLS failed: ${fault}`
}

/**
 * <thread>:error:<number>:<library>:<function>:<reason>:<file>:<line>:<more> (ERR_print_errors(3)), with EPROTO the only place of the reason. The rest
 * tells where in OpenSSL's sources it was seen.
 */
const OPENSSL_ERROR = /:error:[0-9A-F]{8}:[^:]*:[^:]*:([^:]+):/
