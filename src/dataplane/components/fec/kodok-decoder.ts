/** kodok_decoder: passes on the source packets of a kodok_encoder and recovers missing ones. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, Output } from '../../engine/schema.ts'
import { MAX_SENDERS } from '../shared/senders.ts'
import { blockDecoding } from './block-decoding.ts'
import { KODOK, SYMBOL_AT } from './block-header.ts'
import { blockDecoderMetrics } from './block-metrics.ts'
import { EliminationRecovery } from './elimination-recovery.ts'

export const kodokDecoder = defineComponent({
  key: 'kodok_decoder',
  family: 'fec',
  summary: 'Recovers lost packets of a kodok_encoder from its repair packets.',
  details:
    'Sources are passed on as they come, recovered packets as soon as what has come of their block determines them, so out of order; with repair ' +
    'packets in the middle of a block that is long before its end. How a block is made comes with the packets. Blocks are given up, senders are ' +
    'followed and contradictions are dealt with as by an [rlnc_decoder](rlnc_decoder.md).',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: blockDecoderMetrics('a kodok_encoder'),
  alters: true,
  computesFrom: SYMBOL_AT,
  create: (_config, context) => blockDecoding(context, KODOK, EliminationRecovery, MAX_SENDERS).instance,
})
