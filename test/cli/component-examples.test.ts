/** What `penstock components KEY --example` prints is a configuration that runs as it is, of every key. */
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import { COMPONENT_KEYS } from '../../src/dataplane/engine/component-keys.ts'
import { simulate } from '../../src/dataplane/engine/simulate.ts'
import { conservation } from '../harness/component.ts'
import { lineOf, penstock, scratch, start } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())
afterEach(() => {
  vi.restoreAllMocks()
})

/** What the command prints. */
async function printed(...args: string[]): Promise<string> {
  let text = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += chunk
    return true
  })
  await (await createProgram()).parseAsync(args, { from: 'user' })
  vi.restoreAllMocks()
  return text
}

describe('components KEY --example', () => {
  it.each([...COMPONENT_KEYS])('of %s passes the check and runs on the virtual clock', async (key) => {
    const { config, problems, warnings } = checkPipelineConfig(
      await printed('components', key, '--example'),
      components,
    )
    expect({ problems, warnings }).toEqual({ problems: [], warnings: [] })
    if (config === null) throw new Error('refused')
    expect(Object.values(config.components).map((component) => component.key)).toContain(key)
    const { end, metrics } = simulate(config, { registry: components, duration: 2e9 })
    expect(end.error).toBeUndefined()
    expect(['STOPPED', 'COMPLETED']).toContain(end.outcome)
    expect(conservation(config, metrics)).toEqual([])
  })

  it('goes into simulate through a pipe, and runs for real', async () => {
    const { stdout } = await penstock(['components', 'reed_solomon_encoder', '--example'])
    const simulated = await penstock(['simulate', '-', '-d', '1s', '--json'], { input: stdout })
    expect(JSON.parse(simulated.stdout).metrics.reed_solomon_encoder.output_packets).toBeGreaterThan(100)
    const unix = await penstock(['components', 'unix_socket', '--example'])
    const file = directory.file('unix.json', unix.stdout.replace('/tmp/', `${directory.path}/`))
    expect(await penstock(['run', file, '-d', '300ms'])).toMatchObject({ code: 0 })
  })

  it('replays the recording that comes with the package', async () => {
    const child = start(['components', 'trace_traffic_source', '--example'])
    expect((await lineOf(child, /"trace_file": "(\/.*)"/))[1]).toMatch(/examples\/trace-replay\.csv$/)
  })

  it('is of one component', async () => {
    expect(await penstock(['components', '--example'])).toMatchObject({ code: 2, stdout: '' })
    const { code, stderr } = await penstock(['components', 'upd', '--example'])
    expect(code).toBe(1)
    expect(stderr).toContain('Did you mean "udp"?')
  })
})
