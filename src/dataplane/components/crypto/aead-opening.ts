/** What ssl_decrypt and ssl_poly1305_checker have in common: runs known by their salts, every packet opened once, metrics of the rest. */
import { formatRemote } from '../../engine/address.ts'
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { ComponentContext } from '../../engine/component.ts'
import type { Receiver } from '../../engine/flow.ts'
import { type Counter, drop, gauge, type Metrics } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import { aeadBackendText } from '../../native/aead-backends.ts'
import { REPLAY_WINDOW } from '../../native/cipher-calls.ts'
import { native } from '../../native/native.ts'
import { AeadReceiver, MALFORMED, OPENED, REFLECTED, REPLAYED, UNTRIED } from './aead-receiver.ts'
import { ownSalts } from './own-salts.ts'
import { SEALED_BYTES, type SuiteKey } from './suites.ts'

/** The newest packets of a run that may still come, as it is written. */
export const WINDOW = REPLAY_WINDOW.toLocaleString('en')

export const openingMetrics = {
  authentication_failures: drop('Packets that were not authentic: another key, forged, or altered.'),
  replayed_packets: drop(`Packets seen before, or older than the newest ${WINDOW} of their run.`),
  reflected_packets: drop('Packets that this run has sent itself, sent back by somebody.'),
  untried_packets: drop('Packets of runs not heard before, of which too many came at once to try them all.'),
  malformed_packets: drop('Packets too short for header and tag.'),
  known_runs: gauge('Runs of senders whose keys and windows are kept.', 'runs'),
}

type Context = Pick<
  ComponentContext<never, never>,
  'packets' | 'memory' | 'owner' | 'clock' | 'log' | 'follows' | 'shared'
>

/** The input of both, what observes it and what ends it. `opened` counts packets that are passed on. */
export function aeadOpening(
  context: Context,
  suite: SuiteKey,
  outlet: Outlet,
  metrics: Metrics<typeof openingMetrics>,
  opened: Counter,
): { input: Receiver; observe(): void; stop(): void } {
  const { packets, log } = context
  const receiver = new AeadReceiver({
    packets,
    memory: context.memory(),
    owner: context.owner(),
    suite,
    clock: context.clock,
    own: ownSalts(context),
    follows: context.follows,
    wrongKey(remote, others) {
      const address = formatRemote(remote)
      const sender = address === '' ? 'a sender' : `the sender at ${address}`
      const cause = 'it has another key or suite, or something on the way alters packets'
      const more = others === 0 ? '' : `; so it is with ${others === 1 ? 'another sender' : `${others} other senders`}`
      log('WARN', `nothing that ${sender} ${suite.verb} can be opened: ${cause}${more}`, { address, others })
    },
  })
  log('INFO', `opens ${suite.name} by ${aeadBackendText()}`, { backend: native.aeadBackend() })
  const outcome = new Uint8Array(BATCH_CAPACITY)

  /** Sends on those that were opened, in their order; releases and counts the others. */
  const sendOpened: Receiver = (batch) => {
    const { handles, length } = batch
    let kept = 0
    for (let i = 0; i < length; i++) {
      const packet = handles[i]
      if (outcome[i] === OPENED) handles[kept++] = packet
      else {
        packets.release(packet)
        if (outcome[i] === REPLAYED) metrics.replayed_packets.add(1)
        else if (outcome[i] === UNTRIED) metrics.untried_packets.add(1)
        else if (outcome[i] === REFLECTED) metrics.reflected_packets.add(1)
        else if (outcome[i] === MALFORMED) metrics.malformed_packets.add(1)
        else metrics.authentication_failures.add(1)
      }
    }
    batch.length = kept
    opened.add(kept)
    outlet.send(batch)
  }

  const input: Receiver = (batch) => {
    const { handles, length } = batch
    if (receiver.open(handles, length, outcome)) {
      opened.add(length)
      outlet.sendOf(batch, batch.bytes - length * SEALED_BYTES)
    } else sendOpened(batch)
  }

  return {
    input,
    observe: () => {
      metrics.known_runs.set(receiver.known)
      receiver.observe()
    },
    stop: () => receiver.close(),
  }
}
