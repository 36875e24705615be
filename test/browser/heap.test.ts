/** What the page holds after a day of updates, ten a second: real messages on real WebSockets, as fast as it reads them. */
import type { CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { lossy } from './pipelines.ts'
import { type Message, ReplayingProxy } from './replaying-proxy.ts'

const inputs = process.env.PENSTOCK_TEST_INPUTS
const isLong = inputs !== undefined || process.env.PENSTOCK_TEST_LONG !== undefined
/** Updates of each stream: of a day where there is time, else more than twice what the page keeps of any. */
const UPDATES = isLong ? Number(inputs ?? 864_000) : 16_000
/** Updates after which the page is waited for, so that none of them lie in the browser. */
const STEP = 4_000
/** The heap is looked at that often, with so many updates in between: React keeps what it showed before, of which there may be much or little. */
const LOOKS = 6
const BETWEEN = 50
const LIMIT_MS = isLong ? 1_800_000 : 90_000

/** Milliseconds between samples. */
const INTERVAL = 100

/** Samples whose counters rise, and whose KPIs are which of them it is. */
function sample(first: Message, index: number): Message {
  const metricCollections = first.metricCollections.map(({ path, metrics }: Message) => ({
    path,
    metrics: Object.fromEntries(
      Object.entries<Message>(metrics).map(([name, metric]) => [
        name,
        metric.uint64Value === undefined
          ? metric
          : { ...metric, uint64Value: String(Number(metric.uint64Value) + 7 * index) },
      ]),
    ),
  }))
  const kpis = first.kpis.map((kpi: Message) => {
    const kind = kpi.value === undefined ? 'valueOverTime' : 'value'
    return { ...kpi, [kind]: { ...kpi[kind], value: index } }
  })
  return {
    ...first,
    metricCollections,
    kpis,
    timestamp: new Date(Date.parse(first.timestamp) + index * INTERVAL).toISOString(),
  }
}

function lines(first: Message, index: number): Message {
  const [message] = first.messages
  const timestamp = new Date(Date.parse(message.timestamp) + index * INTERVAL).toISOString()
  return { messages: [{ ...message, timestamp, message: `update ${index}`, fields: { index: String(index) } }] }
}

let node: RunningNode
let id: string
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
  const metrics = [
    { id: 'count', label: 'Count', value: { expression: '0' } },
    { id: 'drawn', label: 'Drawn', value_over_time: { expression: '0' } },
  ]
  const jsonConfig = JSON.stringify({ engine_config: { pipeline: lossy(0.1) }, kpis: { metrics } })
  id = await node.create({}, { name: 'lasting', jsonConfig })
  await node.start(id)
})
afterAll(() => node.node.close())

/** Bytes of the page's heap that are reached. */
async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage')
  const { metrics } = await session.send('Performance.getMetrics')
  return metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? Number.NaN
}

/** Sends updates until there were `end` of them, never more at once than the page has shown. */
async function update(proxy: ReplayingProxy, from: number, end: number, shown: (index: number) => Promise<unknown>) {
  for (let at = from; at < end; at += STEP) await shown(await proxy.replay(Math.min(STEP, end - at)))
}

type Shown = (page: Page, index: number) => Promise<unknown>
const inChart: Shown = (page, index) => page.locator('.big', { hasText: new RegExp(`^${texts(index)}$`) }).waitFor()
const inLog: Shown = (page, index) => page.locator('.log-lines li', { hasText: `index=${index}` }).waitFor()

/** A number as the page has it: whole below 10,000, else three digits and a k. */
const texts = (index: number): string => {
  if (index < 10_000) return String(index)
  return `${Number((index / 1000).toFixed(index >= 100_000 ? 0 : 1))} k`
}

describeInBrowser('the heap of the page', () => {
  test.each([
    ['charts', inChart],
    ['log', inLog],
  ] as const)(
    'is flat over a day of updates: %s',
    async (tab, isShown) => {
      const proxy = await ReplayingProxy.start(
        node.node.http as string,
        new Map([
          [/\/telemetry/, sample],
          [/\/logs/, lines],
        ]),
      )
      const view = await open(`http://${proxy.address}/#/nodes/${node.node.id}/pipelines/${id}/${tab}`)
      const { page } = view
      const session = await page.context().newCDPSession(page)
      await session.send('Performance.enable')
      await page
        .locator(tab === 'log' ? '.log-lines li' : '.big')
        .first()
        .waitFor()
      await until(() => proxy.hasBegun)
      const middle = UPDATES / 2
      const shown = (index: number) => isShown(page, index)
      const leastHeap = async (): Promise<number> => {
        const heaps: number[] = []
        for (let look = 0; look < LOOKS; look++) {
          await shown(await proxy.replay(BETWEEN))
          heaps.push(await heapOf(session))
        }
        return Math.min(...heaps)
      }
      await update(proxy, 0, middle, shown)
      const before = await leastHeap()
      await update(proxy, middle, UPDATES, shown)
      const after = await leastHeap()
      console.info(
        `${tab}: ${UPDATES} updates, heap ${(before / 1e6).toFixed(2)} MB half way, ${(after / 1e6).toFixed(2)} MB at the end`,
      )
      expect(after).toBeLessThan(before * 1.05 + 1e6)
      await close(view)
      await proxy.close()
    },
    LIMIT_MS,
  )
})
