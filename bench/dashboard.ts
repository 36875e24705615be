/** dashboard: how soon the overview is there, how smoothly it is drawn while it follows 100 runs, and what that costs the node. */
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { type Bench, inTurn, median, runAlone } from './measure.ts'
import { chromiumOptions } from './support/chromium.ts'
import { cpuTime, mainThreadTime } from './support/cpu-time.ts'
import { Server } from './support/servers.ts'

const PIPELINES = 100
const FIRST_VIEWS = 5
const ROUNDS = 3
const SECONDS = 4
/** Room for all rows, so that all are followed, with as many pixels as a screen of 1,280 by 800. */
const ALL_ROWS = { viewport: { width: 1280, height: 200 + 50 * PIPELINES }, deviceScaleFactor: 0.4 }

/** A screen, and rows that it shows at least. */
const SCREEN = { viewport: { width: 1280, height: 800 } }
const FIRST_ROWS = 8

const PIPELINE = {
  source: { uniform_traffic_source: { output: 'a', interval: 20, total_packets: 0 } },
  loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.1 } },
  sink: { traffic_sink: { input: 'b' } },
}

/** Starts a node with that many runs. */
async function busyNode(): Promise<Server> {
  const server = await Server.node()
  const ask = async (path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' }
    const init = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await fetch(`http://127.0.0.1:${server.port}/v1${path}`, init)
    if (!answer.ok) throw new Error(await answer.text())
    return (await answer.json()) as { nodeId: string; pipeline: { id: string } }
  }
  const { nodeId } = await ask('/hub-client/local-node-id')
  const jsonConfig = JSON.stringify({ engine_config: { pipeline: PIPELINE } })
  for (let i = 0; i < PIPELINES; i++) {
    const { pipeline } = await ask(`/nodes/${nodeId}/pipelines`, { name: `bench ${i}`, jsonConfig })
    await ask(`/nodes/${nodeId}/pipelines/${pipeline.id}/start`, {})
  }
  return server
}

/** Notes when all rows are there. */
const NOTES_FIRST_VIEW = `
  const look = () => {
    if (document.querySelectorAll('.pipelines .name').length === ${PIPELINES}) document.documentElement.dataset.shownAt = performance.now()
    else requestAnimationFrame(look)
  }
  look()`

/** Has something move in every frame. */
const MOVES = `
  const mark = document.createElement('div')
  mark.style.cssText = 'position: fixed; top: 0; width: 20px; height: 20px; background: red'
  document.body.append(mark)
  const move = (time) => {
    mark.style.left = (time / 10) % 400 + 'px'
    requestAnimationFrame(move)
  }
  requestAnimationFrame(move)`

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Milliseconds from the beginning of the navigation until all rows are there, in a browser that has nothing of the page. */
async function firstView(browser: Browser, url: string): Promise<number> {
  const context = await browser.newContext(SCREEN)
  const page = await context.newPage()
  await page.addInitScript(NOTES_FIRST_VIEW)
  await page.goto(url)
  const milliseconds = Number(await page.locator('html[data-shown-at]').getAttribute('data-shown-at'))
  await context.close()
  return milliseconds
}

/** The overview with figures in so many rows. */
async function openOverview(context: BrowserContext, url: string, rows = PIPELINES): Promise<Page> {
  const page = await context.newPage()
  await page.goto(url)
  await page
    .locator('.traffic .number')
    .nth(2 * rows - 1)
    .waitFor()
  return page
}

/** Frames a second that Chromium drew, by its trace, while something on the page moves all the time. */
async function frameRate(browser: Browser, page: Page): Promise<number> {
  await page.evaluate(MOVES)
  await browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline.frame', 'devtools.timeline'] })
  await sleep(SECONDS * 1000)
  const trace = JSON.parse(String(await browser.stopTracing())) as { traceEvents: { name: string; ts: number }[] }
  const drawn = trace.traceEvents.filter(({ name }) => name === 'DrawFrame').map(({ ts }) => ts)
  if (drawn.length < 2) throw new Error('the trace has no frames')
  return (drawn.length - 1) / ((Math.max(...drawn) - Math.min(...drawn)) / 1e6)
}

export const bench: Bench = async () => {
  const server = await busyNode()
  const browser = await chromium.launch(chromiumOptions())
  try {
    const url = `http://127.0.0.1:${server.port}/`
    const views: number[] = []
    for (let i = 0; i < FIRST_VIEWS; i++) views.push(await firstView(browser, url))

    const screen = await browser.newContext(SCREEN)
    const frames = await frameRate(browser, await openOverview(screen, url, FIRST_ROWS))
    await screen.close()
    const context = await browser.newContext(ALL_ROWS)
    const page = await openOverview(context, url)
    const allFrames = await frameRate(browser, page)
    await page.close()
    const empty = await context.newPage()
    const emptyFrames = await frameRate(browser, empty)
    await empty.close()

    /** Shares of a core that the main thread of the node has taken, without the page and with it. */
    const mainShares = { without: [] as number[], shown: [] as number[] }
    /** Share of a core that the node takes. */
    const share = async (main: number[]): Promise<number> => {
      const before = cpuTime(server.pid)
      const mainBefore = mainThreadTime(server.pid)
      await sleep(SECONDS * 1000)
      main.push((mainThreadTime(server.pid) - mainBefore) / 1e9 / SECONDS)
      return (cpuTime(server.pid) - before) / 1e9 / SECONDS
    }
    const shares = await inTurn(ROUNDS, {
      without: async () => {
        // Its streams are closed.
        await sleep(1000)
        return share(mainShares.without)
      },
      shown: async () => {
        const shown = await openOverview(context, url)
        const taken = await share(mainShares.shown)
        await shown.close()
        return taken
      },
    })
    const main = median(mainShares.shown) - median(mainShares.without)
    const unit = '% of a core'
    return {
      name: `dashboard: the overview of a node with ${PIPELINES} runs, all followed`,
      rows: [
        { label: 'first view, nothing cached, median', value: median(views), unit: 'ms', goal: '≤ 1000' },
        { label: 'frames drawn on a screen, while something moves', value: frames, unit: 'a second', goal: '≥ 50' },
        { label: 'the same with all rows in view', value: allFrames, unit: 'a second', goal: '≥ 50' },
        { label: 'the same of an empty page', value: emptyFrames, unit: 'a second' },
        { label: 'node without the page', value: shares.without * 100, unit },
        { label: 'node, more with it', value: (shares.shown - shares.without) * 100, unit, goal: '≤ 5' },
        // The threads of the runs do nothing for the page, and what they take varies by more than the page costs.
        { label: 'main thread of the node, more with it', value: main * 100, unit, goal: '≤ 5' },
      ],
    }
  } finally {
    await browser.close()
    await server.stop()
  }
}

await runAlone(import.meta.url, bench)
