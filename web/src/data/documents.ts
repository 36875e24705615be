/** Documents that the node serves beside its API: the schema of configurations, and links to emulate. */
import { PenstockError } from '@penstock/client'
import type { ConfigSchema } from './configuration.ts'
import { LiveStore } from './live.ts'
import type { Schema } from './schema.ts'
import { node } from './session.ts'

/** One emulation component without its connections: `{ key: fields }`. */
export type ProfileStep = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** A link as it is known: what packets pass each way, in order. */
export interface Profile {
  readonly name: string
  readonly description: string
  /** Where the numbers are from. */
  readonly source: string
  readonly up: readonly ProfileStep[]
  readonly down: readonly ProfileStep[]
}

/** The schema of configurations; undefined until it is there. */
export const configSchema = document<ConfigSchema & Schema>('/v1/schema/pipeline-config.json')

/** The links that the node has profiles of; undefined until they are there. */
export const impairmentProfiles = document<readonly Profile[]>('/v1/impairment-profiles.json')

/** A document, read once for as long as somebody looks at what is made of it. */
function document<Content>(path: string): LiveStore<Content | undefined> {
  return new LiveStore<Content | undefined>(undefined, async ({ signal, set, opened }) => {
    set(await read<Content>(path, signal))
    opened()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
}

async function read<Content>(path: string, signal: AbortSignal): Promise<Content> {
  const token = typeof node.token === 'function' ? await node.token() : node.token
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const answer = await fetch(node.url + path, { headers, signal }).catch((cause: unknown) => {
    signal.throwIfAborted()
    throw new PenstockError('UNAVAILABLE', 'the node is not reached', { cause })
  })
  if (answer.ok) return (await answer.json()) as Content
  const code = answer.status === 401 ? 'UNAUTHENTICATED' : answer.status >= 500 ? 'UNAVAILABLE' : 'INTERNAL'
  throw new PenstockError(code, `the node does not give ${path}: ${answer.status} ${answer.statusText}`)
}
