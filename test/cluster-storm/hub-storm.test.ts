/**
 * A storm over a hub of three servers and its nodes, each as `penstock up`: what was answered is linearizable, what each server tells is in one
 * order, and in the calm all agree. PENSTOCK_STORM_SEED repeats one (default: drawn; printed); with PENSTOCK_STORM_LONG six nodes and a storm
 * of twice the length, whose calm has to come within 10 s.
 */
import { afterEach, test } from 'vitest'
import { temporaryDirectory } from '../api/running-node.ts'
import { endProcesses } from '../harness/node-process.ts'
import { natsOfMachine } from './engine.ts'
import { HubStorm } from './hub-storm.ts'

const seed = Number(process.env.PENSTOCK_STORM_SEED ?? Math.floor(Math.random() * 2 ** 31))
const isLong = process.env.PENSTOCK_STORM_LONG !== undefined
const { version, replicas } = natsOfMachine()
const nats = `nats-server ${version}, replicas: ${replicas}`
const size = isLong
  ? { milliseconds: 10_000, steady: 3, guests: 3, clients: 10, calmMs: 10_000 }
  : { milliseconds: 4_000, steady: 2, guests: 1, clients: 6, calmMs: 60_000 }
afterEach(endProcesses)

test(`three servers of a hub and ${size.steady + size.guests} nodes, ${nats}, seed ${seed}`, {
  timeout: 300_000,
}, async () => {
  const log = (line: string) => console.log(`hub storm ${seed}: ${line}`)
  await new HubStorm({ ...size, seed, replicas, directory: temporaryDirectory(), log }).run()
})
