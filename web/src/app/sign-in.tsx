/** Asks for a token, which is checked with a call before it is kept. */
import { connect, getLocalNodeId, type PenstockError } from '@penstock/client'
import { useId, useLayoutEffect, useRef, useState } from 'react'
import { failureOf } from '../data/live.ts'
import { forgetToken, hasToken, keepToken } from '../data/session.ts'
import { Failure } from '../parts/failure.tsx'
import { keepKeys } from '../parts/keys.ts'
import { useTitle } from '../parts/use-title.ts'
import './sign-in.css'

interface Props {
  readonly error: PenstockError
  readonly onToken: () => void
}

/** Over all of the page, which can be neither seen nor used meanwhile. */
export function SignInAgain(props: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  useTitle('Sign in')
  useLayoutEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    const release = keepKeys()
    return () => {
      release()
      // Closed, it gives the focus back to where it was.
      shown?.close()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      className="sign-in-again"
      aria-label="Sign in again"
      onCancel={(event) => event.preventDefault()}
      // A browser closes it at the second Escape whatever the page says.
      onClose={() => dialog.current?.showModal()}
    >
      <SignIn {...props} />
    </dialog>
  )
}

export function SignIn({ error, onToken }: Props) {
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
