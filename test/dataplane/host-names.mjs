/**
 * What becomes of a name that /etc/hosts has while others are asked of a name server that says nothing (namespaces of this process's own, `unshare -n -m`, in which
 * 192.0.2.1 is where nobody is, and no route leads to an IPv6 address); says as JSON the address, which one it is where Node.js is told to have IPv6 addresses first, and
 * which names have none yet. Uses the built code.
 */
import { execFileSync } from 'node:child_process'
import { setDefaultResultOrder } from 'node:dns'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { HostNames } from '../../dist/src/dataplane/engine/host-names.js'

const directory = mkdtempSync(join(tmpdir(), 'penstock-names-'))
const instead = {
  '/etc/resolv.conf': 'nameserver 192.0.2.1\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
  '/etc/hosts': 'fd00:99::7 known.example\n192.0.2.7 known.example\n',
}
for (const [path, text] of Object.entries(instead)) {
  const file = join(directory, path.slice('/etc/'.length))
  writeFileSync(file, text)
  execFileSync('mount', ['--bind', file, path])
}
rmSync(directory, { recursive: true })

async function resolved(host, names) {
  const pipeline = { it: { udp: { output: 'a', remote_address: `${host}:1` } }, end: { traffic_sink: { input: 'a' } } }
  const { config } = checkPipelineConfig(JSON.stringify({ engine_config: { pipeline } }), components)
  return (await names.resolve(config, components, new Map())).hosts[0].address
}

// As a run would, it keeps the process for as long as it waits.
const run = setInterval(() => {}, 1000)
const names = new HostNames()
const silent = new Set(['one.example', 'two.example', 'three.example'])
for (const host of silent) {
  const over = () => silent.delete(host)
  resolved(host, names).then(over, over)
}
const known = await resolved('known.example', names).catch(({ message }) => message)
const stillSilent = [...silent]
setDefaultResultOrder('ipv6first')
const otherwise = await resolved('known.example', names).catch(({ message }) => message)
process.stdout.write(JSON.stringify({ known, otherwise, silent: stillSilent }))
// Nothing of what is still asked keeps it, however long it would be waited for.
resolved('never.example', new HostNames(() => new Promise(() => {}), 2 ** 31 - 1))
clearInterval(run)
