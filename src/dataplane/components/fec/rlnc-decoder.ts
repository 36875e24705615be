/** rlnc_decoder: passes on the source packets of an rlnc_encoder and recovers missing ones. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, Output } from '../../engine/schema.ts'
import { MAX_SENDERS } from '../shared/senders.ts'
import { blockDecoding } from './block-decoding.ts'
import { RLNC, SYMBOL_AT } from './block-header.ts'
import { blockDecoderMetrics } from './block-metrics.ts'
import { EliminationRecovery } from './elimination-recovery.ts'

export const rlncDecoder = defineComponent({
  key: 'rlnc_decoder',
  family: 'fec',
  summary: 'Recovers lost packets of an rlnc_encoder from its repair packets.',
  details:
    'Sources are passed on as they come, recovered packets as soon as what has come of their block determines them, so out of order: each arriving ' +
    'packet is taken out of the equations at once. The block size comes with the packets. A block is given up when it is some 1,000 packets behind ' +
    'the newest (at least 4 blocks, at most 256), or when the blocks kept take a quarter of the packet slots of the run.\n\n' +
    'Each start of an encoder is a session of its own, whatever address it sends from, and up to 64 are followed side by side. When that many ' +
    'are known, a session that has sent nothing while a newcomer sent 8 packets gives way to it, the one silent longest. The sources of sessions ' +
    'that are not followed are passed on as they come, and nothing of them is recovered (unfollowed_packets).\n\n' +
    'Repair packets that contradict the sources that came, or each other, are dropped (malformed_packets), and every source that comes is passed ' +
    'on, once, whatever repairs said of it before. A forged repair that contradicts nothing yet makes a forged packet nevertheless ' +
    '(wrong_recoveries counts those that their source gave away later): where packets may be forged, put an authenticating component around ' +
    'the code.',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: blockDecoderMetrics('an rlnc_encoder'),
  alters: true,
  computesFrom: SYMBOL_AT,
  create: (_config, context) => blockDecoding(context, RLNC, EliminationRecovery, MAX_SENDERS).instance,
})
