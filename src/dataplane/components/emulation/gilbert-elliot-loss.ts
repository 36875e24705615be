/** gilbert_elliot_loss: drops packets in two states, good and bad, as Gilbert (1960) and Elliott (1963) modelled burst errors. */
import { type Static, Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { gauge, intendedDrop } from '../../engine/metrics.ts'
import { Input, Optional, Output, Probability, Seed } from '../../engine/schema.ts'
import { applyLoss, GilbertElliott, type GilbertElliottParameters } from './loss-models.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  good_loss_prob: Probability('Loss probability of a packet in the good state.'),
  bad_loss_prob: Probability('Loss probability of a packet in the bad state.'),
  good_to_bad_prob: Probability('Chance, per packet, of turning bad.'),
  bad_to_good_prob: Probability('Chance, per packet, of turning good again.'),
  seed: Optional(Seed()),
})

const parametersOf = (given: Static<typeof config>): GilbertElliottParameters => ({
  goodLoss: given.good_loss_prob,
  badLoss: given.bad_loss_prob,
  goodToBad: given.good_to_bad_prob,
  badToGood: given.bad_to_good_prob,
})

export const gilbertElliotLoss = defineComponent({
  key: 'gilbert_elliot_loss',
  family: 'emulation',
  summary: 'Drops packets in bursts: a two-state Markov chain with a loss probability for each state.',
  details:
    'Each packet is lost by the probability of the present state, then the state moves. It starts good. The mean stay in ' +
    'the bad state is 1 / bad_to_good_prob packets, the share of packets that meet it ' +
    'good_to_bad_prob / (good_to_bad_prob + bad_to_good_prob).',
  config,
  metrics: {
    emulated_loss: intendedDrop('Packets dropped by the model.'),
    bad: gauge('1 while in the bad state.'),
  },
  live: ['good_loss_prob', 'bad_loss_prob', 'good_to_bad_prob', 'bad_to_good_prob'],
  passes: true,
  create(given, { outlets, metrics, random }) {
    const chain = new GilbertElliott(parametersOf(given), random(given.seed))
    return {
      input(batch) {
        applyLoss(batch, chain, metrics.emulated_loss)
        outlets.output.send(batch)
      },
      observe() {
        metrics.bad.set(chain.bad ? 1 : 0)
      },
      reconfigure(next) {
        chain.parameters = parametersOf(next)
      },
    }
  },
})
