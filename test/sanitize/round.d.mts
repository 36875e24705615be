/** How often a function was called, and how often it did what it was asked. */
export type Calls = Record<string, [called: number, done: number]>
export const isolated: boolean
export function fuzzRound(
  env: Record<string, string>,
  options: { seed: number; threads: number; seconds: number; count?: number },
): { failure?: string; calls: Calls }
export function sum(total: Calls, calls: Calls): void
