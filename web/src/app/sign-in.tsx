/** Asks for a token, which is checked with a call before it is kept. */
import { connect, getLocalNodeId, type PenstockError } from '@penstock/client'
import { useId, useState } from 'react'
import { failureOf } from '../data/live.ts'
import { forgetToken, hasToken, keepToken } from '../data/session.ts'
import { Failure } from '../parts/failure.tsx'
import './sign-in.css'

export function SignIn({ error, onToken }: { readonly error: PenstockError; readonly onToken: () => void }) {
  const [refusal, setRefusal] = useState(hasToken() ? error : undefined)
  const [isBusy, setBusy] = useState(false)
  const field = useId()
  const check = async (data: FormData): Promise<void> => {
    const token = String(data.get('token')).trim()
    setBusy(true)
    try {
      await getLocalNodeId(connect({ url: location.origin, token }))
      keepToken(token)
      onToken()
    } catch (failure) {
      forgetToken()
      setRefusal(failureOf(failure))
    } finally {
      setBusy(false)
    }
  }
  return (
    <main className="sign-in">
      <form
        className="card"
        onSubmit={(event) => {
          event.preventDefault()
          void check(new FormData(event.currentTarget))
        }}
      >
        <h1>penstock</h1>
        <p>
          This node asks for a token. Make one on its machine with <code>penstock token create NAME</code>.
        </p>
        <label htmlFor={field}>Token</label>
        <input id={field} name="token" type="password" required autoComplete="off" spellCheck={false} />
        <button type="submit" className="button primary" disabled={isBusy}>
          Sign in
        </button>
        {refusal !== undefined && <Failure error={refusal} title="That did not work" />}
        <p className="quiet small">The token is kept by this tab until it is closed, and sent to this node only.</p>
      </form>
    </main>
  )
}
