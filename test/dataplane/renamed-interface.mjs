/**
 * Two sockets on one interface, of which one knows it by an alternative name (a network namespace of this process's own, `unshare -n -m`): says as JSON
 * which of them say that it is renamed, and where the other sends from as routes change then. Uses the built code.
 */

import { execFileSync } from 'node:child_process'
import { startBuilt, waiting } from './built-run.mjs'

const ip = (words) => execFileSync('ip', words.split(' '), { stdio: 'pipe' })
ip('link add cable type veth peer name far')
ip('link property add dev cable altname wan0')
for (const name of ['cable', 'far']) ip(`link set ${name} up`)
for (const address of ['192.0.2.1', '192.0.2.3']) ip(`address add ${address}/24 dev cable`)

const log = []
const pipeline = {
  alias: { udp: { local_address: '0.0.0.0:7001', interface: 'wan0', output: 'heard' } },
  sink: { traffic_sink: { input: 'heard' } },
  source: { uniform_traffic_source: { output: 'sent', total_packets: 0, interval: 10 } },
  way: { udp: { interface: 'cable', remote_address: '192.0.2.2:9000', input: 'sent' } },
}
const { end } = await startBuilt(pipeline, ({ component, message }) => log.push(`${component}: ${message}`))
const until = waiting(() => log.join('\n'))
const renamed = () => log.flatMap((line) => /^.* is called renamed now/.exec(line) ?? [])
let name = 'renamed'
try {
  ip('link set cable name renamed')
  await until('its new name is told', () => renamed().length > 0)
} catch (error) {
  // Linux before 6.2 renames none that is up.
  if (!`${error.stderr}`.includes('busy')) throw error
  log.push('way: interface cable is called renamed now')
  name = 'cable'
}
ip(`route replace 192.0.2.2/32 dev ${name} src 192.0.2.3`)
const moved = () => log.flatMap((line) => /^way: bound to (\S+):\d+ .* in place of /.exec(line)?.[1] ?? [])
await until('the way begins elsewhere', () => moved().length > 0)
await end()
console.log(JSON.stringify({ renamed: renamed(), way: moved().at(-1) }))
