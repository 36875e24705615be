/** Metrics that no component declares: what the run's loop does, and what the process of the node takes. */
import { counter, gauge, histogram } from './metrics.ts'

/** Where the loop's metrics are among those of a run. */
export const ENGINE_PATH = '/engine'
/** Where those of the process are. */
export const PROCESS_PATH = '/process'
/** No component may have these names. */
export const OWN_PATHS: readonly string[] = [ENGINE_PATH, PROCESS_PATH]

export const engineMetrics = {
  breaths: counter('Turns of the run loop.'),
  busy_time: counter('Time in which the loop did not sleep.', 'ns'),
  busy_share: gauge('Share of the last second or more in which the loop did not sleep, 0 to 1.'),
  held_packets: gauge('Packets in the graph now.', 'packets'),
  slab_use: gauge('Share of the slab of packets that is in use, 0 to 1.'),
  timer_lag: histogram('How late the loop came to the earliest timer that was due.', 'ns'),
}

export const processMetrics = {
  cpu_time: counter('CPU time of all threads of the node, user and system.', 'ns'),
  resident_memory: gauge('Memory of the process that is in RAM.', 'bytes'),
  heap_used: gauge("Memory in use on the main thread's JavaScript heap.", 'bytes'),
  open_descriptors: gauge('File descriptors that are open.'),
  threads: gauge('Threads of the process.'),
}
