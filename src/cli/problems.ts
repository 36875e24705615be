/** What is wrong with a configuration, with the place in its file: `FILE:LINE:COLUMN: /pointer: what is wrong`. */
import { PenstockError } from '@penstock/client'
import { JsonPlaces, type TextPosition } from '../text/json-text.ts'
import type { Problem } from '../text/pointer.ts'
import { Failure } from './failure.ts'
import { named, paint } from './terminal.ts'

/** A file that was read, `-` being standard input. */
export interface Source {
  readonly file: string
  readonly text: string
}

/** What a file is called where it is told of. */
export function nameOf(file: string): string {
  return file === '-' ? '<stdin>' : file
}

export type PlacedProblem = Problem & Partial<Pick<TextPosition, 'line' | 'column'>>

/** Fields of a request beside the configuration: not in its file, unless that has one of the name. */
const SETTINGS = ['/name', '/cpuPin', '/instructionsTimeout']

/** The problems with the lines and columns of what they are about, both from 1. */
export function placed(problems: readonly Problem[], text: string): PlacedProblem[] {
  const places = new JsonPlaces(text)
  return problems.map((problem) => {
    const { pointer } = problem
    if (SETTINGS.includes(pointer) && !places.has(pointer)) return problem
    const place = (pointer === '' ? places.fault : undefined) ?? places.of(pointer)
    return place === undefined ? problem : { ...problem, line: place.line, column: place.column }
  })
}

/** One problem a line. */
export function placedLines(problems: readonly Problem[], { file, text }: Source): string {
  return placed(problems, text)
    .map((problem) => placedLine(problem, file))
    .join('\n')
}

/** `FILE:LINE:COLUMN: /pointer: what is wrong`; without the place where it is in no file. */
export function placedLine({ pointer, message, line, column }: PlacedProblem, file: string): string {
  const place = line === undefined ? '' : `${nameOf(file)}:${line}:${column}: `
  return `${place}${paint(named(pointer) || '/', 'cyan', process.stderr)}: ${named(message)}`
}

export function countOf(problems: { readonly length: number }): string {
  return problems.length === 1 ? '1 problem' : `${problems.length} problems`
}

/** The failure that lists all of them. */
export function invalid(problems: readonly Problem[], source: Source): Failure {
  return new Failure(`${nameOf(source.file)}: ${countOf(problems)}\n${placedLines(problems, source)}`)
}

/** What a node says of a request, as it is about the file with the configuration: the configuration is all of it. */
export function inFile(problems: readonly Problem[]): Problem[] {
  return problems.map(({ pointer, message }) => ({ pointer: pointer === '/jsonConfig' ? '' : pointer, message }))
}

/** Waits for a call that carries `source` to a node; what the node finds wrong with it is told with its place. */
export async function withPlaces<R>(call: Promise<R>, source: Source | undefined): Promise<R> {
  try {
    return await call
  } catch (error) {
    if (source === undefined || !(error instanceof PenstockError) || error.problems.length === 0) throw error
    throw invalid(inFile(error.problems), source)
  }
}
