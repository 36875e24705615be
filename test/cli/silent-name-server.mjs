/**
 * Runs the command that follows, and sends it SIGINT once it asks a name server, which says nothing (namespaces of this process's own, `unshare -n -m`);
 * says as JSON how it ended.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const directory = mkdtempSync(join(tmpdir(), 'penstock-names-'))
const instead = { '/etc/resolv.conf': 'nameserver 127.0.0.1\n', '/etc/nsswitch.conf': 'hosts: files dns\n' }
for (const [path, text] of Object.entries(instead)) {
  const file = join(directory, path.slice('/etc/'.length))
  writeFileSync(file, text)
  execFileSync('mount', ['--bind', file, path])
}
rmSync(directory, { recursive: true })
execFileSync('ip', ['link', 'set', 'lo', 'up'])

const server = createSocket('udp4').bind(53, '127.0.0.1')
await once(server, 'listening')
const child = spawn(process.execPath, process.argv.slice(2), { stdio: ['ignore', 'ignore', 'pipe'] })
server.once('message', () => child.kill('SIGINT'))
const ended = once(child, 'close')
const stderr = await text(child.stderr)
const [code, signal] = await ended
server.close()
process.stdout.write(JSON.stringify({ code, signal, stderr }))
