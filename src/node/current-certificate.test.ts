/** Which files a node takes while it runs, when, and what it tells: the pair is read whole, what cannot be used changes nothing, an end is told in time. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { makeCertificate } from '../link/certificate.ts'
import { CurrentCertificate } from './current-certificate.ts'
import { createLog } from './log.ts'
import type { Tls } from './tls.ts'

const LOOK_MS = 30_000
const DAY_MS = 86_400_000

interface Line {
  readonly level: string
  readonly msg: string
}

let directory: string
let lines: Line[]
let clock: SimulatedClock
let now: number
const at = (name: string) => join(directory, name)
const pair = (key?: KeyObject) => makeCertificate(['localhost'], Date.now(), key)
const write = ({ certificate, key }: ReturnType<typeof pair>) => {
  writeFileSync(at('tls.crt'), certificate)
  writeFileSync(at('tls.key'), key)
}
const printOf = (certificate: string) => new X509Certificate(certificate).fingerprint256
const warnings = () => lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg)

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-test-'))
  lines = []
  clock = new SimulatedClock()
  now = Date.now()
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** `shown`: what a listener was told to show; `makingReady`: what is done when it is to make ready. */
function current({ isOwn = false, makingReady = (_: Tls) => {} } = {}) {
  const shown: string[] = []
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
  const certificate = new CurrentCertificate({
    files: { certificate: at('tls.crt'), key: at('tls.key') },
    log: createLog({ level: 'info', format: 'json', destination }),
    now: () => now,
    isOwn,
    clock,
  })
  certificate.show({
    renew(tls) {
      makingReady(tls)
      return () => void shown.push(tls.fingerprint)
    },
  })
  certificate.watch()
  const looks = (count: number) => {
    for (let i = 0; i < count; i++) clock.increment(LOOK_MS)
  }
  return { certificate, shown, looks }
}

test('a new pair is shown once two looks in a row have found it, and told with its end', () => {
  write(pair())
  const { certificate, shown, looks } = current()
  const next = pair()
  write(next)
  looks(1)
  expect(shown).toEqual([])
  looks(5)
  const fingerprint = printOf(next.certificate)
  expect(shown).toEqual([fingerprint])
  expect(certificate.tls.fingerprint).toBe(fingerprint)
  expect(lines).toMatchObject([
    { level: 'info', msg: 'TLS certificate' },
    {
      level: 'info',
      msg: 'another TLS certificate is in use for new connections',
      fingerprint,
      until: new Date(new X509Certificate(next.certificate).validTo).toISOString(),
    },
  ])
  certificate.unwatch()
  write(pair())
  looks(5)
  expect(shown).toHaveLength(1)
})

test('certificate and key that are replaced one after the other are never mixed, and nothing is told meanwhile', () => {
  write(pair())
  const { shown, looks } = current()
  const next = pair()
  writeFileSync(at('tls.crt'), next.certificate.slice(0, 300))
  looks(1)
  writeFileSync(at('tls.crt'), next.certificate)
  looks(1)
  writeFileSync(at('tls.key'), next.key)
  looks(2)
  expect(shown).toEqual([printOf(next.certificate)])
  expect(warnings()).toEqual([])
})

test('a certificate with the same key, renamed into place', () => {
  const first = pair()
  write(first)
  const { shown, looks } = current()
  const next = pair(createPrivateKey(first.key))
  writeFileSync(at('new.crt'), next.certificate)
  renameSync(at('new.crt'), at('tls.crt'))
  looks(2)
  expect(shown).toEqual([printOf(next.certificate)])
})

test('a directory that a symbolic link is swapped for, as of a secret of Kubernetes', () => {
  const versions = [pair(), pair()]
  for (const [i, { certificate, key }] of versions.entries()) {
    mkdirSync(at(`v${i}`))
    writeFileSync(at(`v${i}/tls.crt`), certificate)
    writeFileSync(at(`v${i}/tls.key`), key)
  }
  symlinkSync('v0', at('data'))
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(`data/${name}`, at(name))
  const { shown, looks } = current()
  symlinkSync('v1', at('data.new'))
  renameSync(at('data.new'), at('data'))
  looks(2)
  expect(shown).toEqual([printOf(versions[1]?.certificate as string)])
})

const other = pair()
const encrypted = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' } as const
const bad: [string, () => void, RegExp][] = [
  ['gone', () => rmSync(at('tls.key')), /cannot read the key .*tls\.key: there is no such file/],
  ['empty', () => writeFileSync(at('tls.crt'), ''), /tls\.crt holds no certificate in PEM form/],
  ['cut off', () => writeFileSync(at('tls.crt'), other.certificate.slice(0, 300)), /tls\.crt holds no certificate/],
  [
    'cut off behind the first',
    () => write({ ...other, certificate: other.certificate + other.certificate.slice(0, 300) }),
    /what .*tls\.crt holds cannot be used: .*bad end line/,
  ],
  ['of another pair', () => writeFileSync(at('tls.key'), other.key), /the key in .*tls\.key does not belong to/],
  [
    'encrypted',
    () => writeFileSync(at('tls.key'), createPrivateKey(other.key).export(encrypted)),
    /the key in .*tls\.key is encrypted/,
  ],
]

test.each(bad)(
  'files that are %s change nothing; told once, or when asked; the next good pair is taken',
  (_, spoil, what) => {
    const first = pair()
    write(first)
    const { certificate, shown, looks } = current()
    spoil()
    looks(200)
    expect(warnings()).toHaveLength(1)
    expect(warnings()[0]).toMatch(what)
    const { until } = certificate.tls
    expect(warnings()[0]).toContain(`; the last certificate stays in use, until ${new Date(until).toISOString()}`)
    certificate.look({ isAsked: true })
    expect(warnings()).toHaveLength(2)
    expect(shown).toEqual([])
    expect(certificate.tls.fingerprint).toBe(printOf(first.certificate))
    write(first)
    looks(2)
    expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'the TLS certificate is the same as before' })
    expect(shown).toEqual([])
    const next = pair()
    write(next)
    looks(2)
    expect(shown).toEqual([printOf(next.certificate)])
    expect(warnings()).toHaveLength(2)
  },
)

test('files that may not be read', () => {
  write(pair())
  const { looks } = current()
  chmodSync(at('tls.key'), 0)
  const isRoot = process.getuid?.() === 0
  // Root may read everything; nothing else of this process runs meanwhile.
  if (isRoot) process.seteuid?.(65_534)
  try {
    looks(3)
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
  expect(warnings()).toHaveLength(1)
  expect(warnings()[0]).toContain('this user may not read it')
})

test('when asked, a pair is taken at once; that it is the same is told too', () => {
  write(pair())
  const { certificate, shown } = current()
  certificate.look({ isAsked: true })
  expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'the TLS certificate is the same as before' })
  const next = pair()
  write(next)
  certificate.look({ isAsked: true })
  expect(shown).toEqual([printOf(next.certificate)])
})

test('what a listener cannot use is shown by none, and tried again after an hour', () => {
  write(pair())
  let tries = 0
  const makingReady = () => {
    if (++tries < 3) throw new Error('no descriptor is left')
  }
  const { certificate, shown, looks } = current({ makingReady })
  const second: string[] = []
  certificate.show({ renew: (tls) => () => void second.push(tls.fingerprint) })
  const next = pair()
  write(next)
  looks(4)
  expect(tries).toBe(1)
  looks(120)
  expect([tries, shown, second]).toEqual([2, [], []])
  expect(warnings()).toHaveLength(1)
  looks(120)
  expect([tries, shown, second]).toEqual([3, [printOf(next.certificate)], [printOf(next.certificate)]])
})

test('files that change while a listener reads them are not shown', () => {
  write(pair())
  const last = pair()
  let tries = 0
  const { certificate, shown, looks } = current({ makingReady: () => ++tries === 1 && write(last) })
  write(pair())
  certificate.look({ isAsked: true })
  expect(shown).toEqual([])
  expect(warnings()[0]).toMatch(/tls\.crt or .*tls\.key has changed while it was read/)
  looks(2)
  expect(shown).toEqual([printOf(last.certificate)])
})

/** What is told in so many days from now on, without file and date. */
const told = (days: number) => {
  const before = warnings().length
  for (let i = 0; i < days * 24; i++) {
    now += DAY_MS / 24
    clock.increment(DAY_MS / 24)
  }
  return warnings()
    .slice(before)
    .map((line) => line.replace(/^the certificate in \S+ (.*) on \S+: /, '$1: '))
}

test('its end is told from 14 days before on, once a day, and once it is over; another certificate ends that', () => {
  write(pair())
  const { certificate, looks } = current()
  now = certificate.tls.until - 15 * DAY_MS
  expect(told(1 - 1 / 24)).toEqual([])
  expect(told(3)).toEqual(Array(3).fill('expires: the node takes a renewed one by itself'))
  now = certificate.tls.until - DAY_MS / 2
  expect(told(2).at(-1)).toBe('expired: the node takes a renewed one by itself')
  const next = makeCertificate(['localhost'], now)
  write(next)
  looks(2)
  expect(told(3)).toEqual([])
})

test('one that is valid for a day is told of in its last quarter, and before its time', () => {
  const end = new Date(now)
  end.setUTCFullYear(end.getUTCFullYear() + 10)
  const until = Math.floor(end.getTime() / 1000) * 1000
  write(makeCertificate(['localhost'], now, undefined, until - DAY_MS))
  const { certificate } = current()
  const tells = (time: number) => {
    const before = warnings().length
    now = time
    certificate.look()
    certificate.look()
    return warnings().slice(before)
  }
  expect(certificate.tls).toMatchObject({ from: until - DAY_MS, until })
  expect(warnings()).toEqual([expect.stringMatching(/ is not valid before /)])
  expect(tells(until - DAY_MS)).toEqual([])
  expect(tells(until - DAY_MS / 4 - 1)).toEqual([])
  expect(tells(until - DAY_MS / 4)).toEqual([expect.stringMatching(/ expires on /)])
})

test('what the node has made itself is not looked at; its end is told', () => {
  write(pair())
  const { certificate, shown, looks } = current({ isOwn: true })
  expect(certificate.isRenewable).toBe(false)
  write(pair())
  looks(3)
  expect(shown).toEqual([])
  now = certificate.tls.until - DAY_MS
  expect(told(1 / 24)).toEqual(['expires: the next start of the node renews it'])
})
