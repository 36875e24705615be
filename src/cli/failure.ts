/** How a command fails: one line for people on stderr, exit code 1, or 2 for wrong usage and for what was done in part. */
import { constants } from 'node:os'

/** A command could not do what it was asked; the message says why and what to do. */
export class Failure extends Error {
  readonly exitCode: number = 1
}

/** The command line itself is wrong. */
export class UsageFailure extends Failure {
  override readonly exitCode: number = 2
}

/** Only a part of what was asked could be done; the rest is. */
export class PartFailure extends Failure {
  override readonly exitCode: number = 2
}

/** Ctrl-C, SIGTERM or SIGHUP ended it before it was done. */
export class Interrupted extends Failure {
  /** 128 and the number of the signal, as shells tell it. */
  override readonly exitCode: number

  /** `by`: what the signal of `interruption` was aborted with. */
  constructor(message: string, by: unknown) {
    super(message)
    this.exitCode = 128 + (constants.signals[by as NodeJS.Signals] ?? constants.signals.SIGINT)
  }
}

/** The output has been printed already; only the exit code is left to give. */
export class SilentFailure extends Failure {
  constructor() {
    super('')
  }
}
