/** Files that configurations name: which are outside a directory, and where names lead. */
import { Type } from '@sinclair/typebox'
import { expect, test } from 'vitest'
import { type AnyComponent, defineComponent, type Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { filesOutside, pathFaults, withFilesIn } from './files.ts'
import { FileName, SocketName, Text } from './schema.ts'

const reader: AnyComponent = defineComponent({
  key: 'reader',
  family: 'sources',
  summary: 'Names files at every depth.',
  config: Type.Object({
    file: FileName('A file.'),
    text: Text('No file.'),
    parts: Type.Array(Type.Object({ file: Type.Optional(FileName('A file.')) })),
  }),
  metrics: {},
  create: () => ({}),
})
const registry = new Map([[reader.key, reader]])

function configOf(name: string, file: string, ...parts: string[]): PipelineConfig {
  const config = { file, text: '/etc/passwd', parts: [{}, ...parts.map((part) => ({ file: part }))] }
  return { version: 1, components: { [name]: { key: 'reader', config } }, logFilters: [], variables: [] }
}

test.each([
  ['a.pcap', false],
  ['below/a.pcap', false],
  ['below/../a.pcap', false],
  ['..a', false],
  ['/data/files/a.pcap', false],
  ['/data/elsewhere/../files/a.pcap', false],
  ['..', true],
  ['../a.pcap', true],
  ['below/../../files-too/a.pcap', true],
  ['/data/files-too/a.pcap', true],
  ['/data/files', true],
  ['/etc/passwd', true],
  ['.', true],
])('%j in /data/files: outside %s', (name, isOutside) => {
  expect(filesOutside(configOf('it', name), registry, '/data/files').length > 0).toBe(isOutside)
})

test('fields at every depth are told by their pointers', () => {
  const config = configOf('a/b', '/x', 'inside', '../y')
  expect(filesOutside(config, registry, '/data/files')).toEqual([
    { pointer: '/engine_config/pipeline/a~1b/reader/file', name: '/x' },
    { pointer: '/engine_config/pipeline/a~1b/reader/parts/2/file', name: '../y' },
  ])
})

test('names become absolute paths, all else stays as it is, the configuration given too', () => {
  const config = configOf('__proto__', 'a.pcap', '../y', '/z')
  const before = JSON.stringify(config)
  const { components, ...others } = withFilesIn(config, registry, '/data/files')
  expect(others).toEqual({ version: 1, logFilters: [], variables: [] })
  expect(Object.entries(components)).toEqual([
    [
      '__proto__',
      {
        key: 'reader',
        config: {
          file: '/data/files/a.pcap',
          text: '/etc/passwd',
          parts: [{}, { file: '/data/y' }, { file: '/z' }],
        },
      },
    ],
  ])
  expect(JSON.stringify(config)).toBe(before)
})

test('a socket is a file unless its name is abstract, and what its rules say of the whole path is told', () => {
  const sockets = defineComponent({
    key: 'sockets',
    family: 'endpoints',
    summary: 'Names sockets.',
    config: Type.Object({ one: SocketName('A socket.', 100), other: SocketName('A socket.', 100) }),
    check: ({ one }) => (one.length > 20 ? [{ pointer: '/one', message: `${one} is too long` }] : []),
    metrics: {},
    create: () => ({}),
  })
  const both: Registry = new Map<string, AnyComponent>([...registry, [sockets.key, sockets]])
  const config: PipelineConfig = {
    version: 1,
    components: { it: { key: 'sockets', config: { one: 'x.sock', other: '@x.sock' } } },
    variables: [],
    logFilters: [],
  }
  expect(filesOutside(config, both, '/data/files')).toEqual([])
  const placed = withFilesIn(config, both, '/data/files')
  expect(placed.components.it?.config).toEqual({ one: '/data/files/x.sock', other: '@x.sock' })
  expect(pathFaults(placed, both)).toEqual([])
  expect(pathFaults(withFilesIn(config, both, '/data/of/the/node/files'), both)).toEqual([
    {
      pointer: '/engine_config/pipeline/it/sockets/one',
      message: '/data/of/the/node/files/x.sock is too long',
    },
  ])
  const outside = { ...config, components: { it: { key: 'sockets', config: { one: '/run/x', other: '@/run/x' } } } }
  expect(filesOutside(outside, both, '/data/files').map(({ name }) => name)).toEqual(['/run/x'])
})
