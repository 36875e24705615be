/** A registry of npm packages on loopback: the packages of node_modules that penstock needs to run, in the versions of the lock file. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { packageRoot } from '../../src/package-root.ts'

interface Published {
  location: string
  name: string
  version: string
}

/** Binaries for other systems, which nothing here loads, are left out. */
const FOREIGN = ['darwin', 'win32', 'arm', 'arm64'].map((system) => `--exclude=uws_*${system}_*`)

function sendTarball(location: string, response: ServerResponse): void {
  const args = ['--exclude=./node_modules', ...FOREIGN, '--transform=s,^[.],package,', '-C', location]
  spawn('tar', [...args, '-I', 'gzip -1', '-cf', '-', '.'], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout.pipe(
    response,
  )
}

/** Starts it; `names` are the packages that it was asked for. */
export async function startRegistry(): Promise<{ url: string; names: Set<string>; close: () => Promise<void> }> {
  const root = packageRoot()
  const all = JSON.parse(
    execFileSync('npm', ['query', '*'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as (Published & { dev: boolean })[]
  const published = all.filter(({ dev, location }) => !dev && location.startsWith('node_modules/'))
  const names = new Set<string>()
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url as string).slice(1))
    const [, tarball] = /^-\/(\d+)\.tgz$/.exec(path) ?? []
    if (tarball !== undefined) return sendTarball(join(root, published[Number(tarball)]?.location as string), response)
    const versions: Record<string, unknown> = {}
    let latest = ''
    for (const [index, { location }] of published.entries()) {
      const manifest = JSON.parse(readFileSync(join(root, location, 'package.json'), 'utf8'))
      if (manifest.name !== path) continue
      latest = manifest.version
      versions[latest] = { ...manifest, dist: { tarball: `http://${request.headers.host}/-/${index}.tgz` } }
    }
    names.add(path)
    response.writeHead(latest === '' ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ name: path, versions, 'dist-tags': { latest } }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, names, close }
}
