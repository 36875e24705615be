/** What all fields of a component's form share, and what is wrong with one. */
import type { SettingsProblem } from '@penstock/client'
import type { Json, Path } from '../../data/json.ts'
import type { Schema } from '../../data/schema.ts'
import { problemsAt } from './problems.ts'

export interface Form {
  /** Name of the component. */
  readonly component: string
  /** Sets a field, or takes it away. */
  readonly set: (path: Path, value: Json | undefined) => void
  /** The same while it is typed into: all of it is undone at once. */
  readonly type: (path: Path, value: Json | undefined) => void
  /** A name for a connection point that is made. */
  readonly nameOf: (path: Path) => string
  readonly problems: readonly SettingsProblem[]
}

/** The value at a path of a component, and what it may be. */
export interface ValueProps {
  readonly form: Form
  readonly schema: Schema
  readonly value: Json | undefined
  readonly path: Path
}

export interface FieldProps extends ValueProps {
  readonly name: string
  readonly isNeeded: boolean
}

interface ProblemsProps extends Pick<ValueProps, 'form' | 'path'> {
  /** Of the input that they are about. */
  readonly about?: string
}

/** What describes an input, there or not. */
export const problemsId = (input: string): string => `${input}problems`

export function Problems({ form, path, about }: ProblemsProps) {
  const found = problemsAt(form.problems, path)
  if (found.length === 0) return null
  return (
    <div role="alert" id={about && problemsId(about)}>
      <ul className="wrong">
        {found.map(({ message }) => (
          <li key={message}>⚠ {message}</li>
        ))}
      </ul>
    </div>
  )
}
