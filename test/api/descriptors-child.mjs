/**
 * A node in a process of its own that can be left with few file descriptors. Arguments: data directory, JSON of further flags, and how many threads it
 * keeps ready for the next runs: those that become so, or die of it, take descriptors and give them back. Prints its addresses and id; then answers each number read from stdin with how many descriptors the addon holds, once it has left itself that many.
 */
import { closeSync, openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { native } from '../../dist/src/dataplane/native/native.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'
import { loadConfig } from '../../dist/src/node/config.js'
import { startNode } from '../../dist/src/node/node.js'

const { config } = loadConfig({
  flags: {
    'data-dir': process.argv[2],
    http: '127.0.0.1:0',
    grpc: 'none',
    'log-level': 'silent',
    ...JSON.parse(process.argv[3] ?? '{}'),
  },
})
const [warm] = process.argv.slice(4).map(Number)
const node = await startNode(config, warm === undefined ? {} : { pool: openRunPool({ warm }) })
console.log(JSON.stringify({ http: node.http, grpc: node.grpc, id: node.id }))

const taken = []
for await (const line of createInterface(process.stdin)) {
  try {
    for (;;) taken.push(openSync('/dev/null'))
  } catch {
    for (let left = Number(line); left > 0 && taken.length > 0; left--) closeSync(taken.pop())
  }
  console.log(JSON.stringify({ held: native.openDescriptors() }))
}
await node.close()
