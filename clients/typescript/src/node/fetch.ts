/** A fetch on node:http and node:https, which trusts as told. */
import { request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Fetch } from '../fetch.ts'
import { type Trust, TrustingAgent } from './trust.ts'

/**
 * A fetch for `connect` that trusts as told, follows no redirects, and takes a connection of its own for each request. A certificate that is not
 * to be trusted rejects with UntrustedCertificate before anything is sent, the token included.
 */
export function nodeFetch(trust: Trust = {}): Fetch {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const options = { method, headers, ...(signal ? { signal } : {}) }
      const call = url.startsWith('https:')
        ? tlsRequest(url, { ...options, agent: new TrustingAgent(trust, signal) })
        : plainRequest(url, { ...options, agent: false })
      call.on('error', reject)
      call.on('response', (answer) => {
        const { statusCode: status = 0, statusMessage: statusText = '' } = answer
        const ok = status >= 200 && status < 300
        resolve({ ok, status, statusText, body: answer, text: () => text(answer) })
      })
      call.end(body)
    })
}
