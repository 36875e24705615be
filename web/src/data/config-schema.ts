/** The schema of configurations that the node publishes, which the editor builds its palette, forms and completions from. */
import { PenstockError } from '@penstock/client'
import type { Schema } from '../views/editor/model-schema.ts'
import { LiveStore } from './live.ts'
import { node } from './session.ts'

const PATH = '/v1/schema/pipeline-config.json'

/** Undefined until it is there. */
export const configSchema = new LiveStore<Schema | undefined>(undefined, async ({ signal, set, opened }) => {
  const token = typeof node.token === 'function' ? await node.token() : node.token
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const answer = await fetch(node.url + PATH, { headers, signal }).catch((cause: unknown) => {
    signal.throwIfAborted()
    throw new PenstockError('UNAVAILABLE', 'the node is not reached', { cause })
  })
  if (!answer.ok) {
    const code = answer.status === 401 ? 'UNAUTHENTICATED' : answer.status >= 500 ? 'UNAVAILABLE' : 'INTERNAL'
    throw new PenstockError(code, `the node does not give ${PATH}: ${answer.status} ${answer.statusText}`)
  }
  set((await answer.json()) as Schema)
  opened()
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
})
