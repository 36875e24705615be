/** Commands that need no node: validate, simulate, run, components, doctor, config check, completion, version. */
import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/api/package-root.ts'
import { COMPONENT_KEYS } from '../../src/dataplane/components/keys.ts'
import { lossy, penstock, scratch } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())
const good = directory.file('good.json', lossy)

describe('usage', () => {
  it.each([
    [['nope']],
    [['validate']],
    [['simulate', good]],
    [['simulate', good, '--duration', '5']],
    [['simulate', good, '--duration', '1s', '--seed', 'x']],
    [['run', good, '--frobnicate']],
    [['components', '-o', 'xml']],
    [['pipelines', 'create', 'a', good, '--restart-policy', 'sometimes']],
    [['pipelines', 'list', '--url', 'nowhere']],
    [['pipelines']],
    [[]],
  ])('%j exits 2 and says why on stderr', async (args) => {
    const { code, stdout, stderr } = await penstock(args)
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).not.toBe('')
  })

  it('shows help on request with exit code 0', async () => {
    const { code, stdout } = await penstock(['pipelines', '--help'])
    expect(code).toBe(0)
    expect(stdout).toContain('telemetry')
  })
})

describe('validate', () => {
  it('accepts a good configuration, from a file and from standard input', async () => {
    expect(await penstock(['validate', good])).toMatchObject({ code: 0, stderr: '' })
    const { code, stdout } = await penstock(['validate', '-', '-o', 'json'], { input: JSON.stringify(lossy) })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ valid: true, problems: [] })
  })

  it('lists every problem with its pointer', async () => {
    const bad = structuredClone(lossy) as Record<string, unknown>
    Object.assign(bad, { versoin: 1 })
    const pipeline = (bad.engine_config as Record<string, Record<string, Record<string, object>>>).pipeline
    pipeline.loss.uniform_loss = { input: 'sent', output: 'kept', loss_prob: 5 }
    pipeline.tap = { traffic_snk: {} }
    const file = directory.file('bad.json', bad)
    const { code, stdout, stderr } = await penstock(['validate', file])
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toContain('3 problems')
    expect(stderr).toContain('/versoin: unknown field')
    expect(stderr).toContain('/engine_config/pipeline/loss/uniform_loss/loss_prob: 5 is above')
    expect(stderr).toContain('Did you mean "traffic_sink"?')
    const json = await penstock(['validate', file, '-o', 'json'])
    expect(json.code).toBe(1)
    expect(JSON.parse(json.stdout).problems).toHaveLength(3)
  })

  it('says which file is missing', async () => {
    const { code, stderr } = await penstock(['validate', '/nonexistent.json'])
    expect(code).toBe(1)
    expect(stderr).toBe('penstock: no such file: /nonexistent.json\n')
  })

  it.each(['udp-fec', 'udp-forward', 'loss-delay', 'generator'])('accepts the example %s', async (name) => {
    const { code, stderr } = await penstock(['validate', join(packageRoot(), 'examples', `${name}.json`)])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })
})

describe('simulate', () => {
  const simulated = async (...args: string[]) => {
    const { code, stdout, stderr } = await penstock(['simulate', good, '-d', '10s', '-o', 'json', ...args])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  it('gives the same output for the same seed, another for another', async () => {
    const [first, second, other] = [
      await simulated('--seed', '3'),
      await simulated('--seed', '3'),
      await simulated('--seed', '4'),
    ]
    expect(second).toBe(first)
    const drops = (json: string): number => JSON.parse(json).metrics.loss.emulated_loss
    expect(drops(first)).toBeGreaterThan(800)
    expect(drops(first)).toBeLessThan(1200)
    expect(JSON.parse(other).metrics).not.toEqual(JSON.parse(first).metrics)
  })

  it('prints a table that keeps to the width asked for', async () => {
    const { code, stdout } = await penstock(['simulate', good, '-d', '1s'], { env: { COLUMNS: '80' } })
    expect(code).toBe(0)
    expect(stdout).toContain('emulated_loss')
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(stdout).not.toContain('\x1b')
  })

  it('refuses a bad configuration', async () => {
    const { code, stderr } = await penstock(['simulate', '-', '-d', '1s'], { input: '{' })
    expect(code).toBe(1)
    expect(stderr).toContain('malformed JSON')
  })
})

describe('run', () => {
  it('runs for the duration and sums up', async () => {
    const { code, stdout } = await penstock(['run', good, '--duration', '300ms', '-o', 'json'])
    expect(code).toBe(0)
    const { outcome, metrics } = JSON.parse(stdout)
    expect(outcome).toBe('STOPPED')
    expect(metrics.sink.input_packets).toBeGreaterThan(0)
    expect(metrics.sink.input_packets + metrics.loss.emulated_loss).toBe(metrics.source.output_packets)
  })

  it('stops cleanly at SIGINT, after lines of live rates', async () => {
    const { code, signal, stdout } = await penstock(['run', good], {
      onStart: (child) => child.stdout!.once('data', () => child.kill('SIGINT')),
    })
    expect({ code, signal }).toEqual({ code: 0, signal: null })
    expect(stdout).toMatch(/^\d+ s {2}entered .*\/s/)
    expect(stdout).toContain('stopped after')
  })

  it('ends by itself when its sources are done, or says why it could not start', async () => {
    const taken = createSocket('udp4').bind(0, '127.0.0.1')
    await once(taken, 'listening')
    const config = {
      engine_config: {
        pipeline: {
          in: { udp_local: { address: `127.0.0.1:${taken.address().port}`, output: 'x' } },
          sink: { traffic_sink: { input: 'x', mtu: 1500 } },
        },
      },
    }
    const { code, stdout, stderr } = await penstock(['run', '-', '-d', '5s'], { input: JSON.stringify(config) })
    taken.close()
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/did not start: component "in" \(udp_local\): .*address already in use/i)
  })

  it('refuses a CPU thread that does not exist', async () => {
    const { code, stderr } = await penstock(['run', good, '--cpu', '1000', '-d', '1s'])
    expect(code).toBe(1)
    expect(stderr).toContain('CPU thread 1000 does not exist')
  })
})

describe('components', () => {
  it('lists every key', async () => {
    const { code, stdout } = await penstock(['components', '-o', 'json'])
    expect(code).toBe(0)
    const listed = JSON.parse(stdout).map(({ key }: { key: string }) => key)
    expect(listed).toEqual([...COMPONENT_KEYS].sort())
  })

  it('shows fields, units, ranges, defaults, live fields and metrics of one', async () => {
    const { code, stdout } = await penstock(['components', 'uniform_loss'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/loss_prob +double +probability +0 to 1 +required +yes/)
    expect(stdout).toMatch(/emulated_loss +counter +packets/)
  })

  it('suggests the nearest key', async () => {
    const { code, stderr } = await penstock(['components', 'uniform_los'])
    expect(code).toBe(1)
    expect(stderr).toContain('Did you mean "uniform_loss"?')
  })
})

describe('doctor, config, completion, version', () => {
  it('grades what this machine can do', async () => {
    const { code, stdout } = await penstock(['doctor', '-o', 'json'])
    const findings: { check: string; grade: string; advice?: string }[] = JSON.parse(stdout)
    expect(findings.map(({ check }) => check)).toEqual(
      expect.arrayContaining(['kernel', 'addon', 'udp', 'tun', 'cpus', 'buffers', 'simd']),
    )
    for (const { grade, advice } of findings) if (grade !== 'ok') expect(advice).toBeTruthy()
    expect(code).toBe(findings.some(({ grade }) => grade === 'fail') ? 1 : 0)
  })

  it('shows where every setting of a node comes from', async () => {
    const file = directory.file('penstock.yaml', 'http:\n  address: 127.0.0.1:1234\ntelemetry:\n  interval: 500ms\n')
    const args = ['config', 'check', '-c', file, '--grpc', 'none', '-o', 'json']
    const { code, stdout } = await penstock(args, { env: { PENSTOCK_LOG_LEVEL: 'error' } })
    expect(code).toBe(0)
    const settings = new Map(JSON.parse(stdout).map((entry: { key: string }) => [entry.key, entry]))
    expect(settings.get('http.address')).toMatchObject({ value: '127.0.0.1:1234', origin: `${file}:2` })
    expect(settings.get('telemetry.interval')).toMatchObject({ value: '500ms', origin: `${file}:4` })
    expect(settings.get('grpc.address')).toMatchObject({ value: 'none', origin: '--grpc' })
    expect(settings.get('log.level')).toMatchObject({ value: 'error', origin: 'PENSTOCK_LOG_LEVEL' })
    expect(settings.get('http.tls')).toMatchObject({ origin: 'default' })
    const bad = await penstock(['config', 'check', '-c', directory.file('bad.yaml', 'htp: 1\n')])
    expect(bad.code).toBe(1)
    expect(bad.stderr).toContain('unknown key htp')
  })

  it('completes commands, options and component keys in bash', async () => {
    const { stdout } = await penstock(['completion', 'bash'])
    const file = directory.file('completion.bash', stdout)
    const complete = (...words: string[]): string[] => {
      const quoted = words.map((word) => `'${word}'`).join(' ')
      const script = `source ${file}; COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _penstock; printf '%s\\n' "\${COMPREPLY[@]}"`
      return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
    }
    expect(complete('penstock', 'pip')).toEqual(['pipelines'])
    expect(complete('penstock', 'pipelines', 'sta')).toEqual(['start'])
    expect(complete('penstock', 'pipelines', 'start', 'x', '--fo')).toEqual(['--follow'])
    expect(complete('penstock', 'components', 'reed_solomon_d')).toEqual(['reed_solomon_decoder'])
    expect(complete('penstock', 'status', '-o', 'j')).toEqual(['json'])
  })

  it('prints its version', async () => {
    const { stdout } = await penstock(['version', '-o', 'json'])
    expect(JSON.parse(stdout).penstock).toMatch(/^\d+\.\d+\.\d+$/)
    expect((await penstock(['--version'])).stdout.trim()).toBe(JSON.parse(stdout).penstock)
  })
})
