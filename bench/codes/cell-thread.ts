/** What each thread does: one cell. */
export { figureOf as default } from './cells.ts'
