/** Pipelines that tests of the dashboard look at. */

/** Sends into a sink over an emulated loss. */
export const lossy = (loss = 0, mbit = 2) => ({
  source: { throughput_traffic_source: { output: 'a', throughput_mbit: mbit, payload_size: 500 } },
  loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: loss } },
  sink: { traffic_sink: { input: 'b' } },
})
