/** reed_solomon_decoder: passes on the source packets of a reed_solomon_encoder and recovers missing ones. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, Optional, Output, Uint32 } from '../../engine/schema.ts'
import { blockDecoding } from './block-decoding.ts'
import { REED_SOLOMON, SYMBOL_AT } from './block-header.ts'
import { blockDecoderMetrics } from './block-metrics.ts'
import { CauchyRecovery } from './cauchy-recovery.ts'

/** Encoders followed side by side where `max_sessions` does not say otherwise. */
const SESSIONS = 64
/** More would be looked through too long for each packet. */
const MAX_SESSIONS = 256

export const reedSolomonDecoder = defineComponent({
  key: 'reed_solomon_decoder',
  family: 'fec',
  summary: 'Recovers lost packets of a reed_solomon_encoder from its repair packets.',
  details:
    'Sources are passed on as they come, recovered packets as soon as any k packets of their block are there, so out of order. ' +
    'The block size comes with the packets. A block is given up when it is some 1,000 packets behind the newest (at least 4 blocks, at most ' +
    '256), or when the blocks kept take a quarter of the packet slots of the run.\n\n' +
    `Each start of an encoder is a session of its own, whatever address it sends from, and up to ${SESSIONS} are followed side by side ` +
    '(max_sessions). When that many are known, a session that has sent nothing while a newcomer sent 8 packets gives way to it, the one ' +
    'silent longest. The sources of sessions that are not followed are passed on as they come, and nothing of them is recovered ' +
    '(unfollowed_packets).\n\n' +
    'A repair packet that contradicts the sources that came, or whose result does, is dropped (malformed_packets), and every source that ' +
    'comes is passed on, once, whatever repairs said of it before. A forged repair that contradicts nothing yet makes a forged packet ' +
    'nevertheless (wrong_recoveries counts those that their source gave away later): where packets may be forged, put an authenticating ' +
    'component around the code.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    max_sessions: Optional(
      Uint32(`Encoders followed side by side (${SESSIONS} when unset or 0).`, { maximum: MAX_SESSIONS }),
    ),
  }),
  metrics: blockDecoderMetrics('a reed_solomon_encoder'),
  live: ['max_sessions'],
  alters: true,
  computesFrom: SYMBOL_AT,
  create({ max_sessions }, context) {
    const { decoder, instance } = blockDecoding(context, REED_SOLOMON, CauchyRecovery, max_sessions || SESSIONS)
    return { ...instance, reconfigure: (next) => decoder.follow(next.max_sessions || SESSIONS) }
  },
})
