/** flow_combiner: all inputs to one output. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import type { Receiver } from '../../engine/flow.ts'
import { Input, List, Output } from '../../engine/schema.ts'

export const flowCombiner = defineComponent({
  key: 'flow_combiner',
  family: 'routing',
  summary: 'Joins all inputs to one output.',
  config: Type.Object({
    inputs: List(Input(), 'Connection points to read from.'),
    output: Output(),
  }),
  metrics: {},
  passes: true,
  create(config, { outlets }) {
    const pass: Receiver = (batch) => outlets.output.send(batch)
    return { inputs: config.inputs.map(() => pass) }
  },
})
