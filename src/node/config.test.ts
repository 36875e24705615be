/** Reading the node's configuration from its four sources. */
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ConfigError, loadConfig } from './config.ts'
import { settings } from './settings.ts'

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
  expect(effective.find(({ key }) => key === 'node.name')?.value).toBe(hostname())
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

test.each([
  ['that is not there', 'http:\n  hostnames: [*.example]\n', 'conf/penstock.yaml:2: http.hostnames: '],
  [
    'that multiplies without end',
    `node:\n  metadata: {a: &a [${'x,'.repeat(20)}], b: &b [${'*a,'.repeat(20)}], c: [${'*b,'.repeat(20)}]}\n`,
    'conf/penstock.yaml:2: node.metadata: ',
  ],
])('an alias %s is a problem of its key, told beside all others', (_what, text, place) => {
  const problems = problemsOf({ file: file(`${text}telemetry: { interval: often }\n`) })
  expect(problems).toHaveLength(2)
  expect(problems[0]).toContain(place)
  expect(problems[0]).toContain('text that begins with * must be in quotes')
  expect(problems[1]).toContain('conf/penstock.yaml:3: telemetry.interval: must be a duration')
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

test('names of hosts are kept as a Host header has them', () => {
  const typed = 'A.Example, Ünï.example, node_1.lan., 192.0.2.1, "[2001:DB8:0::1]", "::1"'
  expect(loadConfig({ file: file(`http: { hostnames: [${typed}] }\n`) }).config['http.hostnames']).toEqual([
    ...['a.example', 'xn--n-nga1b.example', 'node_1.lan', '192.0.2.1', '2001:db8::1', '::1'],
  ])
})

test('listeners on different ports or hosts are taken, and so is the port that the system chooses', () => {
  for (const [http, grpc] of [
    ['127.0.0.1:0', '127.0.0.1:0'],
    ['127.0.0.1:1', '127.0.0.2:1'],
    ['0.0.0.0:1', '[::1]:1'],
    ['none', 'none'],
  ]) {
    expect(problemsOf({ flags: { http, grpc } })).toEqual([])
  }
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

test.each<[string, Parameters<typeof loadConfig>[0]]>([
  ['--authentication-request-timeout', { flags: { 'authentication-request-timeout': '10m' } }],
  ['--authentication-by-request', { flags: { 'authentication-by-request': 'none' } }],
  [
    'PENSTOCK_HUB_SERVER_AUTHENTICATION_BY_REQUEST_TIMEOUT',
    { environment: { PENSTOCK_HUB_SERVER_AUTHENTICATION_BY_REQUEST_TIMEOUT: '10m' } },
  ],
])(
  '%s turns the hub on, as its key in the file does, unless the configuration says that there is none',
  (origin, given) => {
    const { config, effective } = loadConfig(given)
    expect(config.hubServer).toBe(true)
    expect(effective).toContainEqual({ key: 'hubServer', value: true, origin })
    const environment = { ...given?.environment, PENSTOCK_HUB_SERVER: 'false' }
    expect(loadConfig({ ...given, environment }).config.hubServer).toBe(false)
    expect(loadConfig({ ...given, file: file('hubServer: false\n') }).config.hubServer).toBe(false)
  },
)

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
    '--crypto-backend: crypto.backend: must be one of auto, avx512, ipsec-mb, openssl',
  ])
})

test('names the file, whatever it holds', () => {
  expect(loadConfig().file).toBeUndefined()
  expect(loadConfig({ file: file('') }).file).toBe(resolve('conf/penstock.yaml'))
})

test('metadata keeps the types of its values', () => {
  const text =
    'node:\n  metadata:\n    region: eu\n    rack: 4\n    load: 0.5\n    share: 1.0\n    far: .inf\n    serial: 9007199254740993\n    spare: true\n    seal: { bytesValue: AQI= }\n'
  const loaded = loadConfig({ file: file(text) })
  expect(loaded.config['node.metadata']).toEqual({
    region: { stringValue: 'eu' },
    rack: { intValue: 4n },
    load: { doubleValue: 0.5 },
    share: { doubleValue: 1 },
    far: { doubleValue: Number.POSITIVE_INFINITY },
    serial: { intValue: 9_007_199_254_740_993n },
    spare: { boolValue: true },
    seal: { bytesValue: Buffer.from([1, 2]) },
  })
  // As proto3 JSON, for `config check`.
  expect(loaded.effective.find(({ key }) => key === 'node.metadata')?.value).toEqual({
    region: { stringValue: 'eu' },
    rack: { intValue: '4' },
    load: { doubleValue: 0.5 },
    share: { doubleValue: 1 },
    far: { doubleValue: 'Infinity' },
    serial: { intValue: '9007199254740993' },
    spare: { boolValue: true },
    seal: { bytesValue: 'AQI=' },
  })
})

test.each(['QUJDR', 'A', 'A===', '*'])('of metadata, bytes written %s are none', (text) => {
  const flags = { 'node-metadata': `{seal: {bytesValue: "${text}"}}` }
  expect(problemsOf({ flags })).toEqual([
    '--node-metadata: node.metadata: seal must be text, a number, true or false, or {bytesValue: BASE64}',
  ])
})

test('metadata in a flag keeps them too, and any key', () => {
  const flags = { 'node-metadata': '{b: -9223372036854775808, f: 1.0, __proto__: 7}' }
  const items = loadConfig({ flags }).config['node.metadata']
  expect(Object.entries(items)).toEqual([
    ['b', { intValue: -(2n ** 63n) }],
    ['f', { doubleValue: 1 }],
    ['__proto__', { intValue: 7n }],
  ])
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

describe('a hub of several servers', () => {
  const own = 'hubServer:\n  keyFile: hub.key\n  address: https://a.example:8769\n  cluster:\n'
  const cluster = (lines: string, before = own) => ({ file: file(`${before}    ${lines}\n`) })
  const natsServers = 'natsServers: [nats://n1.example:4222]'

  test('every setting, paths from the file', () => {
    const text =
      'name: our-hub_2\n    natsServers: [tls://n1.example, tls://n2.example:4223]\n    credentialsFile: hub.creds\n' +
      '    tls: { caFile: ca.crt, certificateFile: a.crt, keyFile: /keys/a.key }\n    replicas: 5'
    expect(
      loadConfig({ file: { name: '/etc/penstock/penstock.yaml', text: `${own}    ${text}\n` } }).config,
    ).toMatchObject({
      'hubServer.cluster.name': 'our-hub_2',
      'hubServer.cluster.natsServers': ['tls://n1.example', 'tls://n2.example:4223'],
      'hubServer.cluster.credentialsFile': '/etc/penstock/hub.creds',
      'hubServer.cluster.tls.caFile': '/etc/penstock/ca.crt',
      'hubServer.cluster.tls.certificateFile': '/etc/penstock/a.crt',
      'hubServer.cluster.tls.keyFile': '/keys/a.key',
      'hubServer.cluster.replicas': 5,
    })
  })

  test('the same by flags and variables', () => {
    const { config } = loadConfig({
      flags: { hub: true, 'hub-key-file': 'k', 'hub-address': 'http://a.example', 'hub-cluster-name': 'h' },
      environment: {
        PENSTOCK_HUB_SERVER_CLUSTER_NATS_SERVERS: 'nats://a:1,nats://b:2',
        PENSTOCK_HUB_SERVER_CLUSTER_REPLICAS: '1',
      },
    })
    expect(config).toMatchObject({
      'hubServer.cluster.natsServers': ['nats://a:1', 'nats://b:2'],
      'hubServer.cluster.replicas': 1,
    })
  })

  test('the password is not among the effective values, nor in what is said of it', () => {
    const servers = 'name: h\n    natsServers: ["nats://hub:geheim@n1.example", "nats://hub:geheim@n2.example:1"]'
    const { effective, config } = loadConfig(cluster(servers))
    expect(config['hubServer.cluster.natsServers'][0]).toContain('geheim')
    expect(JSON.stringify(effective)).not.toContain('geheim')
    expect(JSON.stringify(effective)).toContain('nats://hub:…@n2.example:1')
    expect(problemsOf(cluster('name: h\n    natsServers: ["nats://hub:geheim@/"]')).join()).not.toContain('geheim')
  })

  test.each([
    ['hub:ge@heim', 'nats://hub:…@a:4222'],
    ['hub:ge:heim', 'nats://hub:…@a:4222'],
    ['hub@here:geheim', 'nats://hub@here:…@a:4222'],
  ])('nor is any of the password in %s', (login, shown) => {
    const { effective } = loadConfig(cluster(`name: h\n    natsServers: ["nats://${login}@a:4222"]`))
    const { value } = effective.find(({ key }) => key === 'hubServer.cluster.natsServers') ?? {}
    expect(value).toEqual([shown])
  })

  test.each([
    ['name: a.b', `${natsServers}`, 'must be 1 to 64 letters, digits, - and _'],
    [`name: ${'a'.repeat(65)}`, natsServers, 'must be 1 to 64 letters'],
    ['name: h', 'natsServers: [http://n1.example]', 'number 1: an address of a NATS server is nats://HOST:PORT'],
    ['name: h', 'natsServers: [nats://a:4222, "nats://b:70000"]', 'number 2: an address of a NATS server'],
    ['name: h', 'natsServers: ["nats://a/x"]', 'number 1: an address of a NATS server'],
    ['name: h', 'natsServers: ["nats://u:%zz@a"]', 'number 1: an address of a NATS server'],
    ['name: h', 'natsServers: ["nats://:p@a"]', 'number 1: an address of a NATS server'],
    ['name: h', 'natsServers: ["nats://u:p@a", "nats://b"]', 'the same user and password'],
    ['name: h', 'natsServers: {}', 'must be a list of addresses'],
    [
      'name: h',
      `${natsServers}\n    replicas: 2`,
      'conf/penstock.yaml:7: hubServer.cluster.replicas: must be one of 1, 3, 5',
    ],
    ['replicas: 3', natsServers, 'hubServer.cluster needs hubServer.cluster.name too'],
    ['name: h', 'replicas: 3', 'conf/penstock.yaml:5: hubServer.cluster needs hubServer.cluster.natsServers too'],
    ['name: h', `${natsServers}\n    tls: { keyFile: a }`, 'belong together: give both, or neither'],
    ['name: h', 'natsServers: ["nats://u:p@a"]\n    credentialsFile: a', 'can be only one of them'],
    ['name: h', `${natsServers}\n    server: a`, 'unknown key "hubServer.cluster.server"'],
  ])('%s, %s', (one, two, problem) => {
    const problems = problemsOf(cluster(`${one}\n    ${two}`))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(problem)
  })

  test.each(['cluster:\n', 'cluster: {}\n'])('nothing below %j is no hub of one server', (text) => {
    expect(problemsOf({ file: file(`hubServer:\n  ${text}`) })).toEqual([
      'conf/penstock.yaml:2: hubServer.cluster: has nothing below it: give it name and natsServers',
    ])
  })

  test('that it is no hub', () => {
    const environment = { PENSTOCK_HUB_SERVER: 'false' }
    expect(problemsOf({ ...cluster(`name: h\n    ${natsServers}`), environment })).toEqual([
      expect.stringContaining(': hubServer.cluster needs hubServer too'),
    ])
  })

  test('key file and address', () => {
    const problems = problemsOf({ flags: { 'hub-cluster-name': 'h', 'hub-cluster-nats-servers': 'nats://a' } })
    expect(problems).toEqual([
      expect.stringContaining('--hub-cluster-name: hubServer.cluster needs hubServer.keyFile too'),
      expect.stringContaining('hubServer.cluster needs hubServer.address too'),
    ])
  })
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
    ...['0', '101', '1.5', 'many'].map((runs) => [
      `runLogs: { runs: ${runs} }\n`,
      'conf/penstock.yaml:1: runLogs.runs: must be a whole number from 1 to 100',
    ]),
    ['runLogs: { size: much }\n', 'conf/penstock.yaml:1: runLogs.size: must be a size, as in 512KiB, 4MiB or 65536'],
    ['runLogs: { size: 65536.5 }\n', 'runLogs.size: must be a size'],
    ['runLogs: { size: 63KiB }\n', 'runLogs.size: must be between 64KiB and 1GiB'],
    ['runLogs: { size: 2GiB }\n', 'runLogs.size: must be between 64KiB and 1GiB'],
    ['access: { open: maybe }\n', 'must be true or false'],
    ['log: { level: loud }\n', 'must be one of debug, info'],
    ['http: { tls: { certificate: a } }\n', 'must be none, auto, or'],
    ['node: { metadata: { a: [1] } }\n', 'a must be text'],
    ['node: { metadata: { a: 9223372036854775808 } }\n', 'a: a whole number has 64 bits at most: write'],
    ['node: { metadata: { a: "\\ud800" } }\n', 'node.metadata: /a must be Unicode text without lone surrogates'],
    ['node: { metadata: { "\\udc00": 1 } }\n', 'must be Unicode text without lone surrogates'],
    ['node: { name: "\\U0000d800" }\n', 'node.name: the text must be Unicode text without lone surrogates'],
    ['http: { hostnames: {} }\n', 'must be a list of names'],
    [
      'http: { hostnames: ["x.example:8769"] }\n',
      '"x.example:8769" is no name of a host: write it without scheme, port',
    ],
    ['http: { hostnames: [https://y] }\n', '"https://y" is no name of a host'],
    ['http: { hostnames: [a b] }\n', '"a b" is no name of a host'],
    ['http: { hostnames: ["*.a.example"] }\n', '"*.a.example" is no name of a host'],
    ['http: { hostnames: [ü/b] }\n', '"ü/b" is no name of a host'],
    ['http: { hostnames: [a..b] }\n', '"a..b" is no name of a host'],
    ['http: { address: "a:1" }\ngrpc: { address: "a:1" }\n', 'http.address a:1 and grpc.address a:1 are the same port'],
    ['http: { address: "127.0.0.1:8770" }\n', 'conf/penstock.yaml:1: http.address 127.0.0.1:8770 and grpc.address'],
    [
      'grpc: { address: "0.0.0.0:8769" }\n',
      'are the same port: give each a port of its own, or set one of them to none',
    ],
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

  test.each([
    ['{b: 1, b: 2}', 'Map keys must be unique, at character 8'],
    ['{b: 1', 'Flow map must end with a }, at character 6'],
    ['{b: *c}', 'Unresolved alias'],
    ['b', 'must be a map, as in {region: eu, rack: 4}'],
    ['*', 'must be a map, as in {region: eu, rack: 4}'],
  ])('%j as a flag', (text, problem) => {
    const problems = problemsOf({ flags: { 'node-metadata': text } })
    expect(problems).toEqual([expect.stringContaining('--node-metadata: node.metadata: ')])
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
