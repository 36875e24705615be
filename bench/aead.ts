/**
 * ssl_encrypt and ssl_decrypt, chacha20_encrypt and chacha20_decrypt, on packets of 1,200 bytes against a C loop over OpenSSL's EVP and
 * against node:crypto packet by packet; ChaCha on each of its kernels too.
 */
import { spawnSync } from 'node:child_process'
import { createCipheriv } from 'node:crypto'
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

interface Evp {
  sealNs: number
  openNs: number
  openssl: string
}

/** The C loop over OpenSSL, both ways. */
function runEvp(program: string, cipher: string): Evp {
  const { stdout } = spawnSync(program, [BYTES, MILLISECONDS * 2, cipher].map(String), { encoding: 'utf8' })
  return JSON.parse(stdout)
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
  let latest = runEvp(program, 'chacha20')
  const ns: Record<string, number> = await inTurn(ROUNDS, {
    seal: () => {
      latest = runEvp(program, 'chacha20')
      return latest.sealNs
    },
    encrypt: encrypt.measure,
    open: () => latest.openNs,
    decrypt: decrypt.measure,
    ...Object.fromEntries(others.map((kernel) => [kernel, withKernel(kernel)])),
  })
  encrypt.stop()
  decrypt.stop()
  const unit = 'ns per packet'
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

export async function bench(): Promise<BenchResult> {
  const program = nativeProgram('evp')
  const rows: BenchRow[] = []
  let version = ''
  for (const [name, cipher, keyBytes] of SUITES) {
    const evp = () => runEvp(program, cipher)
    const suite = { [name]: { key: '07'.repeat(keyBytes) } }
    const encrypt = sealing(suite)
    const decrypt = opening(suite)
    let latest = evp()
    version = latest.openssl
    const ns = await inTurn(ROUNDS, {
      seal: () => {
        latest = evp()
        return latest.sealNs
      },
      encrypt: encrypt.measure,
      open: () => latest.openNs,
      decrypt: decrypt.measure,
      node: nodeCrypto(cipher, keyBytes),
    })
    encrypt.stop()
    decrypt.stop()
    const unit = 'ns per packet'
    // With a slower cipher node:crypto's fixed cost weighs less.
    const first = name === SUITES[0][0]
    rows.push(
      { label: `${cipher} C loop over EVP, seal`, value: ns.seal, unit },
      { label: `${cipher} ssl_encrypt`, value: ns.encrypt, unit, ratio: ns.seal / ns.encrypt, goal: '≥ 0.9' },
      { label: `${cipher} C loop over EVP, open`, value: ns.open, unit },
      { label: `${cipher} ssl_decrypt`, value: ns.decrypt, unit, ratio: ns.open / ns.decrypt },
      { label: `${cipher} node:crypto, seal`, value: ns.node, unit },
      {
        label: `${cipher} ssl_encrypt against node:crypto`,
        value: ns.encrypt,
        unit,
        ratio: ns.node / ns.encrypt,
        ...(first && { goal: '≥ 8' }),
      },
    )
  }
  rows.push(...(await chachaRows(program)))
  const openssl = `OpenSSL ${version} in C, ${process.versions.openssl} in Node`
  return { name: `aead: ${BYTES} B packets, ${openssl}`, rows }
}

await runAlone(import.meta.url, bench)
