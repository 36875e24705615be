/** Tunnels between two namespaces, all up at the same time, each with an interface and a network of its own. */
import type { ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { fileURLToPath } from 'node:url'
import { nativeProgram } from '../measure.ts'
import { chainOf, type Link } from './chain.ts'
import { cpuTime } from './cpu-time.ts'
import { type Namespaces, type Side, WIRE } from './namespaces.ts'

const MTU = 1420
const FIRST_PORT = 5000
const CPUS: Record<Side, number> = { a: 0, b: 1 }
const PATIENCE_MS = 5000
const KEYS: Record<Side, number> = { a: 1, b: 2 }

export type Suite = 'aes-128-gcm' | 'chacha20-poly1305'

/** What repairs losses: its encoder and its decoder. */
interface Code {
  encoder: Link
  decoder: Link
}

/** Where a tunnel has a code. */
export interface Codes {
  /** Of plain packets: what it makes is encrypted. */
  inside?: Code
  /** Of encrypted packets. */
  around?: Code
}

/** A tunnel that carries packets. */
export interface Tunnel {
  /** Address of an end inside the tunnel. */
  readonly address: Record<Side, string>
  /** CPU time that both ends have had so far, ns. */
  cpuTime(): number
}

const other = (side: Side): Side => (side === 'a' ? 'b' : 'a')

export class Tunnels {
  private readonly namespaces: Namespaces
  private made = 0

  constructor(namespaces: Namespaces) {
    this.namespaces = namespaces
  }

  /** Places of the next tunnel. */
  private next() {
    const number = this.made++
    const address = { a: `10.202.${number}.1`, b: `10.202.${number}.2` }
    return { address, port: FIRST_PORT + number, device: (side: Side) => `tunnel${number}${side}` }
  }

  /** penstock's, with a code between device and encryption or between encryption and network. */
  async penstock(suite: Suite, codes: Codes = {}): Promise<Tunnel> {
    const { address, port, device } = this.next()
    const start = (side: Side) => {
      const pipeline = endOf(side, suite, { device: device(side), address: address[side], port }, codes)
      const end = fileURLToPath(new URL('./tunnel-end.js', import.meta.url))
      return this.namespaces.spawn(side, process.execPath, [end, CPUS[side], JSON.stringify(pipeline)])
    }
    return tunnelOf(address, await bothReady(start))
  }

  /** The C program's, with `library` for encryption; none: without. */
  async reference(suite: Suite, library: 'openssl' | 'ipsec-mb' | 'none'): Promise<Tunnel> {
    const { address, port, device } = this.next()
    const start = (side: Side) => {
      const ends = [device(side), WIRE[side], WIRE[other(side)], port, suite, library]
      return this.namespaces.spawn(side, 'taskset', ['-c', CPUS[side], nativeProgram('tunnel'), ...ends])
    }
    const ends = await bothReady(start)
    for (const side of ['a', 'b'] as const) this.namespaces.up(side, device(side), address[side], MTU)
    return tunnelOf(address, ends)
  }

  /** That of a wireguard-go; its encryption is ChaCha20-Poly1305. */
  async wireguard(program: string): Promise<Tunnel> {
    const { address, port, device } = this.next()
    const keys = { a: keyPair(), b: keyPair() }
    // With -f it would say every time that the kernel has WireGuard of its own.
    const env = { LOG_LEVEL: 'error', WG_PROCESS_FOREGROUND: '1' }
    const start = (side: Side) => this.namespaces.spawn(side, program, [device(side)], env)
    const ends = { a: start('a'), b: start('b') }
    for (const side of ['a', 'b'] as const) {
      await configureWireguard(device(side), {
        private_key: keys[side].secret,
        listen_port: String(port),
        public_key: keys[other(side)].open,
        endpoint: `${WIRE[other(side)]}:${port}`,
        allowed_ip: '0.0.0.0/0',
      })
      this.namespaces.up(side, device(side), address[side], MTU)
    }
    return tunnelOf(address, ends)
  }
}

function tunnelOf(address: Record<Side, string>, { a, b }: Record<Side, ChildProcess>): Tunnel {
  return { address, cpuTime: () => cpuTime(a.pid as number) + cpuTime(b.pid as number) }
}

/** The processes of both ends, once each has written a line. */
async function bothReady(start: (side: Side) => ChildProcess): Promise<Record<Side, ChildProcess>> {
  const ends = { a: start('a'), b: start('b') }
  for (const child of Object.values(ends)) {
    const [chunk] = await Promise.race([
      once(child.stdout as NonNullable<typeof child.stdout>, 'data'),
      once(child, 'close'),
    ])
    if (!Buffer.isBuffer(chunk)) throw new Error(`an end of the tunnel did not start: ${child.spawnargs.join(' ')}`)
  }
  return ends
}

function endOf(
  side: Side,
  suite: Suite,
  { device, address, port }: { device: string; address: string; port: number },
  { inside, around }: Codes,
): Record<string, unknown> {
  const cipher = (of: Side) =>
    suite === 'aes-128-gcm'
      ? { aes_128_gcm_sha_256: { key: `0${KEYS[of]}`.repeat(16) } }
      : { chacha20_poly1305_sha_256: { key: `0${KEYS[of]}`.repeat(32) } }
  const tun = { interface_name: device, ip: address, mtu: MTU, generic_offload: true }
  const udp = { local_address: `${WIRE[side]}:${port}`, remote_address: `${WIRE[other(side)]}:${port}` }
  return {
    device: { tun: { ...tun, output: 'leaving', input: 'arriving' } },
    ...chainOf([...encoders(inside), { ssl_encrypt: cipher(side) }, ...encoders(around)], 'leaving', 'to-send'),
    network: { udp: { ...udp, input: 'to-send', output: 'received' } },
    ...prefixed(
      'back',
      chainOf([...decoders(around), { ssl_decrypt: cipher(other(side)) }, ...decoders(inside)], 'received', 'arriving'),
    ),
  }
}

const encoders = (code: Code | undefined): Link[] => (code ? [code.encoder] : [])
const decoders = (code: Code | undefined): Link[] => (code ? [code.decoder] : [])

/** A chain whose components and inner connections are named apart from another's. */
function prefixed(prefix: string, chain: Record<string, unknown>): Record<string, unknown> {
  const renamed = JSON.stringify(chain).replaceAll('"link-', `"${prefix}-link-`)
  return Object.fromEntries(Object.entries(JSON.parse(renamed)).map(([name, value]) => [`${prefix}-${name}`, value]))
}

/** An X25519 key pair as wireguard-go takes it: hexadecimal. */
function keyPair(): { secret: string; open: string } {
  const { d = '', x = '' } = generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' })
  const hex = (text: string) => Buffer.from(text, 'base64url').toString('hex')
  return { secret: hex(d), open: hex(x) }
}

/** Configures a wireguard-go over its socket (the cross-platform configuration protocol of wireguard.com); waits until that is there. */
async function configureWireguard(device: string, settings: Record<string, string>): Promise<void> {
  const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}\n`)
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      const socket = createConnection(`/var/run/wireguard/${device}.sock`)
      await once(socket, 'connect')
      socket.write(`set=1\n${lines.join('')}\n`)
      const [answer] = await once(socket, 'data')
      socket.destroy()
      if (!/^errno=0$/m.test(String(answer))) throw new Error(`wireguard-go refused its configuration: ${answer}`)
      return
    } catch (error) {
      if (
        !['ENOENT', 'ECONNREFUSED'].includes(String((error as NodeJS.ErrnoException).code)) ||
        performance.now() > deadline
      )
        throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
