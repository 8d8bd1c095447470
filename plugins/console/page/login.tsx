// The login screen: for a session that has ended, or a token that was used before.
import { useEffect, useState } from 'preact/hooks'
import type { LoginMethods } from '../api.ts'
import { errorText } from './data/request.ts'
import { findLoginMethods, login, signIn } from './data/session.ts'

export function Login({ error: first }: { readonly error: string | undefined }) {
  const [error, setError] = useState(first)
  const [isRunning, setRunning] = useState(false)
  const [{ signIn: place, tokens }, setMethods] = useState<LoginMethods>({ tokens: true })

  useEffect(() => {
    void findLoginMethods().then(setMethods, thrown => setError(errorText(thrown)))
  }, [])

  async function submit(event: SubmitEvent) {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const token = String(new FormData(event.currentTarget).get('token') ?? '').trim()
    // A pasted URL contains the token.
    const given = /[#&]t=([^&\s]+)/.exec(token)?.[1] ?? token
    setRunning(true)
    try {
      await login(given)
    } catch (thrown) {
      setError(errorText(thrown))
      setRunning(false)
    }
  }

  return (
    <main class="gate">
      <div class="card">
        <h1>Operator console</h1>
        {tokens && (
          <p class="muted">Paste the token or the URL that mcp-host printed at startup. A one-time token works once.</p>
        )}
        {error !== undefined && (
          <p class="note fault" role="alert" id="login-error">
            {error}
          </p>
        )}
        {place !== undefined && (
          <button type="button" class="main" onClick={() => void signIn(place)}>
            Sign in
          </button>
        )}
        {tokens && (
          <form class="stack" onSubmit={submit}>
            <div class="field">
              <label for="token">Token</label>
              <input
                id="token"
                name="token"
                type="password"
                required
                autocomplete="off"
                aria-describedby={error === undefined ? undefined : 'login-error'}
              />
            </div>
            <button type="submit" class="main" disabled={isRunning}>
              Log in
            </button>
          </form>
        )}
      </div>
    </main>
  )
}
