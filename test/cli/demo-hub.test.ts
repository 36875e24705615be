/** `npm run demo:hub`, as it is run: everything it promises is seen. */
import { expect, it } from 'vitest'
import { penstock } from './cli.ts'

it('joins three nodes, sends traffic between two, loses one and has it back', { timeout: 60_000 }, async () => {
  const { code, stdout, stderr } = await penstock(['demo-hub'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  for (const line of [
    /approves request 3 of west \w+ over the WebSocket/,
    /south {2}[\d,]+ datagrams came from north/,
    /streamNodes {2}north disconnected/,
    /a call for north: UNAVAILABLE/,
    /starts north again[\s\S]*streamNodes {2}north connected/,
    /south {2}[\d,]+ more datagrams came/,
    /all of it was seen/,
  ]) {
    expect(stdout).toMatch(line)
  }
})
