/** The dashboard: the files of its build, read once, the same for every caller and every node. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { type HttpAnswer, isAmong } from './http-response.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Content codings, the one to choose first, with the ending of the files that have them (RFC 9110, section 8.4.1; RFC 7932). */
const CODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

const GUARDS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
}

/** Reads the build in `directory`; undefined when there is none. Throws when it cannot be read. */
export function readDashboard(directory: string): Dashboard | undefined {
  if (!existsSync(join(directory, 'index.html'))) return undefined
  const page = readFile(join(directory, 'index.html'), false)
  const assets = join(directory, 'assets')
  const names = existsSync(assets) ? readdirSync(assets).filter((name) => extname(name) in TYPES) : []
  return new Dashboard(
    new Map([['/', page], ...names.map((name) => [`/assets/${name}`, readFile(join(assets, name), true)] as const)]),
  )
}

export class Dashboard {
  readonly #files: ReadonlyMap<string, DashboardFile>

  constructor(files: ReadonlyMap<string, DashboardFile>) {
    this.#files = files
  }

  /** The file at a raw path; undefined: none of the dashboard. */
  find(path: string): DashboardFile | undefined {
    return this.#files.get(path)
  }
}

function readFile(path: string, isImmutable: boolean): DashboardFile {
  const plain = readFileSync(path)
  const coded = CODINGS.filter(([, ending]) => existsSync(path + ending)).map(
    ([coding, ending]) => [coding, readFileSync(path + ending)] as const,
  )
  return new DashboardFile(TYPES[extname(path)] as string, isImmutable, plain, new Map(coded))
}

/** One file, with its compressed forms as the build made them. */
class DashboardFile {
  readonly #type: string
  /** Its name has the hash of its content. */
  readonly #isImmutable: boolean
  readonly #plain: Uint8Array
  readonly #coded: ReadonlyMap<string, Uint8Array>
  readonly #hash: string

  constructor(type: string, isImmutable: boolean, plain: Uint8Array, coded: ReadonlyMap<string, Uint8Array>) {
    this.#type = type
    this.#isImmutable = isImmutable
    this.#plain = plain
    this.#coded = coded
    this.#hash = createHash('sha256').update(plain).digest('base64url')
  }

  /**
   * The answer to GET and HEAD; `header` reads those of the request, empty where there is none. A caller who lacks a token is given the page
   * all the same, as 401: it is the page that asks for one.
   */
  answer(header: (name: string) => string, isAllowed: boolean): HttpAnswer {
    const accepted = header('accept-encoding')
    const [coding, body] = [...this.#coded].find(([name]) => accepts(accepted, name)) ?? ['', this.#plain]
    const headers = {
      ...GUARDS,
      'content-type': this.#type,
      ...(coding === '' ? {} : { 'content-encoding': coding }),
    }
    if (!this.#isImmutable && !isAllowed) {
      const asking = { ...headers, 'cache-control': 'no-store', 'www-authenticate': 'Bearer' }
      return { status: '401 Unauthorized', headers: asking, body }
    }
    const etag = `"${this.#hash}${coding === '' ? '' : `-${coding}`}"`
    const kept = {
      ...headers,
      etag,
      'cache-control': this.#isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    }
    if (isAmong(etag, header('if-none-match'))) return { status: '304 Not Modified', headers: kept }
    return { status: '200 OK', headers: kept, body }
  }
}

/** Whether Accept-Encoding takes a coding (RFC 9110, section 12.5.3). */
function accepts(header: string, coding: string): boolean {
  const weights = new Map(
    header.split(',').map((item) => {
      const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
      const weight = parameters.find((parameter) => parameter.startsWith('q='))
      return [name, weight === undefined ? 1 : Number(weight.slice(2))]
    }),
  )
  return (weights.get(coding) ?? weights.get('*') ?? 0) > 0
}
