// The entry of the console page: login, then the screens.
import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { follow } from './data/live.ts'
import { access, errorText } from './data/request.ts'
import { logIn } from './data/session.ts'
import { Login } from './login.tsx'
import { Shell } from './shell.tsx'
import './style.css'

function App() {
  const [error, setError] = useState<string>()
  useEffect(() => {
    void logIn().then(failed => failed !== undefined && setError(errorText(failed)))
  }, [])
  if (access.value === 'granted') return <Shell />
  if (access.value === 'missing' || error !== undefined) return <Login key={error} error={error} />
  return (
    <main class="gate">
      <p class="muted">Connecting…</p>
    </main>
  )
}

const root = document.getElementById('console')
if (root) {
  follow()
  render(<App />, root)
}
