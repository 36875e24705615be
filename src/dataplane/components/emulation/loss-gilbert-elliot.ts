/** loss_gilbert_elliot: drops packets of several flows in two states, as Gilbert (1960) and Elliott (1963) modelled burst errors. */
import { type Static, Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { gauge, intendedDrop } from '../../engine/metrics.ts'
import { Optional, Probability, Seed } from '../../engine/schema.ts'
import { Flows, lossyFlows } from './flows.ts'
import { GilbertElliott, type GilbertElliottParameters } from './loss-models.ts'

const config = Type.Object({
  flows: Flows(),
  good_loss_probability: Probability('Loss probability of a packet in the good state.'),
  bad_loss_probability: Probability('Loss probability of a packet in the bad state.'),
  good_to_bad_probability: Probability('Chance, per packet, of turning bad.'),
  bad_to_good_probability: Probability('Chance, per packet, of turning good again.'),
  seed: Optional(Seed()),
})

const parametersOf = (given: Static<typeof config>): GilbertElliottParameters => ({
  goodLoss: given.good_loss_probability,
  badLoss: given.bad_loss_probability,
  goodToBad: given.good_to_bad_probability,
  badToGood: given.bad_to_good_probability,
})

export const lossGilbertElliot = defineComponent({
  key: 'loss_gilbert_elliot',
  family: 'emulation',
  summary: 'Drops packets of its flows in bursts: a two-state Markov chain with a loss probability for each state.',
  details:
    'Each packet, of whichever flow, is lost by the probability of the present state, then the state moves. It starts good. The ' +
    'mean stay in the bad state is 1 / bad_to_good_probability packets, the share of packets that meet it ' +
    'good_to_bad_probability / (good_to_bad_probability + bad_to_good_probability).',
  config,
  metrics: {
    emulated_loss: intendedDrop('Packets dropped by the model.'),
    bad: gauge('1 while in the bad state.'),
  },
  live: ['good_loss_probability', 'bad_loss_probability', 'good_to_bad_probability', 'bad_to_good_probability'],
  passes: true,
  create(given, { outlets, metrics, random }) {
    const chain = new GilbertElliott(parametersOf(given), random(given.seed))
    return {
      flows: lossyFlows(outlets.flows, chain, metrics.emulated_loss),
      observe: () => metrics.bad.set(chain.bad ? 1 : 0),
      reconfigure(next) {
        chain.parameters = parametersOf(next)
      },
    }
  },
})
