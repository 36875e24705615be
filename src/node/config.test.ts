/** Reading the node's configuration from its four sources. */
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ConfigError, loadConfig, settings } from './config.ts'

const file = (text: string) => ({ name: 'conf/penstock.yaml', text })

function problemsOf(sources: Parameters<typeof loadConfig>[0]): readonly string[] {
  try {
    loadConfig(sources)
  } catch (error) {
    return (error as ConfigError).problems
  }
  return []
}

test('defaults hold where nothing is said', () => {
  const { config, effective } = loadConfig()
  expect(config).toMatchObject({
    'http.address': '127.0.0.1:8769',
    'grpc.address': '127.0.0.1:8770',
    'access.open': false,
    hubServer: false,
    'pipelines.trusted': 'local',
    'hubServer.authenticationByRequest.timeout': 300_000,
    'telemetry.interval': 1_000,
    'log.level': 'info',
    'log.format': 'text',
  })
  expect(new Set(effective.map(({ origin }) => origin))).toEqual(new Set(['default']))
  expect(effective.map(({ key }) => key)).toEqual(settings.map(({ key }) => key))
})

test('flags win over variables, variables over the file, the file over defaults', () => {
  const { config, effective } = loadConfig({
    file: file('http:\n  address: 127.0.0.1:1\ngrpc:\n  address: 127.0.0.1:2\ntelemetry: { interval: 500ms }\n'),
    environment: { PENSTOCK_GRPC_ADDRESS: '127.0.0.1:3', PENSTOCK_HTTP_ADDRESS: '127.0.0.1:4', PATH: '/bin' },
    flags: { http: '127.0.0.1:5' },
  })
  expect(config).toMatchObject({
    'http.address': '127.0.0.1:5',
    'grpc.address': '127.0.0.1:3',
    'telemetry.interval': 500,
  })
  const origins = Object.fromEntries(effective.map(({ key, origin }) => [key, origin]))
  expect(origins).toMatchObject({
    'http.address': '--http',
    'grpc.address': 'PENSTOCK_GRPC_ADDRESS',
    'telemetry.interval': 'conf/penstock.yaml:5',
    'log.level': 'default',
  })
})

test('origins are kept as browsers write them', () => {
  const allowed = (sources: Parameters<typeof loadConfig>[0]) => loadConfig(sources).config['http.allowedOrigins']
  expect(allowed({})).toEqual([])
  const text = 'http:\n  allowedOrigins: [HTTPS://A.Example:443, "http://[::1]:5173", https://bücher.example]\n'
  expect(allowed({ file: file(text) })).toEqual([
    'https://a.example',
    'http://[::1]:5173',
    'https://xn--bcher-kva.example',
  ])
  expect(allowed({ flags: { 'http-allowed-origins': 'https://a.example,http://localhost:5173' } })).toEqual([
    'https://a.example',
    'http://localhost:5173',
  ])
  const environment = { PENSTOCK_HTTP_ALLOWED_ORIGINS: '[https://a.example, https://b.example:8443]' }
  expect(allowed({ environment })).toEqual(['https://a.example', 'https://b.example:8443'])
  expect(problemsOf({ flags: { 'http-allowed-origins': '*' } })[0]).toContain('--http-allowed-origins')
})

test('every key has a flag and a variable of its own', () => {
  expect(new Set(settings.map(({ flag }) => flag)).size).toBe(settings.length)
  expect(settings.map(({ variable }) => variable)).toContain('PENSTOCK_HUB_SERVER_AUTHENTICATION_BY_REQUEST_TIMEOUT')
  const environment = { PENSTOCK_HTTP_HOSTNAMES: '[a.example, b.example]', PENSTOCK_ACCESS_OPEN: 'true' }
  expect(loadConfig({ environment }).config).toMatchObject({
    'http.hostnames': ['a.example', 'b.example'],
    'access.open': true,
  })
  expect(loadConfig({ flags: { hub: true, 'node-name': 'true', http: '[::1]:80' } }).config).toMatchObject({
    hubServer: true,
    'node.name': 'true',
    'http.address': '[::1]:80',
  })
})

test('a hub is on when the configuration says so; it takes requests unless that says none', () => {
  const hub = (text: string) => {
    const { config } = loadConfig({ file: file(text) })
    return [config.hubServer, config['hubServer.authenticationByRequest']]
  }
  expect(hub('node: { name: x }\n')).toEqual([false, 'taken'])
  expect(hub('hubServer:\n')).toEqual([true, 'taken'])
  expect(hub('hubServer:\n  authenticationByRequest:\n    timeout: 10s\n')).toEqual([true, 'taken'])
  expect(hub('hubServer:\n  authenticationByRequest: none\n')).toEqual([true, 'none'])
  expect(loadConfig({ flags: { hub: true, 'authentication-by-request': 'none' } }).config).toMatchObject({
    hubServer: true,
    'hubServer.authenticationByRequest': 'none',
  })
  expect(problemsOf({ file: file('hubServer:\n  authenticationByRequest: false\n') })).toEqual([
    'conf/penstock.yaml:2: hubServer.authenticationByRequest: must be one of taken, none',
  ])
})

test('access.loopback asks for a token, which access.open contradicts', () => {
  expect(loadConfig().config['access.loopback']).toBe('open')
  expect(loadConfig({ file: file('access:\n  loopback: token\n') }).config['access.loopback']).toBe('token')
  expect(loadConfig({ environment: { PENSTOCK_ACCESS_LOOPBACK: 'token' } }).config['access.loopback']).toBe('token')
  expect(loadConfig({ flags: { loopback: 'token' } }).config['access.loopback']).toBe('token')
  expect(problemsOf({ flags: { loopback: 'none' } })).toEqual([
    '--loopback: access.loopback: must be one of open, token',
  ])
  expect(problemsOf({ file: file('access:\n  loopback: token\n  open: true\n') })).toEqual([
    'conf/penstock.yaml:3: access.open lets everyone in, and access.loopback: token does not: leave one of them out',
  ])
})

test('crypto.backend is the fastest there is, or the one that is named', () => {
  expect(loadConfig().config['crypto.backend']).toBe('auto')
  expect(loadConfig({ file: file('crypto: { backend: openssl }\n') }).config['crypto.backend']).toBe('openssl')
  expect(loadConfig({ environment: { PENSTOCK_CRYPTO_BACKEND: 'ipsec-mb' } }).config['crypto.backend']).toBe('ipsec-mb')
  expect(loadConfig({ flags: { 'crypto-backend': 'openssl' } }).config['crypto.backend']).toBe('openssl')
  expect(problemsOf({ flags: { 'crypto-backend': 'fast' } })).toEqual([
    '--crypto-backend: crypto.backend: must be one of auto, ipsec-mb, openssl',
  ])
})

test('names the file, whatever it holds', () => {
  expect(loadConfig().file).toBeUndefined()
  expect(loadConfig({ file: file('') }).file).toBe(resolve('conf/penstock.yaml'))
})

test('metadata keeps the types of its values', () => {
  const text =
    'node:\n  metadata:\n    region: eu\n    rack: 4\n    load: 0.5\n    spare: true\n    seal: { bytesValue: AQI= }\n'
  const loaded = loadConfig({ file: file(text) })
  expect(loaded.config['node.metadata']).toEqual({
    region: { stringValue: 'eu' },
    rack: { intValue: 4n },
    load: { doubleValue: 0.5 },
    spare: { boolValue: true },
    seal: { bytesValue: Buffer.from([1, 2]) },
  })
})

test.each([
  ['hubServer:\n', true, 300_000],
  ['hubServer: {}\n', true, 300_000],
  ['hubServer: false\n', false, 300_000],
  ['hubServer:\n  authenticationByRequest:\n    timeout: 1m30s\n', true, 90_000],
  ['log:\n', false, 300_000],
  ['', false, 300_000],
])('%j: hub server %s', (text, hubServer, timeout) => {
  expect(loadConfig({ file: file(text) }).config).toMatchObject({
    hubServer,
    'hubServer.authenticationByRequest.timeout': timeout,
  })
})

test('paths in the file start at the file', () => {
  const { config } = loadConfig({ file: { name: '/etc/penstock/penstock.yaml', text: 'dataDirectory: state\n' } })
  expect(config.dataDirectory).toBe('/etc/penstock/state')
})

test('$schema is for editors', () => {
  expect(loadConfig({ file: file('$schema: ./node.schema.json\nnode:\n  name: a\n') }).config['node.name']).toBe('a')
})

describe('every problem is told with its place', () => {
  test.each([
    ['http:\n  adress: 127.0.0.1:1\n', 'conf/penstock.yaml:2: unknown key "http.adress". Did you mean "http.address"?'],
    ['nodes: 3\n', 'conf/penstock.yaml:1: unknown key "nodes". Did you mean "node"?'],
    ['hubserver:\n', 'conf/penstock.yaml:1: unknown key "hubserver". Did you mean "hubServer"?'],
    ['wholly_unlike: 1\n', 'conf/penstock.yaml:1: unknown key "wholly_unlike".'],
    ['http: 3\n', 'conf/penstock.yaml:1: http: must be a map of keys'],
    ['- a\n', 'conf/penstock.yaml: the configuration must be a map of keys'],
    ['telemetry: { interval: 99ms }\n', 'between 100ms and 1h'],
    ['telemetry: { interval: 1000 }\n', 'must be a duration'],
    ['http: { address: 127.0.0.1:65536 }\n', 'must be host:port'],
    ['access: { open: maybe }\n', 'must be true or false'],
    ['log: { level: loud }\n', 'must be one of debug, info'],
    ['http: { tls: { certificate: a } }\n', 'must be none, auto, or'],
    ['node: { metadata: { a: [1] } }\n', 'a must be text'],
    ['http: { allowedOrigins: {} }\n', 'must be a list of origins'],
    ['http: { allowedOrigins: ["*"] }\n', '* would serve the pages of everybody'],
    ['http: { allowedOrigins: [null] }\n', 'must be a list of origins'],
    ['http: { allowedOrigins: ["null"] }\n', 'null is the origin of every sandboxed page'],
    ['http: { allowedOrigins: [a.example] }\n', '"a.example" is no origin: write scheme, host'],
    ['http: { allowedOrigins: [https://a.example/] }\n', '"https://a.example/" is no origin'],
    ['http: { allowedOrigins: [https://*.example] }\n', '"https://*.example" is no origin'],
    ['http: { allowedOrigins: [https://a.example:70000] }\n', '"https://a.example:70000" is no origin'],
    ['http: { allowedOrigins: [https://me@a.example] }\n', '"https://me@a.example" is no origin'],
    ['http: { allowedOrigins: [ftp://a.example] }\n', '"ftp://a.example" is no origin'],
    ['a: 1\na: 2\n', 'conf/penstock.yaml:2: Map keys must be unique'],
  ])('%j', (text, problem) => {
    const problems = problemsOf({ file: file(text) })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(problem)
  })

  test('all at once', () => {
    const problems = problemsOf({
      file: file('x: 1\nlog: { level: loud }\n'),
      environment: { PENSTOCK_ACCESS_OPEN: 'perhaps' },
      flags: { nonsense: 'x' },
    })
    expect(problems).toHaveLength(4)
  })
})
