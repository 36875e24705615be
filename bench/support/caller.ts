/** Asks one address again and again, 50 times a second at most; told `end`, it tells how long the answers took, ms, ascending. */
import { Agent, get } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

const ASK_EVERY_MS = 20

const [, , address] = process.argv
const agent = new Agent({ keepAlive: true })
const times: number[] = []
let isOver = false
process.on('message', () => {
  isOver = true
})

async function ask(): Promise<void> {
  const answer = new Promise<string>((resolve, reject) => {
    get(address as string, { agent }, (response) => resolve(text(response))).on('error', reject)
  })
  await answer
}

while (!isOver) {
  const asked = performance.now()
  await ask()
  times.push(performance.now() - asked)
  await pause(ASK_EVERY_MS)
}
process.send?.(
  times.sort((a, b) => a - b),
  () => process.disconnect(),
)
agent.destroy()
