/** What each thread of a pool of simulations loads. */
import { simulateOne } from './simulate-run.ts'

export default simulateOne
