/** A node in a process of its own, for tests that kill it. Arguments: data directory. Prints its HTTP address and id when it is up. */
import { loadConfig } from '../../dist/src/node/config.js'
import { startNode } from '../../dist/src/node/node.js'

const { config } = loadConfig({
  flags: { 'data-dir': process.argv[2], http: '127.0.0.1:0', grpc: 'none', 'log-level': 'silent' },
})
try {
  const node = await startNode(config)
  console.log(JSON.stringify({ http: node.http, id: node.id }))
} catch (error) {
  console.log(JSON.stringify({ error: error.message }))
  process.exit(1)
}
