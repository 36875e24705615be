/** Tells which other servers of a hub come and go, as what they share knows it. */
import type { ServerFact } from './facts.ts'
import type { ServerDirectory } from './server-directory.ts'

export function tellArrivals(directory: ServerDirectory, onFact: (fact: ServerFact) => void): void {
  let known = new Set<string>()
  const read = () => {
    const before = known
    known = new Set(directory.servers().flatMap(({ id }) => (id === directory.selfId ? [] : [id])))
    for (const server of known) if (!before.has(server)) onFact({ kind: 'server up', server })
    for (const server of before) if (!known.has(server)) onFact({ kind: 'server gone', server })
  }
  directory.followServers(read)
  read()
}
