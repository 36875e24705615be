/** What `simulate` and `fec advise` print with `-o json`, as JSON Schemas. */
import { Type } from '@sinclair/typebox'
import { closed, configuration, count, kpis, maybe, metrics, outcome, real, text } from './output-schema-parts.ts'

const set = Type.Record(text, Type.Unknown(), { description: 'What --set names to its value.' })
export const simulated = {
  ...{ outcome: Type.Union([outcome, Type.Literal('DURATION')]), error: maybe(text) },
  ...{ elapsedMs: real, seed: count, set: maybe(set), kpis: maybe(kpis), metrics },
}

export const sweepRow = Type.Object(
  {
    set,
    runs: Type.Array(
      Type.Object({ seed: count, outcome: simulated.outcome, error: maybe(text), elapsedMs: real }, closed),
    ),
    figures: Type.Record(
      text,
      Type.Object(
        {
          unit: text,
          values: Type.Array(Type.Union([real, text, Type.Null()]), { description: 'In the order of the runs.' }),
          ...{ mean: maybe(real), standardDeviation: maybe(real), texts: maybe(Type.Array(text)) },
          errors: maybe(
            Type.Array(Type.Union([text, Type.Null()]), {
              description: 'Why a KPI has no value, in the order of the runs.',
            }),
          ),
        },
        closed,
      ),
    ),
  },
  { ...closed, description: 'A row of a sweep: a combination of values.' },
)

const fecLink = Type.Object(
  {
    loss: real,
    burst: real,
    rate: real,
    packet: count,
    budget: real,
    overhead: real,
    inOrder: maybe(Type.Literal(true)),
  },
  { ...closed, description: 'Shares of 1; rate in Mbit/s, packet in bytes, budget in ms.' },
)
const part = Type.Union([Type.Record(text, Type.Object({})), Type.Null()])
const trialFields = {
  ...{ code: Type.Union([text, Type.Null()]), settings: Type.Union([text, Type.Null()]) },
  ...{ encoder: part, decoder: part, sent: count, lost: count, residual: real },
  ...{ upper: real, overhead: real, p50: real, p99: real, seeds: Type.Array(count) },
}
const trial = Type.Object(trialFields, {
  ...closed,
  description: 'residual: share lost, below upper with 95 % confidence; p50, p99: added delay in ms.',
})
const tryPackets = Type.Optional(
  Type.Integer({ description: 'Packets to simulate instead: these were too few to know.' }),
)
const uncertain = Type.Object({ ...trialFields, tryPackets }, closed)
const remedy = Type.Object({ allowed: fecLink, sure: Type.Boolean(), ...trialFields, tryPackets }, closed)
export const advice = Type.Object(
  {
    ...{ link: fecLink, residual: real, packets: count, seed: count, best: Type.Union([trial, Type.Null()]) },
    ...{ sender: maybe(configuration), receiver: maybe(configuration), simulation: maybe(configuration) },
    ...{ simulationMs: maybe(count), unsure: maybe(uncertain) },
    ...{ moreOverhead: maybe(remedy), moreBudget: maybe(remedy), trials: Type.Array(trial) },
  },
  closed,
)
