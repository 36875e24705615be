/** Host names of a configuration: which addresses they become, and why they have none. */
import { describe, expect, it } from 'vitest'
import { drive } from '../../../test/harness/component.ts'
import { components } from '../components/registry.ts'
import type { Lookup } from './ask-system.ts'
import { checkPipelineConfig } from './check.ts'
import type { PipelineConfig } from './config.ts'
import { HostNames, hasHostNames } from './host-names.ts'

function configOf(pipeline: Record<string, object>): PipelineConfig {
  const json = JSON.stringify({ engine_config: { pipeline } })
  const { config, problems } = checkPipelineConfig(json, components)
  if (!config) throw new Error(problems.map(({ pointer, message }) => `${pointer}: ${message}`).join('\n'))
  return config
}

/** A zone of names, and how often each was asked for. */
function zone(names: Record<string, string[]>): { lookup: Lookup; asked: string[] } {
  const asked: string[] = []
  const lookup: Lookup = async (host) => {
    asked.push(host)
    const answers = names[host]
    if (!answers) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' })
    return answers.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  }
  return { lookup, asked }
}

const ends = { feed: { uniform_traffic_source: { output: 'a' } }, end: { traffic_sink: { input: 'c' } } }

const names = {
  'both.example': ['2001:db8::1', '2001:db8::2', '192.0.2.1', '192.0.2.2'],
  'four.example': ['192.0.2.4'],
  'six.example': ['2001:db8::6'],
}

async function udp(fields: Record<string, string>): Promise<Record<string, unknown>> {
  const { lookup } = zone(names)
  const config = configOf({ it: { udp: { output: 'a', ...fields } }, end: { traffic_sink: { input: 'a' } } })
  const resolved = await new HostNames(lookup).resolve(config, components, new Map())
  return resolved.config.components.it?.config as Record<string, unknown>
}

describe('the address of a host name', () => {
  it.each([
    [{ remote_address: 'both.example:5' }, { remote_address: '[2001:db8::1]:5' }],
    [
      { remote_address: 'both.example:5', local_address: '0.0.0.0:7' },
      { remote_address: '192.0.2.1:5', local_address: '0.0.0.0:7' },
    ],
    [
      { remote_address: '192.0.2.9:5', local_address: 'both.example:7' },
      { remote_address: '192.0.2.9:5', local_address: '192.0.2.1:7' },
    ],
    [
      { local_address: 'both.example:7', remote_address: 'four.example:5' },
      { local_address: '192.0.2.1:7', remote_address: '192.0.2.4:5' },
    ],
    [
      { local_address: 'both.example:7', multicast_group: '239.0.0.1' },
      { local_address: '192.0.2.1:7', multicast_group: '239.0.0.1' },
    ],
  ])('%j: the first that fits the other address of the socket', async (given, resolved) => {
    expect(await udp(given)).toMatchObject(resolved)
  })

  it('is refused when none fits, with both and what to do', async () => {
    const fields = { remote_address: 'six.example:5', local_address: '127.0.0.1:7' }
    await expect(udp(fields)).rejects.toThrow(
      'component "it" (udp): no address of remote_address: six.example fits: with [2001:db8::6]:5: remote_address is IPv6, ' +
        'but local_address is IPv4: both must be of one family; write an address that does',
    )
  })

  it('is asked for once in a run, and told for each field', async () => {
    const { lookup, asked } = zone(names)
    const config = configOf({
      near: { peer_writer: { input: 'a', output: 'b', remote_address: 'four.example:1' } },
      far: { peer_writer: { input: 'b', output: 'c', remote_address: 'four.example:2' } },
      ...ends,
    })
    expect(hasHostNames(config, components)).toBe(true)
    const hostNames = new HostNames(lookup)
    const known = new Map()
    const { hosts } = await hostNames.resolve(config, components, known)
    await hostNames.resolve(config, components, known)
    expect(asked).toEqual(['four.example'])
    expect(hosts).toEqual([
      { component: 'near', field: 'remote_address', host: 'four.example', address: '192.0.2.4:1' },
      { component: 'far', field: 'remote_address', host: 'four.example', address: '192.0.2.4:2' },
    ])
  })

  it('that does not exist is refused with its component, the cause and what to do', async () => {
    await expect(udp({ remote_address: 'none.example:5' })).rejects.toThrow(
      'component "it" (udp): remote_address: none.example has no address: no host of that name is known; correct it, or write its address (ENOTFOUND)',
    )
  })

  it('that nobody gives in time is waited for no longer', async () => {
    const silent = new HostNames(() => new Promise(() => {}), 20)
    const config = configOf({ it: { udp: { output: 'c', remote_address: 'slow.example:1' } }, end: ends.end })
    await expect(silent.resolve(config, components, new Map())).rejects.toThrow('no answer within 0.02 s')
  })
})

describe('host names', () => {
  it.each([
    [{ udp: { input: 'a', remote_address: 'four.example:0' } }, 'a port other than 0'],
    [{ udp: { input: 'a', remote_address: 'four.example:1', lock_to_first_peer: true } }, 'leave one of them out'],
    [{ udp: { input: 'a', remote_address: 'four.example' } }, 'must be an address and port'],
    [{ udp_local: { output: 'a', address: 'four_teen.example:1' } }, 'must be an address and port'],
    [{ tcp: { output: 'a', remote_address: 'four.example:0' } }, 'a port other than 0'],
    [{ peer_writer: { input: 'a', output: 'b', remote_address: 'four.example:0' } }, 'a port other than 0'],
  ])('%j is refused', (component, message) => {
    expect(() => drive({ it: component })).toThrow(message)
  })

  it('are refused by a simulation, with what to do', () => {
    expect(() => drive({ it: { udp: { input: 'a', remote_address: 'localhost:5' } } })).toThrow(
      'component "it" (udp): remote_address: localhost is a host name, which a simulation does not look up: write an address',
    )
  })
})
