/** A node in a process of its own, for tests that kill and stop it. Argument: JSON of { flags, speed }; prints JSON of its addresses and id. */
import { loadConfig } from '../../dist/src/node/config.js'
import { startNode } from '../../dist/src/node/node.js'

const { flags, speed = 1 } = JSON.parse(process.argv[2])
const { config } = loadConfig({ flags: { http: '127.0.0.1:0', grpc: 'none', 'log-level': 'silent', ...flags } })
/** With a speed of 20, heartbeats and reconnects that take 30 s take 1.5 s. */
const clock = {
  now: () => performance.now() * speed,
  setTimeout: (fn, milliseconds) => setTimeout(fn, milliseconds / speed),
  clearTimeout: (timer) => clearTimeout(timer),
}
try {
  const { http, grpc, id } = await startNode(config, { clock })
  console.log(JSON.stringify({ http, grpc, id }))
} catch (error) {
  console.log(JSON.stringify({ error: error.message }))
  process.exit(1)
}
