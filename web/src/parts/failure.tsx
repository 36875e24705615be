/** A failure of the API in words: what the node says, its reason, and each field with what is wrong there. */
import type { PenstockError } from '@penstock/client'

export function Failure({ error, title }: { readonly error: PenstockError; readonly title?: string }) {
  return (
    <div className="failure" role="alert">
      {title !== undefined && <strong>{title}</strong>}
      {error.problems.length === 0 && <p>{error.message}</p>}
      {error.problems.length > 0 && (
        <ul>
          {error.problems.map(({ pointer, message }) => (
            <li key={`${pointer} ${message}`}>
              {pointer !== '' && <code>{pointer}</code>} {message}
            </li>
          ))}
        </ul>
      )}
      <p className="quiet small">
        {error.code}
        {error.reason !== undefined && `, ${error.reason}`}
      </p>
    </div>
  )
}
