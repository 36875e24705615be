/** Whose configurations may run commands and name files outside: by what is remembered of who has set them. */
import { expect, test } from 'vitest'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { Trust, type Trusted } from './trust.ts'

const { config } = checkPipelineConfig(
  JSON.stringify({
    engine_config: {
      pipeline: { source: { uniform_traffic_source: { output: 'a' } }, sink: { traffic_sink: { input: 'a' } } },
      lifecycle_handler: { on_setup: [{ cmd: 'true' }] },
    },
  }),
  components,
)

/** A node on `hub`, which the servers `up` serve as far as it knows. */
const on = (hub: string | undefined, up: readonly string[], trusted: Trusted = 'hub') =>
  new Trust({ files: '/files', trusted, isHubServer: (id) => up.includes(id), hubId: () => hub })
const trusts = (trust: Trust, authorship: ReturnType<Trust['authorship']>) =>
  trust.refusals(config as PipelineConfig, components, authorship).length === 0

test('what a server of the hub has set stays trusted while that is not known, as at a start or away for long, and only on that hub', () => {
  const set = on('hub', ['server']).authorship('server')
  expect(set).toEqual({ author: 'server', authorHub: 'hub' })
  expect(trusts(on('hub', []), set)).toBe(true)
  expect(trusts(on('another', []), set)).toBe(false)
  expect(trusts(on(undefined, []), set)).toBe(false)
  expect(trusts(on('hub', ['server'], 'local'), set)).toBe(false)
})

test('what another member has set is not, nor what nobody has put a name to', () => {
  expect(on('hub', ['server']).authorship('member')).toEqual({ author: 'member' })
  expect(trusts(on('hub', ['server']), { author: 'member' })).toBe(false)
  expect(trusts(on('hub', ['server']), { author: '' })).toBe(false)
  expect(trusts(on('hub', ['server']), on('hub', []).authorship(undefined))).toBe(true)
})

test('a record of an earlier version, which does not say what its author served, is judged by what that serves now', () => {
  expect(trusts(on('hub', ['server']), { author: 'server' })).toBe(true)
  expect(trusts(on('hub', []), { author: 'server' })).toBe(false)
})
