/** A real nginx with the configuration of examples/nginx, on ports and files of a test. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freeAddress } from '../../src/cli/free-address.ts'
import { packageRoot } from '../../src/package-root.ts'

/** Whether the command is there; it need not be on the path of a user who is not root. */
export const nginx = ['nginx', '/usr/sbin/nginx'].find((command) => spawnSync(command, ['-v']).status === 0)

/** A port of 127.0.0.1 that nobody has. */
export const freePort = async (): Promise<number> => Number((await freeAddress()).split(':')[1])

export interface Proxied {
  /** A directory for its files. */
  readonly directory: string
  readonly port: number
  /** Where the node listens, `host:port`. */
  readonly http: string
  readonly grpc: string
  readonly certificate: string
  readonly key: string
  /** What the node, and with it the proxy towards it, has as `http.tls`. */
  readonly nodeHasTls: boolean
}

/** Starts it and waits until it listens. */
export async function startNginx(proxied: Proxied): Promise<ChildProcess> {
  const { directory, port } = proxied
  mkdirSync(directory, { recursive: true })
  let site = readFileSync(join(packageRoot(), 'examples/nginx/penstock.conf'), 'utf8')
  const change = (from: string, to: string) => {
    if (!site.includes(from)) throw new Error(`examples/nginx/penstock.conf does not say ${from}`)
    site = site.replaceAll(from, to)
  }
  change('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
  change('server 127.0.0.1:8769', `server ${proxied.http}`)
  change('server 127.0.0.1:8770', `server ${proxied.grpc}`)
  change('ssl_certificate /etc/ssl/penstock/tls.crt', `ssl_certificate ${proxied.certificate}`)
  change('ssl_certificate_key /etc/ssl/penstock/tls.key', `ssl_certificate_key ${proxied.key}`)
  if (!proxied.nodeHasTls) {
    change('https://penstock_http', 'http://penstock_http')
    change('grpcs://penstock_grpc', 'grpc://penstock_grpc')
  }
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${directory}/${kind};`)
    .join(' ')
  writeFileSync(join(directory, 'penstock.conf'), site)
  writeFileSync(
    join(directory, 'nginx.conf'),
    `daemon off; master_process off; worker_processes 1; pid ${directory}/nginx.pid; error_log stderr;
     events { worker_connections 256; }
     http { access_log off; ${temporary} include ${directory}/penstock.conf; }`,
  )
  const child = spawn(nginx as string, ['-p', directory, '-e', 'stderr', '-c', join(directory, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr?.on('data', (text) => {
    said += text
  })
  for (let left = 500; ; left--) {
    if (child.exitCode !== null || left === 0) throw new Error(`nginx does not listen: ${said}`)
    const socket = connect(port, '127.0.0.1')
    const isUp = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isUp) return child
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
