/**
 * The resolver of the system. Node.js asks it for two names at a time in the whole process (libuv keeps the other threads of its pool for files), and no
 * question can be called off: two names whose servers say nothing would keep everybody else's waiting. Here each has a thread of its own.
 */
import { getDefaultResultOrder, lookup } from 'node:dns/promises'
import { Socket } from 'node:net'
import { json } from 'node:stream/consumers'
import { native } from '../native/native.ts'

/** Gives the addresses of a name, the best first; rejects with an Error whose `code` says why there are none. */
export type Lookup = (host: string) => Promise<readonly { address: string; family: number }[]>

/** Names that have a thread of their own at once, at most: further ones wait for those of Node.js. */
const MAX_ASKING_THREADS = 64
/** What Node.js does to the order of the system where it is told to (--dns-result-order), here as there. */
const BY_FAMILY = { ipv4first: 1, ipv6first: -1, verbatim: 0 } as const

let asking = 0

export const askSystem: Lookup = async (host) => {
  const answer = asking < MAX_ASKING_THREADS ? begin(host) : undefined
  if (answer === undefined) return await lookup(host, { all: true })
  asking++
  try {
    const found = (await json(answer)) as { address: string; family: number }[] | string
    if (typeof found === 'string') throw Object.assign(new Error(`getaddrinfo ${found} ${host}`), { code: found })
    const way = BY_FAMILY[getDefaultResultOrder()]
    return found.sort((a, b) => way * (a.family - b.family))
  } finally {
    asking--
  }
}

/** What the answer is read from; undefined where the system has no thread or descriptor left for it. */
function begin(host: string): Socket | undefined {
  try {
    // It keeps no process that has stopped waiting.
    return new Socket({ fd: native.hostAsk(host), readable: true, writable: false }).unref()
  } catch {
    return undefined
  }
}
