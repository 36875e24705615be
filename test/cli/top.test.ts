/** `penstock top`: the runs of a node in a terminal, as one table, and as lines of JSON. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { lossy, penstock, scratch, start, startNode } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'

const directory = scratch()
const size = directory.file('size', '90x24')
let node: ChildProcess
let url: string

const call = (...args: string[]) => penstock(args, { env: { PENSTOCK_URL: url } })
const terminal = (...args: string[]) =>
  new PseudoTerminal(['top', ...args], { PENSTOCK_URL: url, TERMINAL_SIZE: '100x30', TERMINAL_SIZE_FILE: size })

interface TopRun {
  name: string
  enteredPerSecond: number
  finishedPerSecond: number
  droppedPerSecond: number
  drops: { component: string; metric: string; perSecond: number; total: number }[]
}

/** Of a screen, the names in the order of the rows. */
const order = /PIPELINE[\s\S]*?\n(\w+) +running[^\n]*\n(\w+) +running/

async function done(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}

beforeAll(async () => {
  const started = await startNode(`${directory.path}/data`, '--node-name', 'shed', '--hub')
  node = started.node
  url = started.url
  const slow = structuredClone(lossy)
  slow.engine_config.pipeline.source.uniform_traffic_source.interval = 10
  for (const [name, config] of Object.entries({ slow, fast: lossy })) {
    expect((await call('pipelines', 'create', name, directory.file(`${name}.json`, config))).code).toBe(0)
    expect((await call('pipelines', 'start', name)).code).toBe(0)
  }
}, 60_000)
afterAll(async () => {
  await done(node)
  directory.dispose()
})

describe('top in a terminal', () => {
  it('shows the runs and what they lose, is sorted by keys, and gives the terminal back at q', async () => {
    const top = terminal('--sort', 'name', '-i', '100ms')
    expect((await top.see(order)).slice(1)).toEqual(['fast', 'slow'])
    await top.see(/Lost, by reason[\s\S]*fast +loss +emulated_loss +emulated loss +[\d.,]+( k)? +[\d,]+/)
    // From the first column backwards to the last, and on to the first again.
    top.type(KEYS.left)
    await top.see(/HELD▼/)
    top.type(KEYS.right)
    await top.see(/PIPELINE▼/)
    top.type('r')
    await top.see(/PIPELINE▲/)
    expect((await top.see(order)).slice(1)).toEqual(['slow', 'fast'])
    top.type('q')
    expect(await top.code()).toBe(0)
    expect(top.raw.startsWith('\x1b[?1049h\x1b[?25l')).toBe(true)
    expect(top.raw.endsWith('\x1b[?25h\x1b[?1049l')).toBe(true)
  })

  it('sorts by numbers from the greatest down', async () => {
    const top = terminal('--sort', 'in', '-i', '100ms')
    await top.see(/fast +running[^\n]* \d{3,} /)
    expect((await top.see(order)).slice(1)).toEqual(['fast', 'slow'])
    top.type('r')
    await top.see(/IN\/S▲/)
    expect((await top.see(order)).slice(1)).toEqual(['slow', 'fast'])
    top.type('q')
    expect(await top.code()).toBe(0)
  })

  it('is drawn again in the size that the terminal gets', async () => {
    const top = terminal('-i', '1h')
    await top.see(order)
    writeFileSync(size, '40x5')
    top.process.kill('SIGUSR1')
    const drawn = () => top.raw.slice(top.raw.lastIndexOf('\x1b[H')).split('\r\n')
    await until(() => drawn().length === 5)
    expect(drawn()[3]).toContain('…')
    // Both runs, and what they lose.
    expect(drawn()[4]).toMatch(/^… \d+ more lines/)
    top.type('q')
    expect(await top.code()).toBe(0)
  })

  it.each([
    ['Ctrl-C', 'top -i 100ms', 'running', 0],
    ['SIGTERM', 'top -i 100ms', 'running', 0],
    ['SIGQUIT', 'top -i 100ms', 'running', 128 + constants.signals.SIGQUIT],
    ['SIGQUIT', 'authentication-requests', 'q quits', 128 + constants.signals.SIGQUIT],
  ])('leaves the modes of the terminal as they were, at %s: %s', async (how, command, drawn, code) => {
    const screen = `"${process.execPath}" ${packageRoot()}/bin/penstock.js ${command}`
    const script = `ulimit -c 0; before=$(stty -g); ${screen}; echo "code $?"; [ "$before" = "$(stty -g)" ] && echo as before`
    const driver = fileURLToPath(new URL('terminal.py', import.meta.url))
    const shell = spawn('python3', [driver, 'bash', '--norc', '-c', script], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PENSTOCK_URL: url, NO_COLOR: '1' },
    })
    let shown = ''
    shell.stdout.on('data', (chunk) => {
      shown += chunk
    })
    const closed = once(shell, 'close')
    await until(() => shown.includes(drawn))
    if (how === 'Ctrl-C') shell.stdin.write(KEYS.interrupt)
    else process.kill(await childOf(await childOf(shell.pid as number)), how)
    await closed
    // What the screen beside this one shows is gone with it.
    const after = shown.slice(Math.max(0, shown.lastIndexOf('\x1b[?1049')))
    if (command.startsWith('top')) expect(after.startsWith('\x1b[?1049l')).toBe(true)
    expect(after).toContain(`code ${code}`)
    expect(after).toContain('as before')
  })
})

/** The one child of a process. */
async function childOf(pid: number): Promise<number> {
  return Number(await text(spawn('pgrep', ['-P', String(pid)]).stdout))
}

describe('top elsewhere', () => {
  it('prints one table', async () => {
    const { code, stdout, stderr } = await call('top', '--sort', 'in')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(order.exec(stdout)?.slice(1)).toEqual(['fast', 'slow'])
    expect(stdout).toContain('emulated_loss')
    expect(stdout).not.toContain('\x1b')
  })

  it('prints lines of JSON, with rates that are right, and what comes and goes', async () => {
    const child = start(['top', '--json', '-i', '100ms', '--sort', 'name'], { PENSTOCK_URL: url })
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
    const line = async (holds: (runs: { name: string; [key: string]: unknown }[]) => boolean) => {
      for (;;) {
        const { runs } = JSON.parse((await lines.next()).value)
        if (holds(runs)) return runs
      }
    }
    const [fast, slow] = await line((runs) => runs.length === 2)
    expect(fast).toMatchObject({ name: 'fast', state: 'RUNNING', drops: [{ component: 'loss', reason: 'intended' }] })
    for (const run of [fast, slow]) {
      expect(run.enteredPerSecond).toBeGreaterThan(0)
      // What comes in is lost, or ends in the sink.
      const sum = run.finishedPerSecond + run.droppedPerSecond
      expect(Math.abs(sum - run.enteredPerSecond)).toBeLessThanOrEqual(0.2 * run.enteredPerSecond)
    }
    expect((await call('pipelines', 'stop', 'slow')).code).toBe(0)
    await line((runs) => runs.length === 1 && runs[0]?.name === 'fast')
    expect((await call('pipelines', 'start', 'slow')).code).toBe(0)
    await line((runs) => runs.some(({ name, enteredPerSecond }) => name === 'slow' && Number(enteredPerSecond) > 0))
    await done(child)
    const once = await call('top', '--once', '--json')
    expect(once.stdout.trim().split('\n')).toHaveLength(1)
  })

  it('shows how long runs have been on where the clock of their node is hours off', async () => {
    const ahead = '--import=data:text/javascript,Date.now=(now=>()=>now()+18e6)(Date.now)'
    const { stdout } = await penstock(['top', '--once'], { env: { PENSTOCK_URL: url, NODE_OPTIONS: ahead } })
    expect(/fast +running +(\S.*?) {2,}/.exec(stdout)?.[1]).toMatch(/^(\d+ min ?)?(\d+ s)?$/)
  })

  it('shows that nothing passes a run that has ended and is to be restarted', async () => {
    const failing = structuredClone(lossy)
    Object.assign(failing.engine_config.pipeline, { bomb: { bomb: { delay: 800, poison: 'LOG_FATAL' } } })
    const file = directory.file('failing.json', failing)
    expect((await call('pipelines', 'create', 'failing', file, '--restart-policy', 'always')).code).toBe(0)
    const top = start(['top', '--json', '-i', '20ms'], { PENSTOCK_URL: url })
    try {
      expect((await call('pipelines', 'start', 'failing')).code).toBe(0)
      let losing: { run: string; total: number } | undefined
      for await (const line of createInterface({ input: top.stdout! })) {
        const run = JSON.parse(line).runs.find(({ name }: TopRun) => name === 'failing')
        if (run?.droppedPerSecond > 0) losing = { run: run.run, total: run.drops[0].total }
        // Of one that was over before it was seen twice there are no rates.
        if (run?.state !== 'ENDED' || run.run !== losing?.run) continue
        const { enteredPerSecond, finishedPerSecond, droppedPerSecond, bitsPerSecond, busy, held, drops } = run
        const figures = [enteredPerSecond, finishedPerSecond, droppedPerSecond, bitsPerSecond, busy, held]
        expect(figures).toEqual(figures.map(() => 0))
        expect(drops[0]).toMatchObject({ component: 'loss', perSecond: 0 })
        expect(drops[0].total).toBeGreaterThanOrEqual(losing!.total)
        break
      }
    } finally {
      await done(top)
      await call('pipelines', 'delete', 'failing', '--force')
    }
  })

  it('says what is wrong with what it is asked for', async () => {
    const { code, stderr } = await call('top', '--sort', 'size')
    expect(code).toBe(2)
    expect(stderr).toContain('Allowed choices are name, state,')
  })

  it('has what came and was not taken among the drops, and the log of the run says so once for each cause', async () => {
    // Long packets make few slots: some 16,000.
    const pipeline = {
      in: { udp: { local_address: '127.0.0.1:0', mtu: 65_000, output: 'a' } },
      delay: { delay_fixed: { input: 'a', output: 'b', delay: 600_000 } },
      sink: { traffic_sink: { input: 'b' } },
    }
    const file = directory.file('narrow.json', { version: 1, engine_config: { pipeline } })
    expect((await call('pipelines', 'create', 'narrow', file)).code).toBe(0)
    expect((await call('pipelines', 'start', 'narrow')).code).toBe(0)
    const logs = start(['pipelines', 'logs', 'narrow'], { PENSTOCK_URL: url })
    let log = ''
    logs.stdout!.on('data', (chunk) => {
      log += chunk
    })
    const bound = /bound to 127\.0\.0\.1:(\d+)/
    await until(() => bound.test(log), 'it is bound')
    const port = Number(bound.exec(log)?.[1])
    const top = start(['top', '--json', '-i', '100ms'], { PENSTOCK_URL: url })
    const socket = createSocket('udp4')
    try {
      let reads = 0
      let narrow: TopRun | undefined
      createInterface({ input: top.stdout! }).on('line', (line) => {
        reads++
        narrow = JSON.parse(line).runs.find(({ name }: TopRun) => name === 'narrow')
      })
      const causes = ['received_oversize_packets', 'received_without_slot_packets']
      const drops = () => narrow?.drops.filter(({ metric }) => causes.includes(metric)) ?? []
      /** On a machine with other work the kernel drops some too, which are none of those that came. */
      const kernelDrops = () => narrow!.drops.some(({ metric, perSecond }) => !causes.includes(metric) && perSecond > 0)
      await until(async () => {
        socket.send(Buffer.alloc(65_001), port, '127.0.0.1')
        for (let i = 0; i < 500; i++) socket.send(Buffer.alloc(100), port, '127.0.0.1')
        await new Promise((resolve) => setTimeout(resolve, 5))
        return drops().length === 2
      }, 'the slots are used up')
      const from = reads
      await until(() => {
        socket.send(Buffer.alloc(100), port, '127.0.0.1')
        return reads > from + 3 && narrow!.enteredPerSecond > 0 && !kernelDrops()
      }, 'nothing gets in any more')
      const { enteredPerSecond, finishedPerSecond, droppedPerSecond } = narrow!
      expect([finishedPerSecond, droppedPerSecond]).toEqual([0, enteredPerSecond])
      expect(drops()).toMatchObject(Array.from({ length: 2 }, () => ({ component: 'in', reason: 'drop' })))
      const ended = once(logs, 'close')
      expect((await call('pipelines', 'stop', 'narrow')).code).toBe(0)
      await ended
      expect(log.match(/(?<=counted as )received_\w+/g)?.sort()).toEqual(causes)
    } finally {
      socket.close()
      await done(top)
      await call('pipelines', 'delete', 'narrow')
    }
  })
})
