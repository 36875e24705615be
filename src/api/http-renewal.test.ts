/** A listener whose certificate was renewed ends as any other. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { makeCertificate } from '../link/certificate.ts'
import { Access } from './access.ts'
import { Dispatcher } from './dispatcher.ts'
import { HttpListener } from './http.ts'

const directory = mkdtempSync(join(tmpdir(), 'penstock-test-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

test.each([0, 1, 2])(
  'renewed %i times, it leaves no connection that it accepts in the turn in which it stops',
  async (times) => {
    const made = makeCertificate(['localhost'], Date.now())
    const tls = { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') }
    writeFileSync(tls.certFile, made.certificate)
    writeFileSync(tls.keyFile, made.key)
    const dispatcher = new Dispatcher({ handlers: {}, report: () => {} })
    const listener = new HttpListener({ dispatcher, access: new Access(), address: '127.0.0.1', port: 0, tls })
    const { port } = await listener.start()
    for (let i = 0; i < times; i++) listener.renew(tls)()
    // What comes in here is heard of in the same turn as the connection, and after it.
    const bell = createServer().listen(0, '127.0.0.1')
    await once(bell, 'listening')
    const rope = connect((bell.address() as AddressInfo).port, '127.0.0.1')
    const [side] = await once(bell, 'connection')
    const stopped = once(side, 'data').then(() => listener.stop())
    const client = connect(port, '127.0.0.1')
    const isLost = new Promise((resolve) => client.on('error', () => {}).on('close', () => resolve(true)))
    process.nextTick(() => process.nextTick(() => rope.write('x')))
    try {
      await stopped
      expect(await Promise.race([isLost, setTimeout(3000, false, { ref: false })])).toBe(true)
    } finally {
      for (const each of [client, rope, side]) each.destroy()
      bell.close()
    }
  },
)
