/** `npm run docs:images`: the pictures of docs/dashboard.md, made of a node with traffic: every view, light and dark, and one as a phone has it. Wants `npm run build` first. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { chromiumOptions } from '../../dist/bench/support/chromium.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const images = join(root, 'docs/images')
const directory = mkdtempSync(join(tmpdir(), 'penstock-images-'))
const children = []

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Starts a node; gives what calls its API. */
async function startNode(name, ...flags) {
  const port = await freePort()
  const own = [
    '--data-dir',
    join(directory, name),
    '--http',
    `127.0.0.1:${port}`,
    '--grpc',
    'none',
    '--node-name',
    name,
  ]
  const child = spawn(
    process.execPath,
    [join(root, 'bin/penstock.js'), 'up', ...own, '--log-level', 'silent', ...flags],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  children.push(child)
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const url = `http://127.0.0.1:${port}`
  const call = async (method, path, body) => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${url}/v1${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    if (!answer.ok) throw new Error(await answer.text())
    return answer.json()
  }
  const { nodeId } = await call('GET', '/hub-client/local-node-id')
  return { url, call, nodeId }
}

async function startPipeline({ call, nodeId }, name, mbit, loss) {
  const pipeline = {
    video: { throughput_traffic_source: { output: 'sent', throughput_mbit: mbit, payload_size: 1_000 } },
    encoder: {
      reed_solomon_encoder: {
        input: 'sent',
        output: 'coded',
        symbols: 10,
        repair: 3,
        flush_after_ms: 50,
      },
    },
    loss: { uniform_loss: { input: 'coded', output: 'arrived', loss_prob: loss } },
    delay: { delay_fixed: { input: 'arrived', output: 'late', delay: 20 } },
    decoder: {
      reed_solomon_decoder: { input: 'late', output: 'whole' },
    },
    sink: { traffic_sink: { input: 'whole' } },
  }
  const metrics = [
    { id: 'rate', label: 'Goodput', value_over_time: { expression: 'rate({sink/input_bytes}) * 8', unit: 'bit/s' } },
    { id: 'loss', label: 'Packets lost', value: { expression: '{loss/emulated_loss}', unit: 'packets' } },
  ]
  const jsonConfig = JSON.stringify({ engine_config: { pipeline }, kpis: { metrics } }, null, 2)
  const { pipeline: made } = await call('POST', `/nodes/${nodeId}/pipelines`, { name, jsonConfig })
  await call('POST', `/nodes/${nodeId}/pipelines/${made.id}/start`)
  return made.id
}

let browser
try {
  mkdirSync(images, { recursive: true })
  const node = await startNode('site-a')
  const id = await startPipeline(node, 'video uplink', 6, 0.03)
  await startPipeline(node, 'telephony', 1, 0.01)
  browser = await chromium.launch(chromiumOptions())
  const own = `#/nodes/${node.nodeId}/pipelines/${id}`
  const views = [
    ['overview', '#/', '.traffic .number'],
    ['pipeline', own, '.react-flow__node'],
    ['charts', `${own}/charts`, '.kpi canvas'],
    ['log', `${own}/log`, '.log-lines li'],
    ['configuration', `${own}/configuration`, '.cm-line'],
    ['impair', `${own}/impair`, 'input[type="range"]'],
    ['editor', `${own}/edit`, '.react-flow__node'],
  ]
  const take = async (name, hash, ready, options) => {
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
    const page = await context.newPage()
    await page.goto(`${node.url}/${hash}`)
    await page.locator(ready).first().waitFor()
    // Curves want some samples.
    await page.waitForTimeout(6_000)
    await page.screenshot({ path: join(images, `dashboard-${name}.png`) })
    await context.close()
  }
  const viewport = { width: 1280, height: 800 }
  const pictures = views.flatMap(([name, hash, ready]) => [
    take(name, hash, ready, { viewport, colorScheme: 'light' }),
    take(`${name}-dark`, hash, ready, { viewport, colorScheme: 'dark' }),
  ])
  pictures.push(
    take('phone', '#/', '.traffic .number', { viewport: { width: 390, height: 800 }, colorScheme: 'light' }),
  )
  await Promise.all(pictures)
} finally {
  await browser?.close()
  for (const child of children) child.kill()
  rmSync(directory, { recursive: true, force: true })
}
