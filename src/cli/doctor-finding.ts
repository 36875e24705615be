/** What `penstock doctor` has found out about one thing. */
export interface Finding {
  check: string
  grade: 'ok' | 'warn' | 'fail'
  found: string
  /** What to do, when there is something. */
  advice?: string
}
