/**
 * ssl_encrypt and ssl_decrypt, on packets of 1,200 bytes, with each backend against a C loop over the same library, and with OpenSSL against
 * node:crypto packet by packet; chacha20_encrypt and chacha20_decrypt, on each of their kernels, against a C loop over OpenSSL's EVP.
 */
import { spawnSync } from 'node:child_process'
import { createCipheriv } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AeadBackendName } from '../src/dataplane/native/cipher-calls.ts'
import { native } from '../src/dataplane/native/native.ts'
import { type BenchResult, type BenchRow, inTurn, nativeProgram, runAlone } from './measure.ts'
import { Stage } from './support/stage.ts'

const BYTES = 1200
const ROUNDS = 15
const MILLISECONDS = 20
const SUITES = [
  ['aes_128_gcm_sha_256', 'aes-128-gcm', 16],
  ['aes_256_gcm_sha_384', 'aes-256-gcm', 32],
  ['chacha20_poly1305_sha_256', 'chacha20-poly1305', 32],
] as const

/** An encrypter on full batches, ns per packet. */
function sealing(suite: Record<string, unknown>, encrypter = 'ssl_encrypt') {
  const stage = new Stage(encrypter, suite)
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < MILLISECONDS * 1e6) {
      while (!stage.batch.full) stage.add(BYTES)
      packets += stage.batch.length
      spent += stage.send()
    }
    return spent / packets
  }
  return { measure, stop: () => stage.stop() }
}

/** A decrypter on full batches that its encrypter made just before; only the opening is timed. */
function opening(suite: Record<string, unknown>, encrypter = 'ssl_encrypt', decrypter = 'ssl_decrypt') {
  const sender = new Stage(encrypter, suite)
  const stage = new Stage(decrypter, suite)
  sender.look = ({ handles, length, packets }) => {
    for (let i = 0; i < length; i++) {
      const at = packets.offset[handles[i]]
      stage.add(packets.data.subarray(at, at + packets.length[handles[i]]))
    }
  }
  let sent = 0
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < MILLISECONDS * 1e6) {
      while (!sender.batch.full) sender.add(BYTES)
      sender.send()
      packets += stage.batch.length
      spent += stage.send()
    }
    sent += packets
    return spent / packets
  }
  const stop = () => {
    const opened = stage.metrics().decrypted_packets
    if (opened !== sent) throw new Error(`${opened} of ${sent} packets were opened`)
    sender.stop()
    stage.stop()
  }
  return { measure, stop }
}

/** One cipher object per packet, as node:crypto has it. */
function nodeCrypto(cipher: string, keyBytes: number): () => number {
  const key = Buffer.alloc(keyBytes, 7)
  const payload = Buffer.alloc(BYTES, 31)
  const nonce = Buffer.alloc(12)
  const header = Buffer.alloc(16, 9)
  let counter = 0
  return () => {
    const start = native.now()
    let [packets, stop] = [0, start]
    while (stop - start < MILLISECONDS * 1e6) {
      for (let i = 0; i < 64; i++) {
        nonce.writeUInt32BE(++counter, 8)
        const seal = createCipheriv(cipher as 'aes-128-gcm', key, nonce, { authTagLength: 16 })
        seal.setAAD(header)
        seal.update(payload)
        seal.final()
        seal.getAuthTag()
      }
      packets += 64
      stop = native.now()
    }
    return (stop - start) / packets
  }
}

interface Loop {
  sealNs: number
  openNs: number
  /** The version of OpenSSL, where that is the library. */
  openssl?: string
}

/** A C loop over one of the libraries, both ways. */
function runLoop(program: string, cipher: string): Loop {
  const { stdout } = spawnSync(program, [BYTES, MILLISECONDS * 2, cipher].map(String), { encoding: 'utf8' })
  return JSON.parse(stdout)
}

/** Both ways with one backend, and the C loop over its library. */
function ends(backend: AeadBackendName, program: string, suite: Record<string, unknown>, cipher: string) {
  native.aeadUse(backend)
  const encrypt = sealing(suite)
  const decrypt = opening(suite)
  // A decrypter sets its key when the first packet comes.
  decrypt.measure()
  native.aeadUse('auto')
  let latest = runLoop(program, cipher)
  const stop = () => {
    encrypt.stop()
    decrypt.stop()
  }
  const candidates = {
    [`${backend} seal`]: () => {
      latest = runLoop(program, cipher)
      return latest.sealNs
    },
    [`${backend} encrypt`]: encrypt.measure,
    [`${backend} open`]: () => latest.openNs,
    [`${backend} decrypt`]: decrypt.measure,
  }
  return { candidates, stop }
}

/** The bare stream cipher: both ways with the kernel that runs choose, and encrypting with each of the others. */
async function chachaRows(program: string): Promise<BenchRow[]> {
  const config = { key: '07'.repeat(32), nonce: '09'.repeat(12) }
  const [fastest = '', ...others] = native.chachaKernels()
  const encrypt = sealing(config, 'chacha20_encrypt')
  const decrypt = opening(config, 'chacha20_encrypt', 'chacha20_decrypt')
  const withKernel = (kernel: string) => () => {
    native.chachaUse(kernel)
    const ns = encrypt.measure()
    native.chachaUse(fastest)
    return ns
  }
  let latest = runLoop(program, 'chacha20')
  const ns: Record<string, number> = await inTurn(ROUNDS, {
    seal: () => {
      latest = runLoop(program, 'chacha20')
      return latest.sealNs
    },
    encrypt: encrypt.measure,
    open: () => latest.openNs,
    decrypt: decrypt.measure,
    ...Object.fromEntries(others.map((kernel) => [kernel, withKernel(kernel)])),
  })
  encrypt.stop()
  decrypt.stop()
  const of = (name: string) => ns[name] as number
  return [
    { label: 'chacha20 C loop over EVP, encrypt', value: of('seal'), unit },
    { label: `chacha20_encrypt, ${fastest}`, value: of('encrypt'), unit, ratio: of('seal') / of('encrypt') },
    { label: 'chacha20 C loop over EVP, decrypt', value: of('open'), unit },
    { label: `chacha20_decrypt, ${fastest}`, value: of('decrypt'), unit, ratio: of('open') / of('decrypt') },
    ...others.map((kernel) => ({
      label: `chacha20_encrypt, ${kernel}`,
      value: of(kernel),
      unit,
      ratio: of('seal') / of(kernel),
    })),
  ]
}

const unit = 'ns per packet'

/** A suite with OpenSSL, and with each of the faster backends that this machine has, by the program that has its loop. */
async function suiteRows(
  [name, cipher, keyBytes]: (typeof SUITES)[number],
  evp: string,
  faster: Faster,
): Promise<BenchRow[]> {
  const suite = { [name]: { key: '07'.repeat(keyBytes) } }
  const both = [
    ends('openssl', evp, suite, cipher),
    ...faster.map(([backend, program]) => ends(backend, program, suite, cipher)),
  ]
  const ns: Record<string, number> = await inTurn(ROUNDS, {
    ...Object.assign({}, ...both.map(({ candidates }) => candidates)),
    node: nodeCrypto(cipher, keyBytes),
  })
  for (const { stop } of both) stop()
  const against = (label: string, value: string, other: string, goal?: string): BenchRow => {
    const [own, reference] = [ns[value], ns[other]] as [number, number]
    return {
      label: `${cipher} ${label}`,
      value: own,
      unit,
      ratio: reference / own,
      ...(goal !== undefined && { goal }),
    }
  }
  const bare = (label: string, value: string): BenchRow => ({
    label: `${cipher} ${label}`,
    value: ns[value] as number,
    unit,
  })
  // With a slower cipher node:crypto's fixed cost weighs less, and so does what is new in a processor.
  const first = name === SUITES[0][0]
  const rows = [
    bare('C loop over EVP, seal', 'openssl seal'),
    against('ssl_encrypt', 'openssl encrypt', 'openssl seal', '≥ 0.85'),
    bare('C loop over EVP, open', 'openssl open'),
    against('ssl_decrypt', 'openssl decrypt', 'openssl open', '≥ 0.85'),
    bare('node:crypto, seal', 'node'),
    against('ssl_encrypt against node:crypto', 'openssl encrypt', 'node', first ? '≥ 8' : undefined),
  ]
  for (const [backend] of faster) {
    rows.push(
      bare(`C loop over ${backend}, seal`, `${backend} seal`),
      against(`ssl_encrypt, ${backend}`, `${backend} encrypt`, `${backend} seal`, '≥ 0.85'),
      against(`C loop over ${backend}, seal, against the C loop over EVP`, `${backend} seal`, 'openssl seal'),
      bare(`C loop over ${backend}, open`, `${backend} open`),
      against(`ssl_decrypt, ${backend}`, `${backend} decrypt`, `${backend} open`, '≥ 0.85'),
      against(
        `ssl_encrypt, ${backend}, against the C loop over EVP`,
        `${backend} encrypt`,
        'openssl seal',
        first && hasVaes() ? '≥ 4' : undefined,
      ),
      against(`ssl_encrypt, ${backend} against openssl`, `${backend} encrypt`, 'openssl encrypt'),
      against(`ssl_decrypt, ${backend} against openssl`, `${backend} decrypt`, 'openssl decrypt'),
    )
  }
  return rows
}

/** Backends that are faster than OpenSSL, and the program that has the loop over each. */
type Faster = (readonly [AeadBackendName, string])[]
const PROGRAMS = { avx512: 'avx512', 'ipsec-mb': 'ipsec_mb' } as const

/** Whether this processor has AES on wide vectors. */
function hasVaes(): boolean {
  return /^flags\s*:.*\bvaes\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))
}

export async function bench(): Promise<BenchResult> {
  // The CPUs of a shared machine differ by more than what is told apart here. The C loops inherit it.
  const cpus = native.affinity()
  native.setAffinity(cpus.slice(-1))
  try {
    return await measured()
  } finally {
    native.setAffinity(cpus)
  }
}

async function measured(): Promise<BenchResult> {
  const evp = nativeProgram('evp')
  const usable = native.aeadBackends().filter(({ obstacle }) => obstacle === undefined)
  const faster: Faster = usable.flatMap(({ name }) =>
    name === 'openssl' ? [] : [[name, nativeProgram(PROGRAMS[name])]],
  )
  const rows: BenchRow[] = []
  for (const suite of SUITES) rows.push(...(await suiteRows(suite, evp, faster)))
  rows.push(...(await chachaRows(evp)))
  const openssl = runLoop(evp, 'aes-128-gcm').openssl
  const backends = usable.map(({ name, version }) => `${name} ${version}`.trim()).join(', ')
  const versions = `OpenSSL ${openssl} in C, ${process.versions.openssl} in Node, ${backends}, ${hasVaes() ? 'VAES' : 'no VAES'}`
  return { name: `aead: ${BYTES} B packets, ${versions}`, rows }
}

await runAlone(import.meta.url, bench)
